//! Threads that call the engine, and how a process ends that has loaded it.
//!
//! At the end of a process the engine's library takes its statics down, whatever else still runs: threads that are in the engine,
//! thread-local values that it still cleans up, its own background threads. Now and then one of them reads what is gone, and
//! a process that did its work ends with a signal. So the end joins our threads, and then leaves without the library's own end:
//! what the engine promised is on the disk already, as after a kill.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::EngineError;

/// Deep expressions recurse in the engine's parser; two mebibytes refuse what a server accepts.
const STACK: usize = 8 * 1024 * 1024;
/// A statement that is not over by then is given up: the process was asked to end.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Runs work on a thread of its own, with the engine's stack size. A thread costs a hundredth of the smallest statement.
pub(crate) fn detach(work: impl FnOnce() + Send + 'static) -> Result<(), EngineError> {
    let thread = std::thread::Builder::new()
        .name("clickhouse".to_owned())
        .stack_size(STACK)
        .spawn(work)
        .map_err(|source| EngineError::Thread { source })?;
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    for over in threads.extract_if(.., |thread| thread.is_finished()) {
        join(over);
    }
    threads.push(thread);
    Ok(())
}

/// To be called when the library is loaded: what is registered later runs earlier, so before the library's own end.
pub(crate) fn leave_before_the_library() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: a function of this program, which stays loaded and never unwinds. Refused for want of memory, the process
        // ends as it would have without us.
        let _ = unsafe { on_exit(leave, ptr::null_mut()) };
    });
}

unsafe extern "C" {
    /// As `atexit`, and tells the status. Of glibc, as the engine is.
    fn on_exit(callback: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// The standard streams are flushed by now: Rust does that before it calls `exit`.
extern "C" fn leave(status: c_int, _: *mut c_void) {
    wait();
    // SAFETY: ends the process, with the status that it was ending with.
    unsafe { _exit(status) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the process ends here: there is no runtime any more, and nothing to be told by"
)]
fn wait() {
    let until = Instant::now() + PATIENCE;
    loop {
        // Not held while waiting: work that ends may begin other work.
        let next = THREADS.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(thread) = next else { return };
        while !thread.is_finished() {
            if Instant::now() >= until {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        join(thread);
    }
}

/// Work that panicked has said so itself.
fn join(thread: JoinHandle<()>) {
    let _ = thread.join();
}
