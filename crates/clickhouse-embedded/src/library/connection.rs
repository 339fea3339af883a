//! Safe handles over the C library. A connection runs one statement at a time, which the borrow checker holds:
//! streams and inserts borrow their connection mutably.

use std::ffi::{CString, c_char};
use std::ptr::NonNull;

use super::{Functions, RawAnalysis, RawConnection, RawInsert, RawResult, text};
use crate::Exception;

/// `CHDBSuccess` of the C interface.
const SUCCESS: i32 = 0;
/// `CHDB_QUERY_READ_ONLY` of the C interface.
const CLASS_READ_ONLY: u32 = 0;

/// Named parameters of a statement, bound by the engine, never spliced into SQL.
pub(crate) type Parameters = Vec<(String, String)>;

/// One session of the engine. Closing the last one shuts the engine down.
pub(crate) struct Connection {
    functions: &'static Functions,
    outer: NonNull<RawConnection>,
}

// SAFETY: the C interface allows a connection to be used from any thread, one call at a time; `&mut self` on every
// call keeps it to one.
unsafe impl Send for Connection {}

impl Connection {
    /// `arguments` in the engine's command-line form, without the program name. None: the engine refused them, and
    /// says why only in its log.
    pub(crate) fn open(functions: &'static Functions, arguments: &[Vec<u8>]) -> Option<Self> {
        let mut owned = vec![c"clickhouse".to_owned()];
        for argument in arguments {
            owned.push(CString::new(argument.as_slice()).ok()?);
        }
        let mut pointers: Vec<*mut c_char> = owned.iter().map(|text| text.as_ptr().cast_mut()).collect();
        let count = i32::try_from(pointers.len()).ok()?;
        // SAFETY: `count` pointers to NUL-terminated strings that live until the call returns; the engine copies them.
        let outer = NonNull::new(unsafe { (functions.connect)(count, pointers.as_mut_ptr()) })?;
        let connection = Self { functions, outer };
        (!connection.raw().is_null()).then_some(connection)
    }

    /// Runs any statement and collects its whole output.
    pub(crate) fn query(
        &mut self,
        sql: &[u8],
        format: &str,
        parameters: &Parameters,
    ) -> Result<Output, Exception> {
        let output = self.call(self.functions.query, sql, format, parameters);
        Output::checked(self.functions, output)
    }

    /// Starts a SELECT whose output is fetched in pieces.
    pub(crate) fn stream(
        &mut self,
        sql: &[u8],
        format: &str,
        parameters: &Parameters,
    ) -> Result<Stream<'_>, Exception> {
        let state = self.call(self.functions.stream_query, sql, format, parameters);
        let state = Output::checked(self.functions, state)?;
        Ok(Stream { connection: self, state, ended: false })
    }

    /// Starts an INSERT whose rows follow in `format`; `sql` has neither FORMAT nor data.
    pub(crate) fn insert(
        &mut self,
        sql: &[u8],
        format: &str,
        parameters: &Parameters,
    ) -> Result<Insert<'_>, Exception> {
        let raw: RawInsert = self.call(self.functions.insert, sql, format, parameters);
        let insert = Insert { connection: self, raw, ended: false };
        match insert.error() {
            Some(exception) => Err(exception),
            None => Ok(insert),
        }
    }

    /// What the engine's parser makes of `sql`: (number of statements, whether all of it only reads).
    pub(crate) fn classify(&mut self, sql: &[u8]) -> Option<(u32, bool)> {
        let mut analysis = RawAnalysis {
            struct_size: u32::try_from(size_of::<RawAnalysis>()).ok()?,
            ..RawAnalysis::default()
        };
        // SAFETY: an open connection; a buffer and its length; no target database; a struct whose size is set.
        let state = unsafe {
            (self.functions.classify)(
                self.raw(),
                sql.as_ptr().cast(),
                sql.len(),
                std::ptr::null(),
                0,
                &raw mut analysis,
            )
        };
        (state == SUCCESS).then_some((analysis.statement_count, analysis.query_class == CLASS_READ_ONLY))
    }

    fn raw(&self) -> RawConnection {
        // SAFETY: `outer` comes from `chdb_connect` and stays valid until `chdb_close_conn` in `drop`.
        unsafe { *self.outer.as_ptr() }
    }

    fn call(&self, function: super::QueryFn, sql: &[u8], format: &str, parameters: &Parameters) -> RawResult {
        let names: Vec<*const c_char> = parameters.iter().map(|(name, _)| name.as_ptr().cast()).collect();
        let name_lengths: Vec<usize> = parameters.iter().map(|(name, _)| name.len()).collect();
        let values: Vec<*const c_char> = parameters.iter().map(|(_, value)| value.as_ptr().cast()).collect();
        let value_lengths: Vec<usize> = parameters.iter().map(|(_, value)| value.len()).collect();
        // SAFETY: an open connection used by this thread alone; every buffer goes with its length and outlives the
        // call; the four arrays have `parameters.len()` entries. The engine captures what it needs before returning.
        unsafe {
            function(
                self.raw(),
                sql.as_ptr().cast(),
                sql.len(),
                format.as_ptr().cast(),
                format.len(),
                names.as_ptr(),
                name_lengths.as_ptr(),
                values.as_ptr(),
                value_lengths.as_ptr(),
                parameters.len(),
            )
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: from `chdb_connect`, closed once, and no stream or insert borrows it any more.
        unsafe { (self.functions.close)(self.outer.as_ptr()) };
    }
}

/// What a statement counted, as `X-ClickHouse-Summary` tells it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) result_rows: u64,
    pub(crate) result_bytes: u64,
    pub(crate) read_rows: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_rows: u64,
    pub(crate) written_bytes: u64,
}

/// Bytes that the engine made. Lent without a copy: `Bytes::from_owner` keeps it alive.
pub(crate) struct Output {
    functions: &'static Functions,
    raw: NonNull<std::ffi::c_void>,
}

// SAFETY: an output is plain memory of the engine's heap; it may be read and freed on any thread.
unsafe impl Send for Output {}
// SAFETY: shared access only reads the buffer, which the engine does not touch again.
unsafe impl Sync for Output {}

impl Output {
    pub(crate) fn counts(&self) -> Counts {
        let count = |function: super::CounterFn| {
            // SAFETY: a live result handle.
            unsafe { function(self.raw.as_ptr()) }
        };
        Counts {
            result_rows: count(self.functions.rows),
            result_bytes: count(self.functions.bytes),
            read_rows: count(self.functions.storage_rows),
            read_bytes: count(self.functions.storage_bytes),
            written_rows: count(self.functions.written_rows),
            written_bytes: count(self.functions.written_bytes),
        }
    }

    fn checked(functions: &'static Functions, raw: RawResult) -> Result<Self, Exception> {
        let Some(raw) = NonNull::new(raw) else {
            return Err(Exception::new(1001, "STD_EXCEPTION", "the engine returned no result"));
        };
        let output = Self { functions, raw };
        // SAFETY: a live result handle; the text lives as long as it does.
        match unsafe { text((functions.result_error)(raw.as_ptr())) } {
            Some(message) => Err(Exception::from_engine(&message)),
            None => Ok(output),
        }
    }
}

impl AsRef<[u8]> for Output {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: a live result handle.
        let (buffer, length) = unsafe {
            (
                (self.functions.result_buffer)(self.raw.as_ptr()),
                (self.functions.result_length)(self.raw.as_ptr()),
            )
        };
        if buffer.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: the engine says `length` bytes start at `buffer`; they are not written again and live until the
        // result is destroyed, which `self` does on drop.
        unsafe { std::slice::from_raw_parts(buffer.cast(), length) }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: owned by `self` and destroyed once.
        unsafe { (self.functions.result_destroy)(self.raw.as_ptr()) };
    }
}

/// A SELECT under way.
pub(crate) struct Stream<'a> {
    connection: &'a mut Connection,
    state: Output,
    ended: bool,
}

impl Stream<'_> {
    /// The next piece, `None` at the end. After an error the stream is over.
    pub(crate) fn next(&mut self) -> Result<Option<Output>, Exception> {
        if self.ended {
            return Ok(None);
        }
        let functions = self.connection.functions;
        // SAFETY: the open connection that started this stream, used by this thread alone.
        let piece = unsafe { (functions.stream_fetch)(self.connection.raw(), self.state.raw.as_ptr()) };
        match Output::checked(functions, piece) {
            Ok(piece) if piece.counts().result_rows == 0 && piece.as_ref().is_empty() => {
                self.ended = true;
                Ok(None)
            }
            Ok(piece) => Ok(Some(piece)),
            Err(exception) => {
                self.ended = true;
                Err(exception)
            }
        }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: the connection and stream are live, and no fetch runs.
            unsafe {
                (self.connection.functions.stream_cancel)(self.connection.raw(), self.state.raw.as_ptr())
            };
        }
    }
}

/// An INSERT under way. Dropped before `finish` it is cancelled and stores nothing of its last block.
pub(crate) struct Insert<'a> {
    connection: &'a mut Connection,
    raw: RawInsert,
    ended: bool,
}

impl Insert<'_> {
    /// Hands bytes over; waits while the engine is behind.
    pub(crate) fn append(&mut self, data: &[u8]) -> Result<(), Exception> {
        // SAFETY: a live insert handle; the engine copies `data` before it returns.
        let state =
            unsafe { (self.connection.functions.insert_append)(self.raw, data.as_ptr().cast(), data.len()) };
        if state == SUCCESS {
            return Ok(());
        }
        Err(self.error().unwrap_or_else(|| {
            Exception::new(1001, "STD_EXCEPTION", "the engine took no more rows and did not say why")
        }))
    }

    /// Stores the rows.
    pub(crate) fn finish(mut self) -> Result<Counts, Exception> {
        self.ended = true;
        // SAFETY: a live insert handle, finished once.
        let output = unsafe { (self.connection.functions.insert_done)(self.raw) };
        let output = Output::checked(self.connection.functions, output)?;
        match self.error() {
            Some(exception) => Err(exception),
            None => Ok(output.counts()),
        }
    }

    fn error(&self) -> Option<Exception> {
        // SAFETY: a live insert handle; the text lives as long as it does.
        let message = unsafe { text((self.connection.functions.insert_error)(self.raw)) };
        message.map(|message| Exception::from_engine(&message))
    }
}

impl Drop for Insert<'_> {
    fn drop(&mut self) {
        let functions = self.connection.functions;
        // SAFETY: a live insert handle: cancelled unless finished, then destroyed once.
        unsafe {
            if !self.ended {
                (functions.insert_cancel)(self.raw);
            }
            (functions.insert_destroy)(self.raw);
        }
    }
}
