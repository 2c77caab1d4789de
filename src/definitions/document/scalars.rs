//! Plain scalars that mean one thing to YAML 1.1, which `kubectl` and Git tools read, and another to YAML 1.2.
//! Sources: <https://yaml.org/type/bool.html>, <https://yaml.org/type/int.html>, YAML 1.2.2 section 10.3.

/// What the scalar may be taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// `yes`, `on`, `n`: a boolean for one, text for the other.
    Boolean(bool),
    /// `012`: octal for one, decimal or text for the other.
    Octal,
    /// `0o17`: octal in 1.2, text in 1.1.
    NewOctal,
    /// `1_000`.
    Underscore,
    /// `0b101`.
    Binary,
    /// `12:30`: base 60 in 1.1.
    Sexagesimal,
}

/// Whether programs disagree on a scalar written without quotes.
pub fn disagreement(text: &str) -> Option<Disagreement> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Some(Disagreement::Boolean(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Some(Disagreement::Boolean(false)),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let first = *digits.as_bytes().first()?;
    if !first.is_ascii_digit() {
        return None;
    }
    if let Some(octal) = digits.strip_prefix("0o") {
        return all(octal, |byte| (b'0'..=b'7').contains(&byte)).then_some(Disagreement::NewOctal);
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return all(binary, |byte| matches!(byte, b'0' | b'1' | b'_')).then_some(Disagreement::Binary);
    }
    if digits.len() > 1 && first == b'0' && all(digits, |byte| (b'0'..=b'7').contains(&byte) || byte == b'_') {
        return Some(Disagreement::Octal);
    }
    if digits.contains('_') && all(digits, |byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.')) {
        return Some(Disagreement::Underscore);
    }
    is_sexagesimal(digits).then_some(Disagreement::Sexagesimal)
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

/// `[1-9][0-9]*(:[0-5]?[0-9])+`
fn is_sexagesimal(text: &str) -> bool {
    let mut parts = text.split(':');
    let head = parts.next().unwrap_or_default();
    let mut tail = 0;
    for part in parts {
        tail += 1;
        let in_range = part.parse::<u32>().is_ok_and(|value| value < 60);
        if part.len() > 2 || !all(part, |byte| byte.is_ascii_digit()) || !in_range {
            return false;
        }
    }
    tail > 0 && !head.starts_with('0') && all(head, |byte| byte.is_ascii_digit())
}

impl Disagreement {
    /// What programs make of it, as the end of a sentence.
    pub fn meanings(self) -> &'static str {
        match self {
            Self::Boolean(true) => "is `true` to kubectl and text to YAML 1.2",
            Self::Boolean(false) => "is `false` to kubectl and text to YAML 1.2",
            Self::Octal => "is an octal number to kubectl and something else to YAML 1.2",
            Self::NewOctal => "is an octal number to YAML 1.2 and text to YAML 1.1",
            Self::Underscore => "is a number to kubectl and text to YAML 1.2",
            Self::Binary => "is a number to kubectl and text to YAML 1.2",
            Self::Sexagesimal => "is a number of base 60 to YAML 1.1 and text to YAML 1.2",
        }
    }

    /// What to write instead.
    pub fn instead(self, text: &str) -> String {
        match self {
            Self::Boolean(value) => format!("quote it: \"{text}\"; or write `{value}` for a boolean"),
            Self::Underscore => format!("quote it: \"{text}\"; or write `{}` for a number", text.replace('_', "")),
            _ => format!("quote it: \"{text}\"; or write a decimal number"),
        }
    }

    /// The YAML that means to every program what the text means to kubectl, for a field of this type; `None` where it can not be
    /// of the type.
    pub fn as_kubectl(self, text: &str, type_name: &str) -> Option<String> {
        match (self, type_name) {
            (_, "string") => Some(format!("\"{text}\"")),
            (Self::Boolean(value), "boolean") => Some(value.to_string()),
            (Self::Underscore, "integer") => text.replace('_', "").parse::<i64>().ok().map(|number| number.to_string()),
            (Self::Octal, "integer") => {
                i64::from_str_radix(&text.replace('_', ""), 8).ok().map(|number| number.to_string())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_programs_read_differently() {
        for text in ["yes", "Off", "n", "Y", "012", "-07", "1_000", "1_000.5", "0b1", "0o17", "12:30", "1:00:59"] {
            assert!(disagreement(text).is_some(), "{text}");
        }
    }

    #[test]
    fn a_scalar_can_be_written_so_that_all_programs_agree() {
        let written = |text: &str, type_name: &str| disagreement(text).unwrap().as_kubectl(text, type_name);
        assert_eq!(written("yes", "boolean").as_deref(), Some("true"));
        assert_eq!(written("yes", "string").as_deref(), Some("\"yes\""));
        assert_eq!(written("1_000", "integer").as_deref(), Some("1000"));
        assert_eq!(written("012", "integer").as_deref(), Some("10"));
        assert_eq!(written("12:30", "integer"), None);
        assert_eq!(written("yes", "array"), None);
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
            "08",
            "09",
            "m5_large",
            "12:99",
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
