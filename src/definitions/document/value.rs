//! Values of one YAML document as JSON.
//!
//! Reads through serde_yaml with a visitor of its own, because the stock one keeps the last of two equal keys, knows no
//! merge keys, and puts no bound on what aliases expand to.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::spans::MERGE_KEY;
use crate::definitions::limits;

#[derive(Debug)]
pub struct ValueError {
    pub message: String,
    /// Too much of something, rather than wrong.
    pub limit: bool,
    /// Aliases make too much of what is written.
    pub of_aliases: bool,
    /// Line and column in the text, from 1.
    pub place: Option<(usize, usize)>,
}

/// Reads the one document that `text` holds.
pub fn read(text: &str) -> Result<Value, ValueError> {
    let values = Cell::new(0);
    let seed = Seed { values: &values };
    seed.deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| {
        let message = error.to_string();
        let limit = values.get() > limits::DOCUMENT_VALUES || message.contains("limit exceeded");
        let place = error.location().map(|location| (location.line(), location.column()));
        // Its lines are counted from the start of the document, which nobody can look up.
        let of_aliases = message.starts_with("repetition limit exceeded");
        let message = match message.split(" at line ").next() {
            _ if of_aliases => "the aliases stand for more than a hundred times of what is written",
            words => words.unwrap_or_default(),
        };
        ValueError { message: message.to_owned(), limit, of_aliases, place }
    })
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    values: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.values.set(self.values.get() + 1);
        if self.values.get() > limits::DOCUMENT_VALUES {
            return Err(D::Error::custom(format!("the document holds more than {} values", limits::DOCUMENT_VALUES)));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::String(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::String(value.to_string()))
    }

    /// JSON has neither infinity nor "not a number"; they become the text that YAML has for them. Of a whole number it has no fraction:
    /// kubectl sends 10 for `10.0`.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // 2^53: beyond it not every whole number is one.
        if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and far from the ends of i64")]
            return Ok(Value::from(value as i64));
        }
        let text = || if value.is_nan() { ".nan" } else { ".inf" }.to_owned();
        Ok(Number::from_f64(value).map_or_else(|| Value::String(text()), Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        while let Some(key) = access.next_key_seed(self)? {
            let value = access.next_value_seed(self)?;
            let key = key_text(key).ok_or_else(|| A::Error::custom("a key must be text"))?;
            if key == MERGE_KEY {
                if !is_mergeable(&value) {
                    return Err(A::Error::custom("`<<` takes a mapping or a list of mappings"));
                }
                merged.push(value);
            } else if !map.contains_key(&key) {
                map.insert(key, value);
            }
        }
        merged.into_iter().for_each(|value| merge(&mut map, value));
        Ok(Value::Object(map))
    }

    /// A tag, `!name value`: the parser reports it; the value goes on without.
    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        let (_tag, variant) = access.variant_seed(self)?;
        variant.newtype_variant_seed(self)
    }
}

/// Numbers and booleans as keys are text to Kubernetes.
fn key_text(key: Value) -> Option<String> {
    match key {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null => Some("null".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_mergeable(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_object),
        value => value.is_object(),
    }
}

/// What a merge key adds: members that the mapping itself does not have.
fn merge(map: &mut Map<String, Value>, value: Value) {
    match value {
        Value::Object(other) => other.into_iter().for_each(|(key, value)| {
            if !map.contains_key(&key) {
                map.insert(key, value);
            }
        }),
        Value::Array(items) => items.into_iter().for_each(|item| merge(map, item)),
        _ => {}
    }
}

/// The text of a value that stands for a variable.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}
