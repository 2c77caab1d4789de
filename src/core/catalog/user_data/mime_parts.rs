//! User data in parts: the MIME archive that cloud-init reads, taken apart and put together.
//!
//! Headers and bodies of parts are kept as they are, so a part in base64 stays one that says so. The reader is strict where
//! cloud-init would guess, because a part that is lost is an instance that never joins, and it knows the line of everything.
//! Source: RFC 2046, section 5.1; cloud-init's user data formats.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mime::Mime;

use super::{Finding, FindingCode, UserDataError};

pub(super) const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";
pub(super) const NODE_CONFIG: &str = "application/node.eks.aws";

/// The boundary between parts, unless a part has a line that begins with it.
const BOUNDARY: &str = "//";

/// Archives inside archives that are taken apart; what lies deeper stays as it is.
const DEPTH_MAX: usize = 8;

/// One part of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MimePart {
    /// As they were written, a folded one on several lines.
    pub headers: Vec<String>,
    pub body: String,
    /// Where the body begins in what it was read from, from 1.
    pub line: usize,
}

impl MimePart {
    pub fn new(content_type: &str, body: &str) -> Self {
        Self { headers: vec![format!("Content-Type: {content_type}")], body: body.to_owned(), line: 1 }
    }

    /// `text/x-shellscript`; without a header what RFC 2046 says.
    pub fn content_type(&self) -> String {
        let stated = header(&self.headers, "content-type");
        let essence = stated.as_deref().map(|value| value.split(';').next().unwrap_or_default().trim().to_lowercase());
        essence.unwrap_or_else(|| "text/plain".to_owned())
    }

    /// Whether it is an archive itself.
    fn holds_parts(&self) -> bool {
        self.content_type().starts_with("multipart/") && header(&self.headers, "content-transfer-encoding").is_none()
    }

    /// The text, which the body may only stand for; `None` where it can not be read here. An error: it says that it is in base64, and is not.
    pub fn text(&self) -> Result<Option<Cow<'_, str>>, UserDataError> {
        let encoding = header(&self.headers, "content-transfer-encoding").unwrap_or_default();
        match encoding.trim().to_lowercase().as_str() {
            "" | "7bit" | "8bit" | "binary" => Ok(Some(Cow::Borrowed(&self.body))),
            "base64" => {
                let digits: String = self.body.split_whitespace().collect();
                let bytes = BASE64_STANDARD.decode(digits).map_err(|_| {
                    UserDataError::malformed(self.line, "the part says that it is in base64, and is not")
                })?;
                // What is compressed, or no text, is for the instance to understand.
                Ok(String::from_utf8(bytes).ok().map(Cow::Owned))
            }
            _ => Ok(None),
        }
    }
}

/// Whether a text is meant to be an archive.
pub(super) fn is_archive(text: &str) -> bool {
    ["mime-version:", "content-type:"].iter().any(|header| {
        let start = text.trim_start().get(..header.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(header))
    })
}

/// The parts of an archive, in their order. Lines end with LF.
pub(super) fn read(text: &str, findings: &mut Vec<Finding>) -> Result<Vec<MimePart>, UserDataError> {
    let mut lines = Lines::new(text, 1);
    while lines.peek().is_some_and(|line| line.trim().is_empty()) {
        lines.next();
    }
    let start = lines.number();
    let headers = lines.headers()?;
    let parts = divided(&mut lines, &headers, start, findings)?;
    unpacked(parts, DEPTH_MAX, findings)
}

/// With the parts of archives in the place of these: cloud-init reads them like the others, and nodeadm does not look into an archive that is
/// a part.
fn unpacked(parts: Vec<MimePart>, depth: usize, findings: &mut Vec<Finding>) -> Result<Vec<MimePart>, UserDataError> {
    let mut all = Vec::new();
    for part in parts {
        if depth == 0 || !part.holds_parts() {
            all.push(part);
            continue;
        }
        let inner = divided(&mut Lines::new(&part.body, part.line), &part.headers, part.line, findings)?;
        all.extend(unpacked(inner, depth - 1, findings)?);
    }
    Ok(all)
}

/// The parts behind these headers, which begin at this line.
fn divided(
    lines: &mut Lines<'_>,
    headers: &[String],
    start: usize,
    findings: &mut Vec<Finding>,
) -> Result<Vec<MimePart>, UserDataError> {
    let delimiter = format!("--{}", boundary(headers, start)?);
    skip_outside(lines, &delimiter, findings);
    let mut parts = Vec::new();
    loop {
        let opened_at = lines.number();
        let Some(opening) = lines.next() else {
            let message = match parts.is_empty() {
                true => format!("there is no part: none begins with `{delimiter}`"),
                false => return Ok(parts),
            };
            return Err(UserDataError::malformed(opened_at.saturating_sub(1).max(1), message));
        };
        if is_end(opening, &delimiter) {
            skip_outside(lines, &delimiter, findings);
            return match lines.peek() {
                None => Ok(parts),
                Some(_) => Err(UserDataError::malformed(lines.number(), "a part behind the end of all parts")),
            };
        }
        if lines.rest_is_blank() {
            // The last delimiter without its closing `--`: nothing is behind it, so nothing is lost.
            return Ok(parts);
        }
        let headers = lines.headers()?;
        let line = lines.number();
        let mut body: Vec<&str> = Vec::new();
        while let Some(next) = lines.peek().filter(|next| !is_delimiter(next, &delimiter)) {
            body.push(next);
            lines.next();
        }
        if lines.peek().is_none() {
            let message = format!("the part has no end: write `{delimiter}--` behind it");
            return Err(UserDataError::malformed(opened_at, message));
        }
        parts.push(MimePart { headers, body: body.join("\n"), line });
    }
}

/// One archive of all parts, in their order.
pub(super) fn write(parts: &[MimePart]) -> String {
    let is_taken = |boundary: &str| {
        let delimiter = format!("--{boundary}");
        parts.iter().flat_map(|part| part.body.split('\n')).any(|line| line.starts_with(&delimiter))
    };
    let others = (1..).map(|number: u32| format!("//{number}//"));
    let mut boundaries = std::iter::once(BOUNDARY.to_owned()).chain(others);
    let boundary = boundaries.find(|boundary| !is_taken(boundary)).unwrap_or_default();
    let mut text = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n");
    for part in parts {
        let headers: String = part.headers.iter().map(|header| format!("{header}\n")).collect();
        text.push_str(&format!("\n--{boundary}\n{headers}\n{}", part.body));
    }
    text.push_str(&format!("\n--{boundary}--\n"));
    text
}

fn boundary(headers: &[String], line: usize) -> Result<String, UserDataError> {
    let malformed = |message: String| UserDataError::malformed(line, message);
    let stated = header(headers, "content-type")
        .ok_or_else(|| malformed("there is no header Content-Type, which says how parts are divided".to_owned()))?;
    let content_type: Mime = without_space(&stated).parse().map_err(|error| {
        malformed(format!("Content-Type `{}` is not understood ({error}): is the boundary in quotes?", stated.trim()))
    })?;
    if content_type.type_() != mime::MULTIPART {
        return Err(malformed(format!(
            "Content-Type is `{}`; an archive is multipart/mixed",
            content_type.essence_str()
        )));
    }
    match content_type.get_param(mime::BOUNDARY).map(|boundary| boundary.as_str().to_owned()) {
        Some(boundary) if !boundary.is_empty() => Ok(boundary),
        _ => Err(malformed("Content-Type names no boundary".to_owned())),
    }
}

/// A value in which space means nothing, without it: any may stand around `;` and `=`, and a folded header has a tab there as well.
fn without_space(value: &str) -> String {
    let mut is_quoted = false;
    value
        .chars()
        .filter(|character| {
            is_quoted ^= *character == '"';
            is_quoted || !character.is_whitespace()
        })
        .collect()
}

/// The value of a header, unfolded.
fn header(headers: &[String], name: &str) -> Option<String> {
    headers.iter().find_map(|header| {
        let (key, value) = header.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.replace('\n', ""))
    })
}

/// Skips lines until one begins or ends a part. Text there is read by nobody, so it is named.
fn skip_outside(lines: &mut Lines<'_>, delimiter: &str, findings: &mut Vec<Finding>) {
    while let Some(line) = lines.peek().filter(|line| !is_delimiter(line, delimiter)) {
        if !line.trim().is_empty() && !findings.iter().any(|it| it.code == FindingCode::TextOutsideParts) {
            let text = format!("`{}` stands in no part, so nobody reads it", line.trim());
            findings.push(Finding::new(FindingCode::TextOutsideParts, Some(lines.number()), text));
        }
        lines.next();
    }
}

fn is_delimiter(line: &str, delimiter: &str) -> bool {
    line.trim_end() == delimiter || is_end(line, delimiter)
}

fn is_end(line: &str, delimiter: &str) -> bool {
    line.trim_end().strip_prefix(delimiter) == Some("--")
}

/// Lines with their numbers.
struct Lines<'t> {
    lines: Vec<&'t str>,
    next: usize,
    /// The number of the first of them.
    first: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str, first: usize) -> Self {
        let mut lines: Vec<&str> = text.split('\n').collect();
        // What ends with a line break has no line behind it.
        if lines.last() == Some(&"") {
            lines.pop();
        }
        Self { lines, next: 0, first }
    }

    /// Of the line that comes next.
    fn number(&self) -> usize {
        self.first + self.next
    }

    fn peek(&self) -> Option<&'t str> {
        self.lines.get(self.next).copied()
    }

    fn next(&mut self) -> Option<&'t str> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    fn rest_is_blank(&self) -> bool {
        self.lines.iter().skip(self.next).all(|line| line.trim().is_empty())
    }

    /// Headers up to the empty line behind them, which is taken off, too.
    fn headers(&mut self) -> Result<Vec<String>, UserDataError> {
        let mut headers: Vec<String> = Vec::new();
        while let Some(line) = self.next() {
            if line.trim().is_empty() {
                return Ok(headers);
            }
            let is_folded = line.starts_with([' ', '\t']);
            match headers.last_mut().filter(|_| is_folded) {
                Some(header) => {
                    header.push('\n');
                    header.push_str(line);
                }
                None if line.split_once(':').is_some_and(|(name, _)| is_header_name(name)) => {
                    headers.push(line.to_owned());
                }
                None => {
                    let message = format!("`{line}` is no header, and no empty line ends the headers above it");
                    return Err(UserDataError::malformed(self.number() - 1, message));
                }
            }
        }
        Err(UserDataError::malformed(
            (self.number() - 1).max(1),
            "an empty line must follow the headers, and then the parts",
        ))
    }
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "Content-Type: multipart/mixed;\n boundary=\"==X==\"\nMIME-Version: 1.0\n\nfor nobody\n--==X==\n\
                       Content-Type: text/x-shellscript\n\n#!/bin/sh\necho --==X\n\n--==X==\ncontent-type: TEXT/Cloud-Config; \
                       charset=utf-8\nContent-Transfer-Encoding: base64\n\nI2Nsb3VkLWNvbmZpZw==\n--==X==--\n";

    fn error(text: &str) -> String {
        read(text, &mut Vec::new()).unwrap_err().to_string()
    }

    #[test]
    fn parts_are_kept_as_they_are() {
        let mut findings = Vec::new();
        let parts = read(TWO, &mut findings).unwrap();
        assert_eq!(parts[0].body, "#!/bin/sh\necho --==X\n", "the line break before a boundary is the boundary's");
        assert_eq!((parts[0].line, parts[1].line), (9, 16));
        assert_eq!(parts[1].content_type(), "text/cloud-config");
        assert_eq!(parts[1].text().unwrap().as_deref(), Some("#cloud-config"));
        assert_eq!(parts[1].headers.len(), 2);
        assert_eq!((findings.len(), findings[0].line), (1, Some(5)));
        let written = write(&parts);
        let again = read(&written, &mut Vec::new()).unwrap();
        let plain =
            |parts: &[MimePart]| parts.iter().map(|it| (it.headers.clone(), it.body.clone())).collect::<Vec<_>>();
        assert_eq!(plain(&again), plain(&parts));
    }

    #[test]
    fn a_body_that_stands_for_its_text_is_read() {
        let of = |encoding: &str, body: &str| {
            let mut part = MimePart::new(SHELL_SCRIPT, body);
            part.headers.push(format!("Content-Transfer-Encoding: {encoding}"));
            part.text().map(|text| text.map(Cow::into_owned))
        };
        assert_eq!(of("BASE64", "IyEv\nYmluL3No\n\n"), Ok(Some("#!/bin/sh".to_owned())));
        assert_eq!(of("8bit", "é"), Ok(Some("é".to_owned())));
        assert_eq!(of("base64", "H4sI"), Ok(None), "compressed");
        assert_eq!(of("quoted-printable", "=C3"), Ok(None));
        assert_eq!(
            of("base64", "!!!").unwrap_err().to_string(),
            "spec.userData:1: the part says that it is in base64, and is not"
        );
    }

    #[test]
    fn a_boundary_is_in_no_part() {
        let parts = [MimePart::new(SHELL_SCRIPT, "#!/bin/sh\n--//\n"), MimePart::new(SHELL_SCRIPT, "--//1//x")];
        let written = write(&parts);
        assert!(written.contains("boundary=\"//2//\""), "{written}");
        let bodies: Vec<String> = read(&written, &mut Vec::new()).unwrap().into_iter().map(|it| it.body).collect();
        assert_eq!(bodies, ["#!/bin/sh\n--//\n", "--//1//x"]);
    }

    #[test]
    fn what_is_no_archive_is_an_error_with_its_line() {
        for (text, line, part) in [
            ("MIME-Version: 1.0", 1, "an empty line must follow"),
            ("MIME-Version: 1.0\n\n--//\n\nx\n--//--\n", 1, "no header Content-Type"),
            ("Content-Type: text/plain\n\nx\n", 1, "multipart/mixed"),
            ("Content-Type: multipart/mixed\n\nx\n", 1, "names no boundary"),
            ("Content-Type: multipart/mixed; boundary=//\n\nx\n", 1, "in quotes"),
            (
                "Content-Type: multipart/mixed; boundary=\"b\"\nnothing\n\n--b\n\nx\n--b--\n",
                2,
                "`nothing` is no header",
            ),
            ("Content-Type: multipart/mixed; boundary=\"b\"\n\nx\ny\n", 4, "there is no part"),
            ("Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\nx\ny\n", 3, "no end: write `--b--`"),
            (
                "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n#!/bin/sh\n\n--b--\n",
                4,
                "`#!/bin/sh` is no header",
            ),
            (
                "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\nx\n--b--\n--b\n\ny\n--b--\n",
                7,
                "behind the end",
            ),
        ] {
            let message = error(text);
            assert!(message.starts_with(&format!("spec.userData:{line}: ")) && message.contains(part), "{message}");
        }
    }

    #[test]
    fn the_last_boundary_may_be_an_open_one_when_nothing_follows() {
        let text = "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\nx\n--b\n\n";
        assert_eq!(read(text, &mut Vec::new()).unwrap().len(), 1);
        let empty = "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b--\n";
        assert_eq!(read(empty, &mut Vec::new()).unwrap(), []);
    }

    /// A script with an empty line before its `#!` is not started.
    #[test]
    fn a_part_without_headers_begins_with_its_text() {
        let text = "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\n#!/bin/sh\n--b--\n";
        let written = write(&read(text, &mut Vec::new()).unwrap());
        assert!(written.contains("\n--//\n\n#!/bin/sh\n"), "{written}");
        assert_eq!(read(&written, &mut Vec::new()).unwrap()[0].body, "#!/bin/sh");
    }

    #[test]
    fn space_in_a_content_type_means_nothing() {
        for content_type in [
            "multipart/mixed;\n\tboundary=\"a b\"",
            "multipart/mixed ;  boundary = \"a b\" ;",
            "multipart/mixed;charset=\"us-ascii\";\n  boundary=\"a b\"",
        ] {
            let text = format!("MIME-Version: 1.0\nContent-Type: {content_type}\n\n--a b\n\nx\n--a b--\n");
            assert_eq!(read(&text, &mut Vec::new()).map(|parts| parts.len()), Ok(1), "{text}");
        }
    }

    #[test]
    fn archives_in_archives_are_taken_apart() {
        let outer = |body: &str| {
            format!(
                "Content-Type: multipart/mixed; boundary=\"o\"\n\n--o\nContent-Type: multipart/alternative;\n \
                 boundary=\"i\"\n\n{body}\n--o\n\nlast\n--o--\n"
            )
        };
        let inner = "--i\nContent-Type: text/x-one\n\none\n--i\nContent-Type: text/x-two\n\ntwo\n--i--\n";
        let parts = read(&outer(inner), &mut Vec::new()).unwrap();
        let found: Vec<(&str, usize)> = parts.iter().map(|part| (part.body.as_str(), part.line)).collect();
        assert_eq!(found, [("one", 10), ("two", 14), ("last", 19)]);
        assert_eq!(parts[0].content_type(), "text/x-one");
        assert!(error(&outer("--i\nnothing\n\none\n--i--")).starts_with("spec.userData:8: `nothing` is no header"));
        let mut deep = "x".to_owned();
        for level in 0..DEPTH_MAX * 3 {
            deep = format!("Content-Type: multipart/mixed; boundary=\"b{level}\"\n\n--b{level}\n{deep}\n--b{level}--");
        }
        assert!(read(&format!("{deep}\n"), &mut Vec::new()).is_ok(), "what lies deeper is for the machine to read");
    }

    #[test]
    fn archives_are_known_by_their_first_header() {
        assert!(is_archive("\n\nmime-version: 1.0"));
        assert!(is_archive("Content-Type: multipart/mixed"));
        assert!(!is_archive("#!/bin/sh\nMIME-Version: 1.0") && !is_archive("") && !is_archive("é"));
    }
}
