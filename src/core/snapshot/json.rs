//! A stream of JSON documents, cut into objects.

use std::borrow::Cow;

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

use super::collect::{Collector, LIST_DEPTH_MAX, Read, read_object};
use super::object::{Object, ObjectPlace};
use super::problem::problem;
use super::read_error::ReadError;

/// So many items of a list are read by all processors, then kept one after the other: what is not trimmed yet stays little.
const ITEMS_AT_ONCE: usize = 2048;

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
    take(text, head, rest.get(..length).unwrap_or_default(), collector, 0)?;
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

/// An item of a list: an object, or a list in turn.
enum Item<'a> {
    Object(Read),
    List(Head<'a>, &'a str),
}

/// Hands over an object, or each object of a list.
fn take(text: &str, head: Head<'_>, raw: &str, collector: &mut Collector, depth: usize) -> Result<(), ReadError> {
    let Head { kind, api_version, items } = match item(text, head, raw)? {
        Item::Object(object) => {
            return collector.add(object);
        }
        Item::List(head, _) => head,
    };
    if depth == LIST_DEPTH_MAX && items.is_some() {
        let place = ObjectPlace::Byte { text, byte: position_in(text, raw) };
        return Err(ReadError::TooDeep { place: place.to_string(), limit: LIST_DEPTH_MAX });
    }
    // The objects of a typed list have no kind of their own.
    let own_kind = kind.as_deref().and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
    let own = (api_version.as_deref(), own_kind);
    for items in items.unwrap_or_default().chunks(ITEMS_AT_ONCE) {
        let read: Vec<_> = items.par_iter().map(|raw| item_of_list(text, own, raw.get())).collect();
        for item in read {
            match item? {
                Item::Object(object) => collector.add(object)?,
                Item::List(head, raw) => take(text, head, raw, collector, depth + 1)?,
            }
        }
    }
    Ok(())
}

/// `own` is what the list says of its items, API version and kind.
fn item_of_list<'a>(text: &str, own: (Option<&'a str>, Option<&'a str>), raw: &'a str) -> Result<Item<'a>, ReadError> {
    let start = position_in(text, raw);
    let mut head: Head<'_> = serde_json::from_str(raw).map_err(|error| syntax_error(text, start, &error))?;
    if head.kind.is_none() {
        head.kind = own.1.map(Cow::Borrowed);
        head.api_version = head.api_version.or(own.0.map(Cow::Borrowed));
    }
    item(text, head, raw)
}

fn item<'a>(text: &str, head: Head<'a>, raw: &'a str) -> Result<Item<'a>, ReadError> {
    let place = || ObjectPlace::Byte { text, byte: position_in(text, raw) };
    let Some(kind) = head.kind.as_deref() else {
        return Err(ReadError::NoKind { place: place().to_string() });
    };
    if head.items.is_some() || kind.ends_with("List") {
        return Ok(Item::List(head, raw));
    }
    read_object(head.api_version.as_deref().unwrap_or_default(), kind, &Object::Json(raw), &place).map(Item::Object)
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
        problem: problem(error),
    }
}
