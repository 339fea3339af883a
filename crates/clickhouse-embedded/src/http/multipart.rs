//! `multipart/form-data`, as clients send long parameters: every part is a field with a name.

use crate::Exception;

pub(super) fn fields(body: &[u8], boundary: &str) -> Result<Vec<(String, String)>, Exception> {
    let broken = || Exception::new(36, "BAD_ARGUMENTS", "The multipart body cannot be read");
    let delimiter = format!("--{boundary}");
    let mut rest = after(body, delimiter.as_bytes()).ok_or_else(broken)?;
    let separator = format!("\r\n--{boundary}");
    let mut fields = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(fields);
        }
        rest = rest.strip_prefix(b"\r\n").ok_or_else(broken)?;
        let end = find(rest, separator.as_bytes()).ok_or_else(broken)?;
        let (part, following) = rest.split_at_checked(end).ok_or_else(broken)?;
        let head_end = find(part, b"\r\n\r\n").ok_or_else(broken)?;
        let (head, value) = part.split_at_checked(head_end).ok_or_else(broken)?;
        let value = value.get(4..).ok_or_else(broken)?;
        let head = String::from_utf8_lossy(head);
        let name = head.split(['\r', '\n']).find_map(field_name).ok_or_else(broken)?;
        let value = String::from_utf8(value.to_vec()).map_err(|_| {
            Exception::new(36, "BAD_ARGUMENTS", format!("The field {name} is not UTF-8 text"))
        })?;
        fields.push((name, value));
        rest = following.get(separator.len()..).ok_or_else(broken)?;
    }
}

fn field_name(line: &str) -> Option<String> {
    let (header, rest) = line.split_once(':')?;
    if !header.trim().eq_ignore_ascii_case("content-disposition") {
        return None;
    }
    let mut parts = rest.split(';').filter_map(|part| part.trim().split_once('='));
    let (_, name) = parts.find(|(key, _)| key.trim().eq_ignore_ascii_case("name"))?;
    Some(name.trim().trim_matches('"').to_owned())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn after<'a>(haystack: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    haystack.get(find(haystack, needle)? + needle.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_whole_with_line_ends_inside() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT\r\n1\r\n--b\r\n\
                    Content-Disposition: form-data; name=\"param_x\"\r\nContent-Type: text/plain\r\n\r\n\r\n--b--\r\n";
        let expected =
            vec![("query".to_owned(), "SELECT\r\n1".to_owned()), ("param_x".to_owned(), String::new())];
        assert_eq!(fields(body.as_bytes(), "b").unwrap(), expected);
    }

    #[test]
    fn a_cut_multipart_body_is_an_error() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT 1";
        assert!(fields(body.as_bytes(), "b").is_err());
        assert!(fields(b"", "b").is_err());
    }
}
