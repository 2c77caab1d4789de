//! A stream of JSON documents, cut into objects.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

use super::collect::{Collector, LIST_DEPTH_MAX, Object, ObjectPlace};
use super::read::ReadError;

/// Where a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    OfText,
    AtYamlSeparator,
}

/// A document as far as it must be known to take it apart.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a Kubernetes object")]
struct Head<'a> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

/// Reads every document of `text` into `collector`.
pub(super) fn read(text: &str, collector: &mut Collector) -> Result<End, ReadError> {
    let mut start = 0;
    loop {
        let rest = text.get(start..).unwrap_or_default();
        let trimmed = rest.trim_start();
        start += rest.len() - trimmed.len();
        if trimmed.is_empty() {
            return Ok(End::OfText);
        }
        if trimmed.starts_with("---") {
            return Ok(End::AtYamlSeparator);
        }
        start += document(text, start, trimmed, collector)?;
    }
}

/// Reads the document at `start` and gives its length in bytes.
fn document(text: &str, start: usize, rest: &str, collector: &mut Collector) -> Result<usize, ReadError> {
    let (head, length) = if rest.starts_with('[') {
        let (items, length) = next::<Vec<&RawValue>>(text, start, rest)?;
        (Head { items: Some(items), kind: Some(Cow::Borrowed("List")), ..Head::default() }, length)
    } else {
        next::<Head<'_>>(text, start, rest)?
    };
    collector.documents += 1;
    take(text, &head, rest.get(..length).unwrap_or_default(), collector, 0)?;
    Ok(length)
}

fn next<'a, T: Deserialize<'a>>(text: &str, start: usize, rest: &'a str) -> Result<(T, usize), ReadError> {
    let mut stream = Deserializer::from_str(rest).into_iter::<T>();
    match stream.next() {
        Some(Ok(value)) => Ok((value, stream.byte_offset())),
        Some(Err(error)) => Err(syntax_error(text, start, &error)),
        None => Err(ReadError::Empty),
    }
}

/// Hands over an object, or each object of a list.
fn take(text: &str, head: &Head<'_>, raw: &str, collector: &mut Collector, depth: usize) -> Result<(), ReadError> {
    let place = || ObjectPlace::Byte { text, byte: position_in(text, raw) };
    let Some(kind) = head.kind.as_deref() else {
        return Err(ReadError::NoKind { place: place().to_string() });
    };
    let api_version = head.api_version.as_deref().unwrap_or_default();
    let Some(items) = &head.items else {
        if kind.ends_with("List") {
            return Ok(());
        }
        return collector.add(api_version, kind, Object::Json(raw), &place);
    };
    if depth == LIST_DEPTH_MAX {
        return Err(ReadError::TooDeep { place: place().to_string(), limit: LIST_DEPTH_MAX });
    }
    for item in items {
        let raw = item.get();
        let start = position_in(text, raw);
        let mut head: Head<'_> = serde_json::from_str(raw).map_err(|error| syntax_error(text, start, &error))?;
        // The objects of a typed list have no kind of their own.
        if head.kind.is_none() {
            head.kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty()).map(Cow::Borrowed);
            head.api_version = head.api_version.or(Some(Cow::Borrowed(api_version)));
        }
        take(text, &head, raw, collector, depth + 1)?;
    }
    Ok(())
}

/// Where `part`, a piece of `text`, begins.
fn position_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn syntax_error(text: &str, start: usize, error: &Error) -> ReadError {
    let before = text.get(..start).unwrap_or_default();
    let lines_before = before.bytes().filter(|byte| *byte == b'\n').count();
    if error.is_eof() {
        let line = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        return ReadError::CutOff { byte: text.len(), line };
    }
    let on_first_line = error.line() <= 1;
    let columns_before = if on_first_line { before.rsplit('\n').next().unwrap_or_default().chars().count() } else { 0 };
    ReadError::Syntax {
        line: lines_before + error.line(),
        column: columns_before + error.column(),
        problem: without_position(error),
    }
}

/// The message of an error without the place, which counts from the beginning of a piece.
pub(super) fn without_position(error: &Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem).to_owned()
}
