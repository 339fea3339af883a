//! A statement on its own thread, from the request's bytes to the answer's.

mod format;

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Response;
use tokio::sync::oneshot;

use super::answer::{Head, exception_tag, failure, late_failure};
use super::body::{Body, Piece, Reader};
use super::encoding::decoder;
use super::multipart;
use super::request::Ask;
use super::running::Running;
use super::sessions::Held;
use crate::Exception;
use crate::engine::Shared;
use crate::library::connection::{Connection, Counts, Parameters};
use crate::sql::{self, Format, Statement};

use format::{Shape, shape};

/// SQL longer than this is refused; an INSERT's data behind it is not counted.
const MAX_SQL: usize = 4 * 1024 * 1024;
/// What is handed to an INSERT at a time.
const CHUNK: usize = 256 * 1024;
/// One block an INSERT: only a block is stored whole or not at all. A request may say otherwise.
const ONE_BLOCK: [(&str, &str); 3] = [
    ("max_insert_block_size", "100000000"),
    ("min_insert_block_size_rows", "100000000"),
    ("min_insert_block_size_bytes", "0"),
];

type Reply = oneshot::Sender<Response<Body>>;
type Source = Box<dyn Read + Send>;

pub(super) fn run(
    engine: &Arc<Shared>,
    ask: Ask,
    body: Reader,
    session: Option<Held>,
    running: &Running,
    reply: Reply,
) {
    let mut job = Job {
        head: Head {
            query_id: ask.query_id.clone(),
            timezone: engine.timezone().to_owned(),
            encoding: ask.encoding,
            started: Instant::now(),
        },
        engine,
        running,
        reply: Some(reply),
        max_body_bytes: engine.max_body_bytes(),
    };
    if let Err(exception) = job.run(ask, body, session)
        && let Some(reply) = job.reply.take()
    {
        let _ = reply.send(failure(&exception, Some(&job.head.query_id)));
    }
}

struct Job<'a> {
    head: Head,
    engine: &'a Arc<Shared>,
    running: &'a Running,
    reply: Option<Reply>,
    max_body_bytes: u64,
}

impl Job<'_> {
    fn run(&mut self, mut ask: Ask, body: Reader, session: Option<Held>) -> Result<(), Exception> {
        let unknown = || {
            Exception::new(
                48,
                "NOT_IMPLEMENTED",
                "The body's Content-Encoding is not known; send lz4, zstd or gzip",
            )
        };
        let mut body = decoder(Box::new(body), ask.content_encoding.as_deref(), ask.native_blocks)
            .ok_or_else(unknown)?;
        if let Some(boundary) = ask.boundary.take() {
            body = read_form(body, &boundary, &mut ask)?;
        }
        let (text, statement, body) = read_statement(std::mem::take(&mut ask.query), body)?;
        refuse(&statement, ask.read_only)?;

        match session {
            None => {
                let mut connection = self.engine.connect().ok_or_else(unreachable_engine)?;
                self.prepare(&mut connection, &ask, &statement)?;
                self.execute(&mut connection, &ask, &text, statement, body)
            }
            Some(mut held) => {
                let mut connection = match held.connection.take() {
                    Some(connection) => connection,
                    None => self.engine.connect().ok_or_else(unreachable_engine)?,
                };
                let before = settings_before(&mut connection, &ask)?;
                let done = self
                    .prepare(&mut connection, &ask, &statement)
                    .and_then(|()| self.execute(&mut connection, &ask, &text, statement, body));
                // The settings of a request are its own, those of SET the session's. A connection that cannot be put
                // back is not used again.
                if connection.query(before.as_bytes(), "TSV", &Parameters::new()).is_ok() {
                    held.connection = Some(connection);
                }
                drop(held);
                if let Some(session) = ask.session.filter(|session| session.close) {
                    self.engine.sessions.close(&session.id);
                }
                done
            }
        }
    }

    /// Database and settings, checked by the engine itself: an unknown setting is its error 115.
    fn prepare(
        &self,
        connection: &mut Connection,
        ask: &Ask,
        statement: &Statement,
    ) -> Result<(), Exception> {
        let mut assignments = Vec::new();
        if matches!(statement, Statement::Insert { .. }) {
            assignments.extend(ONE_BLOCK.iter().map(|(name, value)| assignment(name, value)));
        }
        let mut comment = self.running.tag().to_owned();
        for (name, value) in &ask.settings {
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return Err(Exception::new(115, "UNKNOWN_SETTING", format!("Unknown setting '{name}'")));
            }
            if name == "log_comment" {
                comment = format!("{comment} {value}");
            } else {
                assignments.push(assignment(name, value));
            }
        }
        assignments.push(assignment("log_comment", &comment));
        let mut sql = String::new();
        if let Some(database) = ask.database.as_deref().filter(|name| !name.is_empty()) {
            sql.push_str(&format!("USE {}; ", identifier(database)));
        }
        sql.push_str(&format!("SET {}", assignments.join(", ")));
        // Last: afterwards nothing can be set.
        let has_readonly = ask.settings.iter().any(|(name, _)| name == "readonly");
        if ask.read_only {
            sql.push_str("; SET readonly = 1");
        } else if ask.get && !has_readonly {
            sql.push_str("; SET readonly = 2");
        }
        connection.query(sql.as_bytes(), "TSV", &Parameters::new()).map(drop)
    }

    fn execute(
        &mut self,
        connection: &mut Connection,
        ask: &Ask,
        text: &[u8],
        statement: Statement,
        body: Source,
    ) -> Result<(), Exception> {
        if self.running.is_cancelled() {
            return Err(Exception::new(394, "QUERY_WAS_CANCELLED", "The client left"));
        }
        if ask.read_only && connection.classify(text) != Some((1, true)) {
            return Err(read_only());
        }
        match statement {
            Statement::Insert { sql, format, data } => {
                let sql = text.get(sql).unwrap_or_default();
                let inline = Cursor::new(text.get(data..).unwrap_or_default().to_vec());
                let format = match &format {
                    Format::Named(name) => name,
                    Format::Values => "Values",
                };
                self.insert(connection, sql, format, &ask.parameters, Box::new(inline.chain(body)))
            }
            Statement::Select { format } => {
                drop(body);
                let format = format.unwrap_or_else(|| ask.default_format.clone());
                match shape(&format, text, &ask.settings) {
                    Some(shape) if !ask.wait_end => {
                        self.stream(connection, text, &format, &shape, &ask.parameters)
                    }
                    _ => self.whole(connection, text, &format, &ask.parameters),
                }
            }
            Statement::Other { format, .. } => {
                drop(body);
                let format = format.unwrap_or_else(|| ask.default_format.clone());
                self.whole(connection, text, &format, &ask.parameters)
            }
            Statement::Empty | Statement::Several | Statement::Refused { .. } => {
                refuse(&statement, ask.read_only)
            }
        }
    }

    /// Every row or an error: what was read is stored when the body's end was seen, and dropped otherwise.
    fn insert(
        &mut self,
        connection: &mut Connection,
        sql: &[u8],
        format: &str,
        parameters: &Parameters,
        mut data: Source,
    ) -> Result<(), Exception> {
        let mut insert = connection.insert(sql, format, parameters)?;
        let mut buffer = vec![0; CHUNK];
        let mut total: u64 = 0;
        loop {
            let count = data.read(&mut buffer).map_err(|error| unreadable(&error))?;
            if count == 0 {
                break;
            }
            total = total.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            if total > self.max_body_bytes {
                let text = format!("The rows of one INSERT may take {} bytes", self.max_body_bytes);
                return Err(Exception::new(307, "TOO_MANY_BYTES", text));
            }
            insert.append(buffer.get(..count).unwrap_or_default())?;
        }
        if self.running.is_cancelled() {
            return Err(Exception::new(394, "QUERY_WAS_CANCELLED", "The client left"));
        }
        let counts = insert.finish()?;
        self.answer(Body::whole(Bytes::new()), None, counts, None);
        Ok(())
    }

    fn stream(
        &mut self,
        connection: &mut Connection,
        sql: &[u8],
        format: &str,
        shape: &Shape,
        parameters: &Parameters,
    ) -> Result<(), Exception> {
        let encoding = self.head.encoding;
        let mut stream = connection.stream(sql, format, parameters)?;
        // Most errors show before the first piece; then they are a status.
        let first = stream.next()?;
        let counts = first.as_ref().map(|piece| piece.counts()).unwrap_or_default();
        let tag = exception_tag();
        let (sender, body) = Body::pieces();
        self.answer(body, Some(format), counts, Some(&tag));

        let send = |piece: Piece| sender.blocking_send(piece).is_ok();
        let start = encoding.start();
        let mut open = start.is_empty() || send(Piece::Data(start));
        let mut piece = first;
        let mut header = None;
        while let Some(output) = piece.take().filter(|_| open) {
            let bytes = Bytes::from_owner(output);
            let next = match shape.without_header(bytes, &mut header) {
                Ok(bytes) => {
                    open = bytes.is_empty() || send(Piece::Data(encoding.piece(bytes)));
                    if open { stream.next() } else { Ok(None) }
                }
                Err(exception) => Err(exception),
            };
            match next {
                Ok(next) => piece = next,
                Err(exception) => {
                    let last = encoding.piece(late_failure(&exception, &tag));
                    send(Piece::Failure(last));
                    return Ok(());
                }
            }
        }
        // Ended before it is told: who has the answer finds the statement gone.
        drop(stream);
        if open {
            let end = encoding.end();
            let _ = (end.is_empty() || send(Piece::Data(end))) && send(Piece::End);
        }
        Ok(())
    }

    fn whole(
        &mut self,
        connection: &mut Connection,
        sql: &[u8],
        format: &str,
        parameters: &Parameters,
    ) -> Result<(), Exception> {
        let output = connection.query(sql, format, parameters)?;
        let counts = output.counts();
        let encoding = self.head.encoding;
        let bytes = Bytes::from_owner(output);
        let bytes = if bytes.is_empty() {
            encoding.start()
        } else {
            joined([encoding.start(), encoding.piece(bytes)])
        };
        let bytes = joined([bytes, encoding.end()]);
        self.answer(Body::whole(bytes), Some(format), counts, None);
        Ok(())
    }

    fn answer(&mut self, body: Body, format: Option<&str>, counts: Counts, tag: Option<&str>) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(self.head.success(body, format, counts, tag));
        }
    }
}

fn joined(parts: [Bytes; 2]) -> Bytes {
    match parts {
        [first, second] if first.is_empty() => second,
        [first, second] if second.is_empty() => first,
        [first, second] => [first.as_ref(), second.as_ref()].concat().into(),
    }
}

/// The fields of a form: the query and its parameters. What follows is empty.
fn read_form(body: Source, boundary: &str, ask: &mut Ask) -> Result<Source, Exception> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(16 * MAX_SQL).unwrap_or(u64::MAX);
    body.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    for (name, value) in multipart::fields(&bytes, boundary)? {
        if name == "query" {
            ask.query.push_str(&value);
        } else if let Some(parameter) = name.strip_prefix("param_") {
            ask.parameters.push((parameter.to_owned(), value));
        } else {
            let text = format!(
                "The form field '{name}' would be an external table, which the embedded engine has not"
            );
            return Err(Exception::new(48, "NOT_IMPLEMENTED", text));
        }
    }
    Ok(Box::new(io::empty()))
}

/// SQL may stand in the address, in the body, or begin there and go on here; an INSERT's data follows it.
fn read_statement(query: String, mut body: Source) -> Result<(Vec<u8>, Statement, Source), Exception> {
    let mut text = query.into_bytes();
    let statement = sql::scan(&text);
    if let Statement::Insert { data, format, .. } = &statement
        && (matches!(format, Format::Named(_)) || *data < text.len())
    {
        return Ok((text, statement, body));
    }
    let mut head = Vec::new();
    let limit = u64::try_from(MAX_SQL).unwrap_or(u64::MAX);
    let read = body.by_ref().take(limit).read_to_end(&mut head).map_err(|error| unreadable(&error))?;
    if !text.is_empty() && read > 0 {
        text.push(b'\n');
    }
    text.append(&mut head);
    let statement = sql::scan(&text);
    let mut probe = [0_u8; 1];
    let more = read == MAX_SQL && body.read(&mut probe).map_err(|error| unreadable(&error))? > 0;
    if more {
        if !matches!(statement, Statement::Insert { .. }) {
            let text = format!("The statement is longer than {MAX_SQL} bytes");
            return Err(Exception::new(62, "SYNTAX_ERROR", text));
        }
        text.extend_from_slice(&probe);
    }
    Ok((text, statement, body))
}

fn refuse(statement: &Statement, only_reads: bool) -> Result<(), Exception> {
    match statement {
        Statement::Empty => Err(Exception::new(62, "SYNTAX_ERROR", "Empty query")),
        Statement::Several => Err(Exception::new(62, "SYNTAX_ERROR", "Multi-statements are not allowed")),
        Statement::Refused { clause } => {
            let text = format!("{clause} is not available over HTTP");
            Err(Exception::new(48, "NOT_IMPLEMENTED", text))
        }
        Statement::Insert { .. } if only_reads => Err(read_only()),
        Statement::Other { first, .. } if only_reads => {
            let reads = ["SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN"];
            if reads.contains(&first.as_str()) { Ok(()) } else { Err(read_only()) }
        }
        Statement::Insert { .. } | Statement::Select { .. } | Statement::Other { .. } => Ok(()),
    }
}

fn read_only() -> Exception {
    Exception::new(164, "READONLY", "Cannot execute query in readonly mode")
}

fn unreachable_engine() -> Exception {
    Exception::new(236, "ABORTED", "The engine takes no connection")
}

fn unreadable(error: &io::Error) -> Exception {
    match error.kind() {
        io::ErrorKind::ConnectionAborted => {
            Exception::new(394, "QUERY_WAS_CANCELLED", "The body was cut off")
        }
        _ => Exception::new(33, "CANNOT_READ_ALL_DATA", format!("The body cannot be decoded: {error}")),
    }
}

/// SQL that puts the session's settings back to what they are now.
fn settings_before(connection: &mut Connection, ask: &Ask) -> Result<String, Exception> {
    let mut names: Vec<&str> = ask.settings.iter().map(|(name, _)| name.as_str()).collect();
    names.extend(ONE_BLOCK.iter().map(|(name, _)| *name));
    names.extend(["log_comment", "readonly"]);
    let list: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let sql = format!("SELECT name, value, changed FROM system.settings WHERE name IN ({})", list.join(", "));
    let output = connection.query(sql.as_bytes(), "JSONCompactEachRow", &Parameters::new())?;
    let mut assignments = Vec::new();
    for row in output.as_ref().split(|byte| *byte == b'\n').filter(|row| !row.is_empty()) {
        let (name, value, changed): (String, String, u8) = serde_json::from_slice(row).map_err(|error| {
            Exception::new(49, "LOGICAL_ERROR", format!("system.settings cannot be read: {error}"))
        })?;
        assignments.push(if changed == 1 { assignment(&name, &value) } else { format!("{name} = DEFAULT") });
    }
    Ok(format!("SET {}", assignments.join(", ")))
}

fn assignment(name: &str, value: &str) -> String {
    format!("{name} = {}", quoted(value))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}
