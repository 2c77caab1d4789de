//! Durations as Karpenter writes them: Go syntax restricted to hours, minutes and seconds, or `Never`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration of whole seconds, or `Never`. The text it was read from is kept, so that writing it back changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NillableDuration {
    seconds: Option<u64>,
    text: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a duration: write hours, minutes and seconds as in `1h30m`, or `Never`")]
pub struct DurationError(pub String);

impl NillableDuration {
    pub fn never() -> Self {
        Self { seconds: None, text: "Never".to_owned() }
    }

    pub fn from_seconds(seconds: u64) -> Self {
        Self { seconds: Some(seconds), text: format!("{seconds}s") }
    }

    /// Seconds, or `None` for `Never`.
    pub fn seconds(&self) -> Option<u64> {
        self.seconds
    }
}

impl FromStr for NillableDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = if text == "Never" { None } else { Some(parse_seconds(text)?) };
        Ok(Self { seconds, text: text.to_owned() })
    }
}

/// Reads `2h`, `1h30m`, `90s`. Each unit may occur in any order, as the pattern `^([0-9]+(s|m|h))+$` allows.
fn parse_seconds(text: &str) -> Result<u64, DurationError> {
    let error = || DurationError(text.to_owned());
    if text.is_empty() {
        return Err(error());
    }
    let mut total: u64 = 0;
    let mut number: Option<u64> = None;
    for character in text.chars() {
        if let Some(digit) = character.to_digit(10) {
            let value = number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(u64::from(digit)));
            number = Some(value.ok_or_else(error)?);
            continue;
        }
        let unit_seconds = match character {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return Err(error()),
        };
        let part = number.take().and_then(|n| n.checked_mul(unit_seconds)).ok_or_else(error)?;
        total = total.checked_add(part).ok_or_else(error)?;
    }
    if number.is_some() { Err(error()) } else { Ok(total) }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Serialize for NillableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for NillableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for NillableDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NillableDuration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^(([0-9]+(s|m|h))+|Never)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_in_any_order_and_never() {
        assert_eq!("1h30m".parse::<NillableDuration>().unwrap().seconds(), Some(5400));
        assert_eq!("30s2h".parse::<NillableDuration>().unwrap().seconds(), Some(7230));
        assert_eq!("Never".parse::<NillableDuration>().unwrap().seconds(), None);
    }

    #[test]
    fn refuses_what_the_pattern_refuses() {
        for text in ["", "30", "m", "1d", "-1h", "1.5h", "never", "99999999999999999999s", "18446744073709551615h"] {
            assert!(text.parse::<NillableDuration>().is_err(), "{text}");
        }
    }

    #[test]
    fn keeps_its_text() {
        let duration: NillableDuration = "720h".parse().unwrap();
        assert_eq!(serde_json::to_string(&duration).unwrap(), "\"720h\"");
    }
}
