//! Which output formats can be sent piece by piece. The engine makes each piece a document of its own, so a header is
//! repeated in every one and has to be taken off again; formats that are more than rows one after another are not sent
//! in pieces.

use bytes::Bytes;

use crate::Exception;

/// What stands before the rows of each piece.
pub(super) enum Shape {
    Rows,
    /// So many lines.
    Lines(usize),
    /// A count of columns and then so many texts a column, each with its length.
    Binary {
        texts: u64,
    },
}

/// `None`: the whole answer has to be made in one go.
pub(super) fn shape(format: &str, sql: &[u8], settings: &[(String, String)]) -> Option<Shape> {
    let changes_the_document = |text: &[u8]| {
        let text = text.to_ascii_lowercase();
        [b"totals".as_slice(), b"extremes", b"array_of_rows", b"framing"]
            .iter()
            .any(|word| text.windows(word.len()).any(|window| window == *word))
    };
    if changes_the_document(sql) || settings.iter().any(|(name, _)| changes_the_document(name.as_bytes())) {
        return None;
    }
    Some(match format.to_ascii_lowercase().as_str() {
        "rowbinary" | "native" | "csv" | "tsv" | "tabseparated" | "tsvraw" | "tabseparatedraw"
        | "jsoneachrow" | "jsonlines" | "ndjson" | "jsoncompacteachrow" | "jsonstringseachrow"
        | "lineasstring" => Shape::Rows,
        "tsvwithnames" | "tabseparatedwithnames" => Shape::Lines(1),
        "tsvwithnamesandtypes" | "tabseparatedwithnamesandtypes" => Shape::Lines(2),
        "rowbinarywithnames" => Shape::Binary { texts: 1 },
        "rowbinarywithnamesandtypes" => Shape::Binary { texts: 2 },
        _ => return None,
    })
}

impl Shape {
    /// Leaves the first piece as it is and takes the same header off the others.
    pub(super) fn without_header(
        &self,
        piece: Bytes,
        header: &mut Option<Bytes>,
    ) -> Result<Bytes, Exception> {
        let broken = || Exception::new(49, "LOGICAL_ERROR", "The engine's pieces have different headers");
        match header {
            None => {
                let length = self.header_length(&piece).ok_or_else(broken)?;
                *header = Some(piece.slice(..length));
                Ok(piece)
            }
            Some(header) if piece.starts_with(header) => Ok(piece.slice(header.len()..)),
            Some(_) => Err(broken()),
        }
    }

    fn header_length(&self, piece: &[u8]) -> Option<usize> {
        match self {
            Self::Rows => Some(0),
            Self::Lines(count) => {
                let mut ends = piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                ends.nth(count.checked_sub(1)?).map(|(at, _)| at + 1)
            }
            Self::Binary { texts } => {
                let mut rest = piece;
                let columns = varint(&mut rest)?;
                for _ in 0..columns.checked_mul(*texts)? {
                    let length = usize::try_from(varint(&mut rest)?).ok()?;
                    rest = rest.get(length..)?;
                }
                piece.len().checked_sub(rest.len())
            }
        }
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
