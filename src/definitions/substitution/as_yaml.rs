//! What a text is after Flux replaced its variables. Flux does that in what kustomize wrote, and reads it then: quotes that YAML does not need
//! are gone by that time, and a value may be a number, a list, a mapping, or have quotes of its own.
//! Source: `SubstituteVariables` of github.com/fluxcd/pkg/kustomize.

use std::sync::Arc;

use serde_json::Value;

use crate::definitions::diagnostic::Severity;
use crate::definitions::document;

/// Where the text stands: what it is read as hangs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    Mapping,
    List,
}

/// What Flux makes of `text`, for which `new` stands. `None`: it is no YAML.
pub(super) fn read(text: &str, new: String, around: In) -> Option<Value> {
    if !is_plain(text) {
        return Some(Value::String(new));
    }
    // Flux takes line breaks out of values.
    let new = new.replace('\n', "");
    let yaml = match around {
        In::Mapping => format!("x: {new}\n"),
        In::List => format!("- {new}\n"),
    };
    let mut parsed = document::parse(0, &Arc::from(yaml));
    let is_broken = parsed.all().any(|finding| finding.rule.severity == Severity::Error);
    let document = parsed.documents.pop().filter(|_| !is_broken && parsed.documents.is_empty())?;
    match (document.read_by_kubectl().value.into_value(), around) {
        (Value::Object(members), In::Mapping) if members.len() == 1 => {
            members.into_iter().next().map(|(_, value)| value)
        }
        (Value::Array(entries), In::List) if entries.len() == 1 => entries.into_iter().next(),
        _ => None,
    }
}

/// Whether kustomize writes the text without quotes, and on one line.
fn is_plain(text: &str) -> bool {
    serde_yaml::to_string(text).is_ok_and(|yaml| yaml.strip_suffix('\n') == Some(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As `kustomize build` 5.7 and envsubst of Flux make them.
    #[test]
    fn what_stands_for_a_text_is_read_as_flux_reads_it() {
        for (text, new, expected) in [
            ("${GEN}", "3", Some(json!(3))),
            ("${YES}", "yes", Some(json!(true))),
            ("${OCT}", "012", Some(json!(10))),
            ("x: ${GEN}", "x: 3", Some(json!("x: 3"))),
            ("${quote}${GEN}${quote}", "\"3\"", Some(json!("3"))),
            ("# ${GEN}", "# 3", Some(json!("# 3"))),
            ("a ${GEN}\nb\n", "a 3\nb\n", Some(json!("a 3\nb\n"))),
            ("${MAP}", "{\"a\": \"b\"}", Some(json!({ "a": "b" }))),
            ("${GEN} ", "3 ", Some(json!("3 "))),
            ("$${GEN}", "${GEN}", Some(json!("${GEN}"))),
            ("${EMPTY}", "", Some(json!(null))),
            ("-${GEN}", "-3", Some(json!(-3))),
            ("- ${GEN}", "- 3", Some(json!("- 3"))),
            ("[${GEN}", "[3", Some(json!("[3"))),
            ("${HASH}", "#a", Some(json!(null))),
            ("'${GEN}'", "'3'", Some(json!("'3'"))),
            ("${GEN}:", "3:", Some(json!("3:"))),
            ("${A}-${B}", "a-b", Some(json!("a-b"))),
            ("${PAIR}", "a: b", None),
            ("${STAR}", "*a", None),
            ("${Q}x", "\"a\"x", None),
        ] {
            assert_eq!(read(text, new.to_owned(), In::Mapping), expected, "{text}");
        }
        for (text, new, expected) in
            [("${ZONES}", "[a, yes]", json!(["a", true])), ("${PAIR}", "a: b", json!({ "a": "b" }))]
        {
            assert_eq!(read(text, new.to_owned(), In::List), Some(expected), "{text}");
        }
    }
}
