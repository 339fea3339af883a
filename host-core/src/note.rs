use usage::Limits;

/// A text as a report may carry it: one line, bounded, never empty. What others wrote ends up in reports and logs only through here.
pub(crate) fn note(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(Limits::NOTE_BYTES));
    for c in text.trim().chars() {
        let c = if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
        if line.len() + c.len_utf8() > Limits::NOTE_BYTES - '…'.len_utf8() {
            line.push('…');
            break;
        }
        line.push(c);
    }
    if line.is_empty() { "nothing was said".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_bounded_line() {
        assert_eq!(note(" a\nb\u{1b}c\u{2028} "), "a b c");
        assert_eq!(note("\n\t"), "nothing was said");
        assert!(note(&"é".repeat(2000)).len() <= Limits::NOTE_BYTES);
    }
}
