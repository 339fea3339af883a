use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::{Finding, IdError, Rejection, TurnReport, ids::check_text};

/// Reads at full speed first, and only a refused body a second time, following the path, to say where it is wrong.
pub(super) fn from_json(body: &[u8]) -> Result<TurnReport, Rejection> {
    if let Ok(report) = serde_json::from_slice(body) {
        return Ok(report);
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let parsed: Result<TurnReport, _> = serde_path_to_error::deserialize(&mut reader);
    match parsed {
        Err(error) => Err(refusal(&pointer(error.path()), error.inner())),
        Ok(report) => match reader.end() {
            Err(error) => Err(refusal("", &error)),
            Ok(()) => Ok(report),
        },
    }
}

/// RFC 6901.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            serde_path_to_error::Segment::Seq { index } => step(&mut pointer, &index.to_string()),
            serde_path_to_error::Segment::Map { key } => step(&mut pointer, key),
            serde_path_to_error::Segment::Enum { .. } | serde_path_to_error::Segment::Unknown => {}
        }
    }
    pointer
}

fn step(pointer: &mut String, member: &str) {
    pointer.push('/');
    pointer.push_str(&member.replace('~', "~0").replace('/', "~1"));
}

/// The codes that our own readers put in front of their message.
const CODES: [&str; 17] = [
    "id_empty",
    "id_too_long",
    "id_control_character",
    "id_other_character",
    "text_empty",
    "text_too_long",
    "text_control_character",
    "digest_empty",
    "digest_too_long",
    "digest_control_character",
    "not_an_integer",
    "negative_number",
    "number_out_of_range",
    "too_many_providers",
    "too_many_frames",
    "too_many_items",
    "unknown_value",
];

fn refusal(pointer: &str, error: &serde_json::Error) -> Rejection {
    let full = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = full.strip_suffix(&place).unwrap_or(&full);
    let mut pointer = pointer.to_owned();
    let (overall, code, says): (_, &'static str, String) = match error.classify() {
        serde_json::error::Category::Data => {
            let (code, member, says) = data_fault(message);
            if let Some(member) = member {
                step(&mut pointer, member);
            }
            ("invalid_report", code, says)
        }
        _ if message.contains("surrogate") || message.contains("unexpected end of hex escape") => (
            "invalid_report",
            "lone_surrogate",
            "A string has half of a surrogate pair, which no text in UTF-8 can hold; send the character whole".to_owned(),
        ),
        _ if message.starts_with("number out of range") => (
            "invalid_report",
            "number_out_of_range",
            "A number is too large; quantities are whole numbers below 2^64".to_owned(),
        ),
        _ if message.starts_with("recursion limit") => {
            ("invalid_report", "too_deep", "The body nests deeper than a report does; send the documented shape".to_owned())
        }
        _ if message.starts_with("trailing characters") => {
            ("malformed_json", "trailing_data", "Something follows the end of the JSON value; send one value alone".to_owned())
        }
        _ => ("malformed_json", "malformed_json", format!("The body is not JSON: {}", shortened(message))),
    };
    let detail = format!("{says} (line {}, column {}).", error.line(), error.column());
    Rejection { code: overall, findings: vec![Finding { code, pointer, detail }] }
}

/// Code, member that belongs to the pointer, and what to do.
fn data_fault(message: &str) -> (&'static str, Option<&str>, String) {
    let quoted = message.split('`').nth(1);
    let text = shortened(message);
    if let Some((code, rest)) = message.split_once(": ")
        && let Some(code) = CODES.into_iter().find(|known| *known == code)
    {
        let mut says = shortened(rest);
        if let Some(first) = says.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        (code, None, says)
    } else if message.starts_with("unknown field") {
        (
            "unknown_member",
            None,
            format!(
                "This member is not known, which may be a typing error; remove it or write it right: {text}"
            ),
        )
    } else if message.starts_with("missing field") {
        ("missing_member", quoted, "This member is required; add it".to_owned())
    } else if message.starts_with("duplicate field") {
        ("duplicate_member", quoted, "This member stands here twice; send it once".to_owned())
    } else if message.starts_with("invalid type: null") {
        ("null_member", None, format!("A member that has no value is left out, never null: {text}"))
    } else {
        ("wrong_type", None, format!("Send the documented type: {text}"))
    }
}

/// The sender's own text stands in these messages and may be as long as a body.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(300) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
    }
}

impl IdError {
    pub(crate) fn sentence(self) -> String {
        let mut text = self.to_string();
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        text.push('.');
        text
    }
}

/// Free text: the rule of identities, under its own codes.
pub(crate) fn check_note(text: &str, max: usize) -> Result<(), (&'static str, String)> {
    check_text(text, max).map_err(|error| match error {
        IdError::Empty => ("text_empty", "the text is empty".to_owned()),
        IdError::TooLong { bytes, max } => {
            ("text_too_long", format!("the text has {bytes} bytes, more than {max}"))
        }
        IdError::ControlCharacter { at } | IdError::OtherCharacter { at } => (
            "text_control_character",
            format!("the text has a control character or line separator at byte {at}"),
        ),
    })
}

pub(crate) fn check_digest(text: &str, max: usize) -> Result<(), (&'static str, String)> {
    check_text(text, max).map_err(|error| match error {
        IdError::Empty => ("digest_empty", "the digest is empty; leave it out when there is none".to_owned()),
        IdError::TooLong { bytes, max } => {
            ("digest_too_long", format!("the digest has {bytes} bytes, more than {max}"))
        }
        IdError::ControlCharacter { at } | IdError::OtherCharacter { at } => (
            "digest_control_character",
            format!("the digest has a control character or line separator at byte {at}"),
        ),
    })
}

/// For an optional member: absent is none, null is refused as of the wrong type.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

pub(super) fn whole_u64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_u64(WholeNumber { max: u64::MAX })
}

pub(super) fn whole_u32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let wide = deserializer.deserialize_u64(WholeNumber { max: u64::from(u32::MAX) })?;
    u32::try_from(wide).map_err(de::Error::custom) // the visitor has already refused more
}

struct WholeNumber {
    max: u64,
}

impl de::Visitor<'_> for WholeNumber {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", self.max)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        if value > self.max {
            return Err(E::custom(format_args!(
                "number_out_of_range: the number {value} is more than {}",
                self.max
            )));
        }
        Ok(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        let value = u64::try_from(value).map_err(|_| {
            E::custom(format_args!(
                "negative_number: the number {value} is negative; usage is never less than nothing"
            ))
        })?;
        self.visit_u64(value)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<u64, E> {
        // Also what the reader makes of -0 and of whole numbers from 2^64.
        Err(E::custom(format_args!(
            "not_an_integer: write a whole number from 0 to {} without sign, fraction or exponent",
            self.max
        )))
    }
}

/// Gives the named types a reader that takes an object and nothing else. The derived one would also take a JSON array with the
/// members in order, a second spelling that nobody documents.
macro_rules! object {
    ($($name:ident),*) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, members: A) -> Result<$name, A::Error> {
                        $name::deserialize(serde::de::value::MapAccessDeserializer::new(members))
                    }
                }

                deserializer.deserialize_map(Object)
            }
        }
    )*};
}

pub(super) use object;

/// Readers that stop at a bound instead of first filling the memory.
pub(super) mod bounded {
    use std::{fmt, marker::PhantomData};

    use serde::{Deserialize, Deserializer, de};

    use super::super::{ConsentReceipt, FrameId, Leg, Limits, ProviderUsage, ServedFrame};
    use super::{check_digest, check_note};

    struct List<T> {
        max: usize,
        code: &'static str,
        of: PhantomData<T>,
    }

    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {}", self.max)
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(item) = items.next_element()? {
                if list.len() == self.max {
                    return Err(de::Error::custom(format_args!(
                        "{}: the list has more than {} items",
                        self.code, self.max
                    )));
                }
                list.push(item);
            }
            Ok(list)
        }
    }

    fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
        max: usize,
        code: &'static str,
    ) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(List { max, code, of: PhantomData })
    }

    pub(in super::super) fn providers<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<ProviderUsage>, D::Error> {
        list(from, Limits::PROVIDERS, "too_many_providers")
    }

    pub(in super::super) fn frames<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ServedFrame>, D::Error> {
        list(from, Limits::FRAMES, "too_many_frames")
    }

    pub(in super::super) fn consents<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<ConsentReceipt>, D::Error> {
        list(from, Limits::CONSENTS, "too_many_items")
    }

    pub(in super::super) fn legs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Leg>, D::Error> {
        list(from, Limits::LEGS, "too_many_items")
    }

    pub(in super::super) fn rejected<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FrameId>, D::Error> {
        list(from, Limits::REJECTED, "too_many_items")
    }

    pub(in super::super) fn reasons<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let notes: Vec<Note> = list(from, Limits::REASONS_PER_LEG, "too_many_items")?;
        Ok(notes.into_iter().map(|note| note.0).collect())
    }

    struct Note(String);

    impl<'de> Deserialize<'de> for Note {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            note(deserializer).map(Self)
        }
    }

    fn coded<T, E: de::Error>(checked: Result<T, (&'static str, String)>) -> Result<T, E> {
        checked.map_err(|(code, says)| E::custom(format_args!("{code}: {says}")))
    }

    pub(in super::super) fn note<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        let text = String::deserialize(from)?;
        coded(check_note(&text, Limits::NOTE_BYTES))?;
        Ok(text)
    }

    pub(in super::super) fn optional_note<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<String>, D::Error> {
        note(from).map(Some)
    }

    pub(in super::super) fn digest<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        let text = String::deserialize(from)?;
        coded(check_digest(&text, Limits::DIGEST_BYTES))?;
        Ok(Some(text))
    }
}
