//! The C library, loaded at run time. Every `unsafe` of the workspace is in this module and in `library/`.
//!
//! The package ships no header. The signatures are those of the engine's public C interface at this version, and
//! each is exercised by the integration tests; another version is refused at load.
#![allow(unsafe_code)]

pub(crate) mod connection;
mod locate;
pub(crate) mod threads;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use crate::EngineError;

pub use locate::locate_library;

/// The version of the C interface whose signatures stand below.
const INTERFACE_VERSION: &str = "26.7.3";

/// `chdb_connection`: a handle; `chdb_connect` returns a pointer to one.
type RawConnection = *mut c_void;
type RawResult = *mut c_void;
type RawInsert = *mut c_void;
type Names = *const *const c_char;
type Lengths = *const usize;

/// What `chdb_classify_query_n` fills in; `struct_size` is set by the caller.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawAnalysis {
    struct_size: u32,
    pub(crate) statement_count: u32,
    pub(crate) flags: u32,
    pub(crate) query_class: u32,
}

type QueryFn = unsafe extern "C" fn(
    RawConnection,
    *const c_char,
    usize,
    *const c_char,
    usize,
    Names,
    Lengths,
    Names,
    Lengths,
    usize,
) -> RawResult;
type CounterFn = unsafe extern "C" fn(RawResult) -> u64;

/// The functions this crate calls. Plain function pointers: the library is never unloaded, because the engine's
/// threads outlive any handle.
pub(crate) struct Functions {
    connect: unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut RawConnection,
    close: unsafe extern "C" fn(*mut RawConnection),
    query: QueryFn,
    stream_query: QueryFn,
    stream_fetch: unsafe extern "C" fn(RawConnection, RawResult) -> RawResult,
    stream_cancel: unsafe extern "C" fn(RawConnection, RawResult),
    insert: QueryFn, // same shape; the handle returned is a `RawInsert`
    insert_append: unsafe extern "C" fn(RawInsert, *const c_void, usize) -> c_int,
    insert_done: unsafe extern "C" fn(RawInsert) -> RawResult,
    insert_cancel: unsafe extern "C" fn(RawInsert),
    insert_error: unsafe extern "C" fn(RawInsert) -> *const c_char,
    insert_destroy: unsafe extern "C" fn(RawInsert),
    classify: unsafe extern "C" fn(
        RawConnection,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut RawAnalysis,
    ) -> c_int,
    result_buffer: unsafe extern "C" fn(RawResult) -> *const c_char,
    result_length: unsafe extern "C" fn(RawResult) -> usize,
    result_error: unsafe extern "C" fn(RawResult) -> *const c_char,
    result_destroy: unsafe extern "C" fn(RawResult),
    rows: CounterFn,
    bytes: CounterFn,
    storage_rows: CounterFn,
    storage_bytes: CounterFn,
    written_rows: CounterFn,
    written_bytes: CounterFn,
}

/// Loads the library once a process. A second call with another path gets the first one's functions: the engine is a
/// process-wide thing.
pub(crate) fn load(path: &Path) -> Result<&'static Functions, EngineError> {
    static LOADED: OnceLock<&'static Functions> = OnceLock::new();
    static LOADING: Mutex<()> = Mutex::new(());

    let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(functions) = LOADED.get() {
        return Ok(functions);
    }
    let functions: &'static Functions = Box::leak(Box::new(open(path)?));
    Ok(LOADED.get_or_init(|| functions))
}

fn open(path: &Path) -> Result<Functions, EngineError> {
    let failed = |source| EngineError::LibraryLoad { path: path.to_owned(), source };
    // SAFETY: loading runs the library's constructors; this one is the pinned engine package, whose constructors
    // only set up its own runtime.
    let library = unsafe { Library::new(path) }.map_err(failed)?;
    // Never unloaded: engine threads run its code until the process ends.
    let library: &'static Library = Box::leak(Box::new(library));

    macro_rules! symbol {
        ($name:literal) => {{
            // SAFETY: the type asked for is the one of the engine's C interface at INTERFACE_VERSION, checked below
            // before any of these is called.
            *unsafe { library.get($name) }.map_err(failed)?
        }};
    }
    let version: unsafe extern "C" fn() -> *const c_char = symbol!(c"chdb_version");
    // SAFETY: takes nothing and returns a static NUL-terminated string or null.
    let found = unsafe { text(version()) }.unwrap_or_default();
    if found != INTERFACE_VERSION {
        return Err(EngineError::LibraryVersion { path: path.to_owned(), found, wanted: INTERFACE_VERSION });
    }
    let set_signal_handlers: unsafe extern "C" fn(c_int) = symbol!(c"chdb_set_signal_handlers_enabled");
    // SAFETY: takes a flag by value. Off before the first connection: the process keeps its own handlers.
    unsafe { set_signal_handlers(0) };

    Ok(Functions {
        connect: symbol!(c"chdb_connect"),
        close: symbol!(c"chdb_close_conn"),
        query: symbol!(c"chdb_query_with_params_n"),
        stream_query: symbol!(c"chdb_stream_query_with_params_n"),
        stream_fetch: symbol!(c"chdb_stream_fetch_result"),
        stream_cancel: symbol!(c"chdb_stream_cancel_query"),
        insert: symbol!(c"chdb_stream_insert_with_params_n"),
        insert_append: symbol!(c"chdb_stream_append"),
        insert_done: symbol!(c"chdb_stream_done"),
        insert_cancel: symbol!(c"chdb_stream_cancel_insert"),
        insert_error: symbol!(c"chdb_stream_insert_error"),
        insert_destroy: symbol!(c"chdb_destroy_insert_stream"),
        classify: symbol!(c"chdb_classify_query_n"),
        result_buffer: symbol!(c"chdb_result_buffer"),
        result_length: symbol!(c"chdb_result_length"),
        result_error: symbol!(c"chdb_result_error"),
        result_destroy: symbol!(c"chdb_destroy_query_result"),
        rows: symbol!(c"chdb_result_rows_read"),
        bytes: symbol!(c"chdb_result_bytes_read"),
        storage_rows: symbol!(c"chdb_result_storage_rows_read"),
        storage_bytes: symbol!(c"chdb_result_storage_bytes_read"),
        written_rows: symbol!(c"chdb_result_rows_written"),
        written_bytes: symbol!(c"chdb_result_bytes_written"),
    })
}

/// Copies a C string that the library owns.
///
/// # Safety
/// `pointer` is null or points to a NUL-terminated string that lives for the length of the call.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated by this function's contract.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned())
}

/// Where a folder argument would be ambiguous for the engine's command-line parser.
pub(crate) fn argument(name: &str, path: &Path) -> Result<Vec<u8>, EngineError> {
    let mut bytes = format!("--{name}=").into_bytes();
    bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
    if bytes.contains(&0) {
        return Err(EngineError::Folder {
            path: PathBuf::from(path),
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path holds a NUL byte"),
        });
    }
    Ok(bytes)
}
