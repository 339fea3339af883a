//! Threads that call the engine. The process may not end under them.
//!
//! At the end of a process the engine's library takes its statics down, whatever else still runs. A thread that is in the engine
//! at that instant, be it only to end a statement whose client left, reads what is gone; so does one whose work is over and whose
//! thread-local values the library still cleans up. So the end of the process joins them all first.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};
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

/// Run by the main thread before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

unsafe extern "C" {
    /// What a C++ `thread_local` registers its destructor with. Of glibc, as the engine is.
    fn __cxa_thread_atexit_impl(
        destructor: extern "C" fn(*mut c_void),
        object: *mut c_void,
        library: *const c_void,
    ) -> c_int;
    static __dso_handle: c_void;
}

/// The main thread's thread-local values end before any static does, in whatever order those were made: the engine makes
/// many of its own at first use, so a function that `atexit` takes would run too late.
extern "C" fn at_start() {
    // SAFETY: a function of this program, which stays loaded and never unwinds, with an argument that it does not use. Refused
    // for want of memory, the process ends as it would have without us.
    let _ = unsafe { __cxa_thread_atexit_impl(at_end, ptr::null_mut(), &raw const __dso_handle) };
}

extern "C" fn at_end(_: *mut c_void) {
    wait();
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
