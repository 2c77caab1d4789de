//! Durations as Karpenter writes them: Go's syntax with hours, minutes and seconds only, or `Never`. Some fields take
//! all of Go's syntax: [`go_nanoseconds`].

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

/// Nanoseconds of a duration as Go's `time.ParseDuration` reads it, such as `1.5h`, `1h0m0.5s` or `-500ms`; `None` for what it refuses.
pub fn go_nanoseconds(text: &str) -> Option<i64> {
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_where(rest, |character| !character.is_ascii_digit())?;
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_where(after, |character| !character.is_ascii_digit())?,
            None => ("", after),
        };
        let (unit, after) = split_where(after, |character| character == '.' || character.is_ascii_digit())?;
        total = total.checked_add(nanoseconds(whole, fraction, unit)?)?;
        rest = after;
    }
    i64::try_from(if is_negative { -total } else { total }).ok()
}

/// What stands before the first of these characters, and the rest.
fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    text.split_at_checked(text.find(is_end).unwrap_or(text.len()))
}

/// More digits of a fraction than this say nothing: a thousandth of a nanosecond.
const FRACTION_DIGITS_MAX: usize = 16;

fn nanoseconds(whole: &str, fraction: &str, unit: &str) -> Option<i128> {
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok() };
    let fraction = fraction.get(..FRACTION_DIGITS_MAX).unwrap_or(fraction);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some(i128::from(number(whole)?) * unit + i128::from(number(fraction)?) * unit / scale)
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
    fn reads_what_go_reads() {
        let hour = 3_600_000_000_000;
        for (text, nanoseconds) in [
            ("1h", hour),
            ("1.5h", hour * 3 / 2),
            (".5h", hour / 2),
            ("1.h", hour),
            ("24h0m0s", 24 * hour),
            ("1m30.25s", 90_250_000_000),
            ("500ms", 500_000_000),
            ("1us", 1_000),
            ("1\u{b5}s2\u{3bc}s", 3_000),
            ("7ns", 7),
            ("0", 0),
            ("-0", 0),
            ("+1s", 1_000_000_000),
            ("-1h", -hour),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("2562047h47m16.854775807s", i64::MAX),
        ] {
            let read = go_nanoseconds(text);
            // Go takes the last digits of long fractions as rounded as a float does.
            assert!(read.is_some_and(|read| read.abs_diff(nanoseconds) <= 1), "{text}: {read:?}");
        }
        for text in
            ["", "1", "h", ".h", ".", "-", "1d", "1 h", "Never", "1h-1m", "--1h", "3000000h", "99999999999999999999ns"]
        {
            assert_eq!(go_nanoseconds(text), None, "{text}");
        }
    }

    #[test]
    fn keeps_its_text() {
        let duration: NillableDuration = "720h".parse().unwrap();
        assert_eq!(serde_json::to_string(&duration).unwrap(), "\"720h\"");
    }
}
