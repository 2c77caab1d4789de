//! Plain scalars that mean one thing to `kubectl`, kustomize and Flux, which read YAML by go-yaml, and another to what reads YAML 1.2, as
//! this does.
//! Sources: `resolve` of go.yaml.in/yaml/v2 and `ParseInt` of Go, which it asks; YAML 1.2.2 section 10.3. go-yaml has no base 60.

use serde_json::{Number as JsonNumber, Value};

use super::value;

/// What the scalar may be taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// `yes`, `on`, `n`: a boolean for kubectl, text for the other.
    Boolean(bool),
    /// `012`: octal for kubectl, decimal or text for the other.
    Octal(Option<i64>),
    /// `1_000`, `098765432109`, `0X1F`, `.inf`: a number for kubectl alone; with its value, where it is whole.
    Number(Option<i64>),
    /// A number for all but kubectl.
    Text,
}

/// Whether programs disagree on a scalar written without quotes.
pub fn disagreement(text: &str) -> Option<Disagreement> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Some(Disagreement::Boolean(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Some(Disagreement::Boolean(false)),
        _ => {}
    }
    let first = *text.as_bytes().first()?;
    let may_be_number = first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.');
    if !may_be_number || text.len() > LENGTH_MAX || is_everyday(text) {
        return None;
    }
    let to_kubectl = number(text);
    // What does not end in the alphabet of a number is one to nobody.
    if to_kubectl.is_none() && !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte)) {
        return None;
    }
    let to_others = match value::read(text) {
        Ok(Value::Number(number)) => number.as_f64(),
        _ => None,
    };
    match (to_kubectl, to_others) {
        (None, None) => None,
        (Some(one), Some(other)) if one.value.total_cmp(&other).is_eq() => None,
        (Some(number), _) if number.is_octal => Some(Disagreement::Octal(number.whole)),
        (Some(number), _) => Some(Disagreement::Number(number.whole)),
        (None, Some(_)) => Some(Disagreement::Text),
    }
}

/// No number is longer to go-yaml, and is not infinite.
const LENGTH_MAX: usize = 400;

/// Numbers as people write them, which all programs read alike.
fn is_everyday(text: &str) -> bool {
    let starts_well = text == "0" || text.starts_with(|first| matches!(first, '1'..='9'));
    starts_well && text.len() < 16 && all(text, |byte| byte.is_ascii_digit())
}

/// A number to go-yaml.
struct Number {
    value: f64,
    whole: Option<i64>,
    is_octal: bool,
}

/// What go-yaml makes of a plain scalar that is a number to it.
fn number(text: &str) -> Option<Number> {
    let float = |value: f64| {
        // 2^53: beyond it not every whole number is one.
        let is_whole = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and far from the ends of i64")]
        let whole = is_whole.then_some(value as i64);
        Number { value, whole, is_octal: false }
    };
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Some(float(f64::NEG_INFINITY)),
        _ => {}
    }
    let plain = if text.starts_with('.') { text.to_owned() } else { text.replace('_', "") };
    if let Some((value, base)) = whole(&plain) {
        #[expect(clippy::cast_precision_loss, reason = "held against what was read as such a number, too")]
        let as_float = value as f64;
        return Some(Number { value: as_float, whole: i64::try_from(value).ok(), is_octal: base == 8 });
    }
    let value = plain.parse::<f64>().ok().filter(|value| is_of_float_style(&plain) && value.is_finite())?;
    Some(float(value))
}

/// `ParseInt` with base 0, or else `ParseUint`; and the base.
fn whole(text: &str) -> Option<(i128, u32)> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixed = |prefixes: [&str; 2]| prefixes.into_iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (digits_of_base, base) = match () {
        () if let Some(rest) = prefixed(["0x", "0X"]) => (rest, 16),
        () if let Some(rest) = prefixed(["0b", "0B"]) => (rest, 2),
        () if let Some(rest) = prefixed(["0o", "0O"]) => (rest, 8),
        () if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        () => (digits, 10),
    };
    if !all(digits_of_base, |byte| char::from(byte).is_digit(base)) {
        return None;
    }
    let value = i128::from_str_radix(digits_of_base, base).ok()?;
    let value = if text.starts_with('-') { -value } else { value };
    let is_unsigned = text.starts_with(|first: char| first.is_ascii_digit());
    let most = if is_unsigned { i128::from(u64::MAX) } else { i128::from(i64::MAX) };
    (i128::from(i64::MIN)..=most).contains(&value).then_some((value, base))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_of_float_style(text: &str) -> bool {
    let is_digits = |text: &str| all(text, |byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    is_mantissa && exponent.is_none_or(is_digits)
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

impl Disagreement {
    /// What programs make of it, as the end of a sentence.
    pub fn meanings(self) -> &'static str {
        match self {
            Self::Boolean(true) => "is `true` to kubectl and text to YAML 1.2",
            Self::Boolean(false) => "is `false` to kubectl and text to YAML 1.2",
            Self::Octal(_) => "is an octal number to kubectl and something else to YAML 1.2",
            Self::Number(_) => "is a number to kubectl and text to YAML 1.2",
            Self::Text => "is text to kubectl and a number to YAML 1.2",
        }
    }

    /// What to write instead.
    pub fn instead(self, text: &str) -> String {
        match self {
            Self::Boolean(value) => format!("quote it: \"{text}\"; or write `{value}` for a boolean"),
            Self::Number(Some(value)) => format!("quote it: \"{text}\"; or write `{value}` for a number"),
            _ => format!("quote it: \"{text}\"; or write a decimal number"),
        }
    }

    /// What the text is to kubectl. `None` where JSON has nothing for it.
    pub fn value(self, text: &str) -> Option<Value> {
        match self {
            Self::Boolean(value) => Some(Value::Bool(value)),
            Self::Octal(Some(whole)) | Self::Number(Some(whole)) => Some(Value::from(whole)),
            Self::Octal(None) | Self::Number(None) => {
                number(text).and_then(|it| JsonNumber::from_f64(it.value)).map(Value::Number)
            }
            Self::Text => Some(Value::String(text.to_owned())),
        }
    }

    /// The YAML that means to every program what the text means to kubectl, for a field of this type; `None` where it can not be
    /// of the type.
    pub fn as_kubectl(self, text: &str, type_name: &str) -> Option<String> {
        match (self, type_name) {
            (_, "string") => Some(format!("\"{text}\"")),
            (Self::Boolean(value), "boolean") => Some(value.to_string()),
            (Self::Number(whole) | Self::Octal(whole), "integer") => whole.map(|number| number.to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_programs_read_differently() {
        for text in ["yes", "Off", "n", "Y", "012", "-07", "1_000", "1_000.5", "012345670", "0_7"] {
            assert!(disagreement(text).is_some(), "{text}");
        }
        // Of account numbers those that begin with a zero; and what else Go reads as a number.
        for (text, whole) in [
            ("098765432109", Some(98_765_432_109)),
            ("012345678901", Some(12_345_678_901)),
            ("08", Some(8)),
            ("019", Some(19)),
            ("0789", Some(789)),
            ("0X1F", Some(31)),
            ("0B1", Some(1)),
            ("0x_1", Some(1)),
            ("1e1_0", Some(10_000_000_000)),
            ("1_e3", Some(1000)),
            ("12345678901234567890123", None),
            (".inf", None),
            ("-.INF", None),
            (".nan", None),
        ] {
            assert_eq!(disagreement(text), Some(Disagreement::Number(whole)), "{text}");
        }
        assert_eq!(disagreement("0O7"), Some(Disagreement::Octal(Some(7))));
    }

    #[test]
    fn a_scalar_can_be_written_so_that_all_programs_agree() {
        let written = |text: &str, type_name: &str| disagreement(text).unwrap().as_kubectl(text, type_name);
        assert_eq!(written("yes", "boolean").as_deref(), Some("true"));
        assert_eq!(written("yes", "string").as_deref(), Some("\"yes\""));
        assert_eq!(written("1_000", "integer").as_deref(), Some("1000"));
        assert_eq!(written("012", "integer").as_deref(), Some("10"));
        assert_eq!(written("08", "integer").as_deref(), Some("8"));
        assert_eq!(written(".inf", "integer"), None);
        assert_eq!(written("yes", "array"), None);
    }

    #[test]
    fn has_the_value_that_kubectl_reads() {
        let value = |text: &str| disagreement(text).unwrap().value(text);
        for (text, expected) in [
            ("on", Some(true.into())),
            ("No", Some(false.into())),
            ("012", Some(10.into())),
            ("1_000", Some(1000.into())),
            ("1_000.5", Some(1000.5.into())),
            (".inf", None),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn leaves_the_rest_alone() {
        for text in [
            "",
            "true",
            "null",
            "~",
            "0",
            "10",
            "1.5",
            "0x1f",
            "1e3",
            "720h",
            "al2023@latest",
            "10.0",
            "-1.5e-3",
            "0x1F",
            "0o17",
            "0b101",
            "1.",
            "m5_large",
            "12:99",
            "12:30",
            "19:30:00",
            "1:00:59",
            "09:30",
            "1e400x",
            "5%",
            "0x",
            "+",
            "-",
            ".",
            "1.2.3",
            "no-op",
            "Never",
            "0.5",
            "::1",
            "10:0:0:0:0:0:0:777",
            "2026-11-21",
            "_1",
            "é",
        ] {
            assert_eq!(disagreement(text), None, "{text}");
        }
    }
}
