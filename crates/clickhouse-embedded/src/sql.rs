//! As much of SQL's surface as the HTTP interface has to see: where an INSERT's data starts, which FORMAT is asked for,
//! and whether there is more than one statement. Everything else is the engine's parser's business.

use std::ops::Range;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// Nothing but space and comments.
    Empty,
    /// An INSERT whose rows follow as data. `sql` is what the engine takes; the data starts at `data` of the text given.
    Insert { sql: Range<usize>, format: Format, data: usize },
    /// A SELECT, whose output can be taken in pieces.
    Select { format: Option<String> },
    /// Any other statement.
    Other { first: String, format: Option<String> },
    /// Something that only a client program does: the word that says so.
    Refused { clause: &'static str },
    /// More than one statement.
    Several,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Named(String),
    /// VALUES, or an INSERT that names none.
    Values,
}

pub(crate) fn scan(text: &[u8]) -> Statement {
    let mut tokens = Tokens { text, at: 0, depth: 0 };
    let Some(first) = tokens.next() else {
        return Statement::Empty;
    };
    if first.is(text, "INSERT") {
        return scan_insert(text, tokens, first.range.start);
    }
    let mut significant = Vec::new();
    let mut ended = first.is_symbol(text, b';');
    let mut into = false;
    for token in tokens {
        if token.ends_statement(text) {
            ended = true;
            continue;
        }
        if ended {
            return Statement::Several;
        }
        if into && token.is(text, "OUTFILE") {
            return Statement::Refused { clause: "INTO OUTFILE" };
        }
        into = token.is(text, "INTO");
        if token.depth == 0 {
            significant.push(token);
        }
    }
    let format = trailing_format(text, &significant);
    let opens = first.is_symbol(text, b'(');
    if opens || first.is(text, "SELECT") || first.is(text, "WITH") {
        return Statement::Select { format };
    }
    let word = text.get(first.range.clone()).unwrap_or_default();
    Statement::Other { first: String::from_utf8_lossy(word).to_ascii_uppercase(), format }
}

/// `FORMAT name` counts where it stands at the end or before SETTINGS; elsewhere `format` is a column's name.
fn trailing_format(text: &[u8], tokens: &[Token]) -> Option<String> {
    tokens.windows(2).enumerate().rev().find_map(|(at, pair)| {
        let [keyword, name] = pair else { return None };
        let after = tokens.get(at + 2);
        let ends = after.is_none_or(|token| token.is(text, "SETTINGS"));
        (ends && keyword.is(text, "FORMAT") && name.kind == Kind::Word).then(|| name.word(text))
    })
}

fn scan_insert(text: &[u8], mut tokens: Tokens<'_>, start: usize) -> Statement {
    let mut previous_is_name = false;
    let mut named = false;
    let mut end = start;
    let mut from = false;
    while let Some(token) = tokens.next() {
        if token.ends_statement(text) {
            let more = tokens.any(|token| !token.ends_statement(text));
            return if more { Statement::Several } else { other_insert() };
        }
        if !named {
            // INSERT INTO [TABLE | FUNCTION] name: whatever the name is, it is not one of the words below.
            let keyword =
                !previous_is_name && ["INTO", "TABLE", "FUNCTION"].iter().any(|word| token.is(text, word));
            if !keyword {
                previous_is_name = true;
                named = tokens.peek().is_none_or(|next| !next.is_symbol(text, b'.'))
                    && !token.is_symbol(text, b'.');
            }
            end = token.range.end;
            continue;
        }
        if token.kind == Kind::Word {
            if from && token.is(text, "INFILE") {
                return Statement::Refused { clause: "FROM INFILE" };
            }
            from = token.is(text, "FROM");
            if token.is(text, "SELECT") || (token.depth == 0 && token.is(text, "WITH")) {
                return select_insert(text, tokens);
            }
            if token.depth == 0 && token.is(text, "VALUES") {
                return Statement::Insert {
                    sql: start..token.range.start,
                    format: Format::Values,
                    data: token.range.end,
                };
            }
            if token.depth == 0
                && token.is(text, "FORMAT")
                && let Some(name) = tokens.next().filter(|name| name.kind == Kind::Word)
            {
                return Statement::Insert {
                    sql: start..token.range.start,
                    format: Format::Named(name.word(text)),
                    data: data_start(text, name.range.end),
                };
            }
        }
        end = token.range.end;
    }
    Statement::Insert { sql: start..end, format: Format::Values, data: text.len() }
}

fn other_insert() -> Statement {
    Statement::Other { first: "INSERT".to_owned(), format: None }
}

/// The rest of an INSERT … SELECT: the engine runs it whole.
fn select_insert(text: &[u8], tokens: Tokens<'_>) -> Statement {
    let mut ended = false;
    let mut input = false;
    for token in tokens {
        if token.ends_statement(text) {
            ended = true;
            continue;
        }
        if ended {
            return Statement::Several;
        }
        if input && token.is_symbol(text, b'(') {
            return Statement::Refused { clause: "input()" };
        }
        input = token.is(text, "INPUT");
    }
    other_insert()
}

/// Data starts after the format's name, less the spaces of that line and its end.
fn data_start(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\x0c')) {
        at += 1;
    }
    if text.get(at) == Some(&b'\r') {
        at += 1;
    }
    if text.get(at) == Some(&b'\n') {
        at += 1;
    }
    at
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Quoted,
    Symbol,
}

#[derive(Debug, Clone)]
struct Token {
    kind: Kind,
    range: Range<usize>,
    /// Brackets open around it; a bracket itself counts as outside.
    depth: u32,
}

impl Token {
    fn is(&self, text: &[u8], word: &str) -> bool {
        self.kind == Kind::Word
            && text.get(self.range.clone()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn is_symbol(&self, text: &[u8], symbol: u8) -> bool {
        self.kind == Kind::Symbol && text.get(self.range.start) == Some(&symbol)
    }

    /// A semicolon outside brackets. Several in a row at the end are one end.
    fn ends_statement(&self, text: &[u8]) -> bool {
        self.depth == 0 && self.is_symbol(text, b';')
    }

    fn word(&self, text: &[u8]) -> String {
        String::from_utf8_lossy(text.get(self.range.clone()).unwrap_or_default()).into_owned()
    }
}

#[derive(Clone)]
struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
}

impl Tokens<'_> {
    fn peek(&self) -> Option<Token> {
        self.clone().next()
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves past spaces and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let step = match rest {
                [byte, ..] if byte.is_ascii_whitespace() || *byte == 0 => 1,
                [b'-', b'-', ..] | [b'#', b' ' | b'!', ..] => {
                    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
                }
                [b'/', b'*', inside @ ..] => {
                    let end = inside.windows(2).position(|pair| pair == b"*/");
                    end.map_or(rest.len(), |at| at + 4)
                }
                _ => return,
            };
            self.at += step;
        }
    }

    /// The length of a quoted piece: its quote doubled or behind a backslash is part of it.
    fn quoted(rest: &[u8], quote: u8) -> usize {
        let mut at = 1;
        while let Some(byte) = rest.get(at) {
            match byte {
                b'\\' => at += 2,
                _ if *byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
                _ if *byte == quote => return at + 1,
                _ => at += 1,
            }
        }
        rest.len()
    }

    /// `$tag$ … $tag$`, if the text here is one.
    fn heredoc(rest: &[u8]) -> Option<usize> {
        let inner = rest.get(1..)?;
        let tag_end = inner.iter().position(|byte| *byte == b'$')? + 2;
        let tag = rest.get(..tag_end)?;
        let word = tag.get(1..tag_end - 1)?;
        if !word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            return None;
        }
        let body = rest.get(tag_end..)?;
        let close = body.windows(tag.len()).position(|window| window == tag)?;
        Some(tag_end + close + tag.len())
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip();
        let rest = self.rest();
        let first = *rest.first()?;
        let mut depth = self.depth;
        let (kind, length) = match first {
            b'\'' | b'"' | b'`' => (Kind::Quoted, Self::quoted(rest, first)),
            b'$' if let Some(length) = Self::heredoc(rest) => (Kind::Quoted, length),
            b'(' | b'[' | b'{' => {
                self.depth = self.depth.saturating_add(1);
                (Kind::Symbol, 1)
            }
            b')' | b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                depth = self.depth;
                (Kind::Symbol, 1)
            }
            _ => {
                let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
                let length = rest.iter().take_while(|byte| word(byte)).count();
                if length > 0 { (Kind::Word, length) } else { (Kind::Symbol, 1) }
            }
        };
        let start = self.at;
        self.at = self.at.saturating_add(length).min(self.text.len());
        Some(Token { kind, range: start..self.at, depth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(text: &str) -> (String, String, String) {
        match scan(text.as_bytes()) {
            Statement::Insert { sql, format, data } => {
                let format = match format {
                    Format::Named(name) => name,
                    Format::Values => "Values".to_owned(),
                };
                (text[sql].trim().to_owned(), format, text[data..].to_owned())
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_inserts_format_and_data_are_cut_off() {
        let cases = [
            ("INSERT INTO t(a, b) FORMAT RowBinary", "INSERT INTO t(a, b)", "RowBinary", ""),
            (
                "insert into db.t format JSONEachRow\n{\"a\":1}",
                "insert into db.t",
                "JSONEachRow",
                "{\"a\":1}",
            ),
            ("INSERT INTO t FORMAT CSV\r\n\n1", "INSERT INTO t", "CSV", "\n1"),
            ("INSERT INTO t VALUES (1), (2)", "INSERT INTO t", "Values", " (1), (2)"),
            (
                "INSERT INTO `values`.format (`format`) VALUES (';')",
                "INSERT INTO `values`.format (`format`)",
                "Values",
                " (';')",
            ),
            (
                "/* VALUES */ INSERT INTO t SETTINGS a = 'FORMAT x' FORMAT Native\nxyz",
                "INSERT INTO t SETTINGS a = 'FORMAT x'",
                "Native",
                "xyz",
            ),
            (
                "INSERT INTO FUNCTION null('a UInt8') FORMAT TSV\n1",
                "INSERT INTO FUNCTION null('a UInt8')",
                "TSV",
                "1",
            ),
            ("INSERT INTO t (a) ", "INSERT INTO t (a)", "Values", ""),
            ("INSERT INTO t (format, values) FORMAT TSV 1", "INSERT INTO t (format, values)", "TSV", "1"),
        ];
        for (text, sql, format, data) in cases {
            assert_eq!(insert(text), (sql.to_owned(), format.to_owned(), data.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_selects_format_is_found_and_a_column_called_format_is_not() {
        let format = |text: &str| match scan(text.as_bytes()) {
            Statement::Select { format } => format,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(format("SELECT 1"), None);
        assert_eq!(format("SELECT 1 FORMAT JSON"), Some("JSON".to_owned()));
        assert_eq!(format("SELECT 1 FORMAT JSON SETTINGS max_threads = 1;"), Some("JSON".to_owned()));
        assert_eq!(format("SELECT format FROM t"), None);
        assert_eq!(format("SELECT 'x FORMAT CSV'"), None);
        assert_eq!(format("(SELECT 1 FORMAT CSV)"), None);
        assert_eq!(format("WITH 1 AS a SELECT a -- FORMAT CSV"), None);
    }

    #[test]
    fn two_statements_are_seen_and_a_semicolon_in_text_is_not_one() {
        assert_eq!(scan(b"SELECT 1; SELECT 2"), Statement::Several);
        assert_eq!(scan(b"INSERT INTO t SELECT 1; DROP TABLE t"), Statement::Several);
        assert_eq!(scan(b"SELECT 1;; SELECT 2"), Statement::Several);
        assert_eq!(scan(b"INSERT INTO t SELECT 1;; DROP TABLE t"), Statement::Several);
        assert_eq!(scan(b"SELECT ';' ; -- end"), Statement::Select { format: None });
        assert_eq!(scan(b"SELECT ';;' ;; ;"), Statement::Select { format: None });
        assert_eq!(scan(b"INSERT INTO t SELECT 1;;"), other_insert());
        assert_eq!(scan(b"SELECT $a$;$a$"), Statement::Select { format: None });
        assert_eq!(scan(b" -- nothing\n/* at all */"), Statement::Empty);
    }

    #[test]
    fn what_touches_the_hosts_files_is_refused() {
        assert_eq!(scan(b"SELECT 1 INTO OUTFILE 'x'"), Statement::Refused { clause: "INTO OUTFILE" });
        assert_eq!(
            scan(b"INSERT INTO t FROM INFILE 'x' FORMAT CSV"),
            Statement::Refused { clause: "FROM INFILE" }
        );
    }

    #[test]
    fn an_insert_select_is_the_engines_business() {
        assert_eq!(scan(b"INSERT INTO t (a) SELECT number FROM numbers(3)"), other_insert());
        assert_eq!(scan(b"INSERT INTO t WITH 1 AS x SELECT x"), other_insert());
    }
}
