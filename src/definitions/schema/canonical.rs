//! Durations and quantities as people write them, in the form that Kubernetes reads.

use jsonschema::PatternOptions;
use serde_json::{Value, json};

use crate::api::validation::forms::{self, Form};

/// What was meant by a text that does not have the form, where only one thing can have been meant.
pub fn meant(form: &Form, text: &str) -> Option<String> {
    let meant = match form {
        _ if [forms::DURATION_OR_NEVER, forms::DURATION, forms::WINDOW].contains(form) => duration(form, text)?,
        _ if [forms::QUANTITY, forms::VOLUME_SIZE].contains(form) => quantity(text)?,
        _ if *form == forms::GROUP => text.split('/').next().unwrap_or_default().to_owned(),
        _ if *form == forms::BUDGET_NODES => text.split_whitespace().collect::<String>(),
        _ => return None,
    };
    (meant != text && fits(form, &meant)).then_some(meant)
}

fn fits(form: &Form, text: &str) -> bool {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    let validator = options.build(&json!({ "pattern": form.pattern }));
    validator.is_ok_and(|validator| validator.is_valid(&Value::String(text.to_owned())))
}

/// `30d` is `720h`, `1h 30min` is `1h30m`.
fn duration(form: &Form, text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    if lower.trim() == "never" {
        return Some("Never".to_owned());
    }
    let mut seconds: u64 = 0;
    let mut rest = lower.trim();
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, behind) = rest.split_at_checked(digits)?;
        let behind = behind.trim_start();
        let letters = behind.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at_checked(letters)?;
        let unit_seconds = match unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            _ => return None,
        };
        seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(unit_seconds)?)?;
        rest = behind.trim_start();
    }
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    // Windows count minutes.
    if *form == forms::WINDOW && seconds > 0 {
        return None;
    }
    let parts = [(hours, "h"), (minutes, "m"), (seconds, "s")];
    let written: String =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    (!written.is_empty()).then_some(written)
}

/// `16 gib` is `16Gi`, `4GB` is `4G`.
fn quantity(text: &str) -> Option<String> {
    let compact: String = text.split_whitespace().collect();
    let digits = compact.find(|character: char| !(character.is_ascii_digit() || character == '.'))?;
    let (number, unit) = compact.split_at_checked(digits)?;
    let suffix = match unit.to_lowercase().as_str() {
        "ki" | "kib" => "Ki",
        "mi" | "mib" => "Mi",
        "gi" | "gib" => "Gi",
        "ti" | "tib" => "Ti",
        "pi" | "pib" => "Pi",
        "kb" => "k",
        "mb" => "M",
        "gb" => "G",
        "tb" => "T",
        "pb" => "P",
        // `m` and `M` are a thousandth and a million.
        "g" => "G",
        "t" => "T",
        "core" | "cores" | "cpu" | "cpus" | "vcpu" | "vcpus" => "",
        _ => return None,
    };
    Some(format!("{number}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_hours_minutes_and_seconds() {
        for (text, expected) in [
            ("30d", Some("720h")),
            ("1h 30min", Some("1h30m")),
            ("2 weeks", Some("336h")),
            ("never", Some("Never")),
            ("90 sec", Some("1m30s")),
            ("90", None),
            ("1 month", None),
            ("0d", None),
            ("99999999999999999999w", None),
            ("", None),
            ("1.5h", None),
            ("-1h", None),
        ] {
            assert_eq!(meant(&forms::DURATION_OR_NEVER, text).as_deref(), expected, "{text}");
        }
        assert_eq!(meant(&forms::DURATION, "never"), None);
        assert_eq!(meant(&forms::WINDOW, "1d").as_deref(), Some("24h"));
        assert_eq!(meant(&forms::WINDOW, "90 sec"), None);
    }

    #[test]
    fn quantities_have_the_suffixes_of_kubernetes() {
        for (text, expected) in [
            ("16gib", Some("16Gi")),
            ("16 Gi", Some("16Gi")),
            ("4GB", Some("4G")),
            ("1.5gi", Some("1.5Gi")),
            ("4 cores", Some("4")),
            ("4 m", None),
            ("four", None),
            ("", None),
        ] {
            assert_eq!(meant(&forms::QUANTITY, text).as_deref(), expected, "{text}");
        }
        assert_eq!(meant(&forms::VOLUME_SIZE, "100gb").as_deref(), Some("100G"));
        assert_eq!(meant(&forms::VOLUME_SIZE, "9999999GB"), None, "no volume has this size");
        assert_eq!(meant(&forms::GROUP, "karpenter.k8s.aws/v1").as_deref(), Some("karpenter.k8s.aws"));
        assert_eq!(meant(&forms::BUDGET_NODES, "10 %").as_deref(), Some("10%"));
    }
}
