//! A stream of YAML documents, cut into objects while it is parsed.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::collect::{Collector, LIST_DEPTH_MAX, read_object};
use super::object::{Object, ObjectPlace};
use super::problem::without_value;
use super::read_error::ReadError;

/// Reads every document of `text` into `collector`. Items of lists are handed over one by one, so that no tree of the
/// whole file is built.
pub(super) fn read(text: &str, collector: &mut Collector) -> Result<(), ReadError> {
    for (index, document) in serde_yaml::Deserializer::from_str(text).enumerate() {
        let mut failure = None;
        let seed = Document { collector: &mut *collector, failure: &mut failure, number: index + 1 };
        if let Err(error) = seed.deserialize(document) {
            return Err(failure.unwrap_or_else(|| syntax_error(text, &error)));
        }
    }
    Ok(())
}

fn syntax_error(text: &str, error: &serde_yaml::Error) -> ReadError {
    let message = error.to_string();
    let Some(location) = error.location() else {
        return ReadError::Syntax { line: 1, column: 1, problem: without_value(&message) };
    };
    // The parser ends in the middle of something: the file does.
    if location.index() >= text.trim_end().len() {
        return ReadError::CutOff { byte: text.len(), line: location.line() };
    }
    let problem = without_value(&message).split(" at line ").next().unwrap_or_default().to_owned();
    ReadError::Syntax { line: location.line(), column: location.column(), problem }
}

/// One document: an object, a list of objects, or nothing.
pub(super) struct Document<'a> {
    pub(super) collector: &'a mut Collector,
    /// The error of an object, which the parser's error type can not carry.
    pub(super) failure: &'a mut Option<ReadError>,
    /// From 1.
    pub(super) number: usize,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a Kubernetes object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<(), A::Error> {
        self.collector.documents += 1;
        let list = (String::new(), String::new());
        let mut items =
            Items { collector: self.collector, failure: self.failure, number: self.number, list, held: None };
        items.drain(sequence)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { collector, failure, number } = self;
        collector.documents += 1;
        let mut fields = Map::new();
        let mut held: Option<Vec<(usize, Value)>> = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" && held.is_none() {
                let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
                let kind = text("kind").strip_suffix("List").unwrap_or_default();
                let list = (text("apiVersion").to_owned(), kind.to_owned());
                let held = held.insert(Vec::new());
                map.next_value_seed(Items { collector, failure, number, list, held: Some(held) })?;
            } else if key == "metadata" && held.is_some() {
                map.next_value::<IgnoredAny>()?;
            } else {
                fields.insert(key, map.next_value()?);
            }
        }
        let place = || ObjectPlace::Document { number, item: None };
        let outcome = match held {
            None => object(collector, Value::Object(fields), "", "", &place, 0),
            Some(held) => typed_list(collector, &fields, held, number),
        };
        outcome.map_err(|error| {
            *failure = Some(error);
            A::Error::custom("an object can not be read")
        })
    }
}

/// Hands over the items that have no kind of their own, now that the kind of their list is known.
fn typed_list(
    collector: &mut Collector,
    fields: &Map<String, Value>,
    held: Vec<(usize, Value)>,
    number: usize,
) -> Result<(), ReadError> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("kind").is_empty() {
        return Err(ReadError::NoKind { place: ObjectPlace::Document { number, item: None }.to_string() });
    }
    let kind = text("kind").strip_suffix("List").unwrap_or_default();
    held.into_iter().try_for_each(|(item, value)| {
        object(collector, value, text("apiVersion"), kind, &|| ObjectPlace::Document { number, item: Some(item) }, 1)
    })
}

/// Hands over an object, or the objects of a list in a list.
fn object<'a>(
    collector: &mut Collector,
    value: Value,
    list_api_version: &str,
    list_kind: &str,
    place: &dyn Fn() -> ObjectPlace<'a>,
    depth: usize,
) -> Result<(), ReadError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let kind = text("kind").unwrap_or_else(|| list_kind.to_owned());
    let api_version = text("apiVersion").unwrap_or_else(|| list_api_version.to_owned());
    if kind.is_empty() {
        return Err(ReadError::NoKind { place: place().to_string() });
    }
    if depth > LIST_DEPTH_MAX {
        return Err(ReadError::TooDeep { place: place().to_string(), limit: LIST_DEPTH_MAX });
    }
    let Some(list_kind) = kind.strip_suffix("List") else {
        return collector.add(read_object(&api_version, &kind, &Object::Value(value), place)?);
    };
    match value {
        Value::Object(mut fields) => match fields.remove("items") {
            Some(Value::Array(items)) => items
                .into_iter()
                .try_for_each(|item| object(collector, item, &api_version, list_kind, place, depth + 1)),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The items of a list. With `held`, those without a kind wait there until that of the list is known.
struct Items<'a> {
    collector: &'a mut Collector,
    failure: &'a mut Option<ReadError>,
    number: usize,
    /// Version and kind of the objects, if the list is typed and said so before.
    list: (String, String),
    held: Option<&'a mut Vec<(usize, Value)>>,
}

impl Items<'_> {
    fn drain<'de, A: SeqAccess<'de>>(&mut self, mut sequence: A) -> Result<(), A::Error> {
        let mut item = 0;
        while let Some(value) = sequence.next_element::<Value>()? {
            let number = self.number;
            let place = || ObjectPlace::Document { number, item: Some(item) };
            match &mut self.held {
                Some(held) if value.get("kind").is_none() && self.list.1.is_empty() => held.push((item, value)),
                _ => {
                    let (api_version, kind) = &self.list;
                    if let Err(error) = object(self.collector, value, api_version, kind, &place, 1) {
                        *self.failure = Some(error);
                        return Err(A::Error::custom("an object can not be read"));
                    }
                }
            }
            item += 1;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of Kubernetes objects")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, sequence: A) -> Result<(), A::Error> {
        self.drain(sequence)
    }
}
