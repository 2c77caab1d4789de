//! Replacements: a value of one object is copied into others.

use serde_json::{Map, Number, Value, json};

use super::builder::{BUILD_HINT, Builder, not_there};
use super::layout::Target;
use super::select::Selector;
use super::weight::weight;
use super::{Item, Known, form};
use crate::api::kustomization::folder;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::limits::BUILT_OBJECT_BYTES;
use crate::definitions::rules::kustomize as rules;

pub(super) fn apply(builder: &mut Builder<'_>, kustomization: usize, document: &Document, items: &mut [Item]) {
    let entries: Vec<(String, Option<String>)> = document
        .items("/replacements")
        .map(|(pointer, entry)| (pointer, entry.get("path").and_then(Value::as_str).map(str::to_owned)))
        .collect();
    for (pointer, path) in entries {
        let Some(path) = path else {
            let finding = replacement(builder, document, &pointer, items);
            builder.findings.extend(finding);
            continue;
        };
        let Target::File(file) = builder.layout.target(folder(builder.layout.path(kustomization)), &path) else {
            builder.findings.push(not_there(document, &format!("{pointer}/path"), &path));
            continue;
        };
        builder.used.insert(file);
        for of_file in builder.parsed.get(file).map_or(&[][..], |parsed| &parsed.documents) {
            builder.findings.extend(form::check_replacements(of_file));
            let roots: Vec<String> = match &*of_file.value {
                Value::Array(_) => of_file.items("").map(|(pointer, _)| pointer).collect(),
                _ => vec![String::new()],
            };
            for root in roots {
                let finding = replacement(builder, of_file, &root, items);
                builder.findings.extend(finding);
            }
        }
    }
}

/// Carries out the one at `pointer`; what is wrong with it, if something is.
fn replacement(builder: &mut Builder<'_>, document: &Document, pointer: &str, items: &mut [Item]) -> Option<Finding> {
    let invalid =
        |at: String, message: String| Some(Finding::at(&rules::INVALID, document, &at, FindingPlace::Value, message));
    let copied = match copied(document, pointer, items) {
        Ok(copied) => copied,
        Err(NoValue { at, is_open, .. }) if is_open || builder.is_in_part() => {
            let message = "what this copies from is made of what is not read: the replacement is not carried out";
            let finding = Finding::at(&rules::NOT_CARRIED_OUT, document, &at, FindingPlace::Value, message);
            return Some(finding.hint(BUILD_HINT));
        }
        Err(NoValue { at, message, .. }) => return invalid(at, message),
    };
    let targets: Vec<(String, Value)> =
        document.items(&format!("{pointer}/targets")).map(|(at, target)| (at, target.clone())).collect();
    if targets.is_empty() {
        return invalid(pointer.to_owned(), "a replacement has a `source` and `targets`".to_owned());
    }
    for (at, target) in targets {
        if target.get("select").is_none_or(Value::is_null) {
            return invalid(at, "a target says by `select` which objects it is about".to_owned());
        }
        let mut selectors = Vec::new();
        for field in ["select", "reject"] {
            let entries = match target.get(field) {
                Some(Value::Array(entries)) => entries.clone(),
                Some(entry) => vec![entry.clone()],
                None => Vec::new(),
            };
            let parsed: Result<Vec<Selector>, _> = entries.iter().map(Selector::of).collect();
            match parsed {
                Ok(parsed) if builder.may_take(parsed.iter().map(Selector::bytes).sum()) => selectors.push(parsed),
                Ok(_) => return invalid(at, "the kustomizations select more than is carried out here".to_owned()),
                Err((member, message)) => return invalid(format!("{at}/{field}/{member}"), message),
            }
        }
        let fits =
            |item: &Item, of: usize| selectors.get(of).is_some_and(|it| it.iter().any(|it| it.fits_by_history(item)));
        let paths = target.get("fieldPaths").and_then(Value::as_array).cloned().unwrap_or_default();
        let paths: Vec<String> = if paths.is_empty() {
            vec!["metadata.name".to_owned()]
        } else {
            paths.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for item in items.iter_mut().filter(|item| fits(item, 0) && !fits(item, 1)) {
            let written = paths.iter().map(|path| pointers(&item.document.value, path, false).len().max(1));
            let bytes = weight(&item.document.value) + written.sum::<usize>() * weight(&copied.value);
            if bytes > BUILT_OBJECT_BYTES || !builder.may_take(bytes) {
                return invalid(
                    at,
                    format!("the replacement makes an object larger than {} MiB", BUILT_OBJECT_BYTES >> 20),
                );
            }
            for (index, path) in paths.iter().enumerate() {
                if !write(item, path, &copied, &target, document, &at) {
                    let object = item.document.name().unwrap_or_default();
                    return invalid(format!("{at}/fieldPaths/{index}"), format!("{object} has no `{path}`"));
                }
            }
        }
    }
    None
}

/// The value that is copied, and how it is written: into a scalar only its text goes, and what stands there stays text or a number.
struct Copied {
    value: Value,
    text: String,
}

/// Why there is no value to copy.
struct NoValue {
    at: String,
    message: String,
    /// Whether it may be there in what is not read.
    is_open: bool,
}

impl NoValue {
    fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into(), is_open: false }
    }
}

/// What the replacement at `pointer` copies: text that it says itself, or a value of an object.
fn copied(document: &Document, pointer: &str, items: &[Item]) -> Result<Copied, NoValue> {
    let member = |name: &str| {
        let at = format!("{pointer}/{name}");
        let value = document.value.pointer(&at).filter(|value| !value.is_null());
        value.map(|value| (at, value))
    };
    match (member("source"), member("sourceValue")) {
        (Some((at, source)), None) => of_object(source, &at, items),
        // What is no text is named as such where the form of the kustomization is checked.
        (None, Some((_, value))) => Ok(Copied { text: text_of(value), value: value.clone() }),
        (Some(_), Some((at, _))) => Err(NoValue::new(at, "a replacement has either `source` or `sourceValue`")),
        (None, None) => Err(NoValue::new(pointer, "a replacement has a `source`")),
    }
}

fn of_object(source: &Value, pointer: &str, items: &[Item]) -> Result<Copied, NoValue> {
    // Names of a source are names, and no patterns.
    let exact = |field: &str, own: &str| {
        let wanted = source.get(field).and_then(Value::as_str).unwrap_or_default();
        wanted.is_empty() || own == wanted
    };
    let is_meant = |item: &&Item| {
        let (group, version) = item.group_and_version();
        exact("group", group)
            && exact("version", version)
            && exact("kind", item.kind())
            && item.identities().any(|(name, namespace)| exact("name", name) && exact("namespace", namespace))
    };
    let mut meant = items.iter().filter(is_meant);
    let (Some(item), None) = (meant.next(), meant.next()) else {
        return Err(NoValue::new(pointer, "the source of the replacement is not one object"));
    };
    let path = source.get("fieldPath").and_then(Value::as_str).unwrap_or("metadata.name");
    let at = match pointers(&item.document.value, path, false).first() {
        Some(at) => at.clone(),
        None => {
            let is_open = item.generated == Some(Known::Part);
            let missing = NoValue::new(format!("{pointer}/fieldPath"), format!("the source has no `{path}`"));
            return Err(NoValue { is_open, ..missing });
        }
    };
    let value = item.document.value.pointer(&at).cloned().unwrap_or_default();
    let written = item.document.written(&at).filter(|_| value.is_number() || value.is_boolean());
    let text = written.filter(|text| !text.contains("${")).unwrap_or_else(|| text_of(&value));
    let (Some((delimiter, index)), Value::String(_)) = (options(source), &value) else {
        return Ok(Copied { value, text });
    };
    let part = usize::try_from(index).ok().and_then(|index| text.split(delimiter).nth(index));
    part.map(|part| Copied { value: Value::String(part.to_owned()), text: part.to_owned() })
        .ok_or_else(|| NoValue::new(format!("{pointer}/options"), format!("`{text}` has no part {index}")))
}

/// Delimiter and which of the parts; before the first for a negative number.
fn options(value: &Value) -> Option<(&str, i64)> {
    let delimiter = value.pointer("/options/delimiter")?.as_str().filter(|delimiter| !delimiter.is_empty())?;
    Some((delimiter, value.pointer("/options/index").and_then(Value::as_i64).unwrap_or_default()))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What stands in the place of `old` then. As `kustomize build` does it: of a scalar the text is replaced, and its type stays.
fn replaced(old: &Value, copied: &Copied, target: &Value) -> Value {
    let is_scalar = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    if !is_scalar(old) || !is_scalar(&copied.value) {
        return copied.value.clone();
    }
    let text = match options(target) {
        Some((delimiter, index)) => part_replaced(&text_of(old), delimiter, index, &copied.text),
        None if !old.is_string() && !copied.value.is_string() => return copied.value.clone(),
        None => copied.text.clone(),
    };
    if old.is_string() { Value::String(text) } else { plain(text) }
}

/// The text without quotes.
fn plain(text: String) -> Value {
    let number = || text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number);
    let whole = text.parse::<i64>().ok().map(Value::from);
    let boolean = text.parse::<bool>().ok().map(Value::from);
    whole.or(boolean).or_else(number).unwrap_or(Value::String(text))
}

fn write(item: &mut Item, path: &str, copied: &Copied, target: &Value, document: &Document, at: &str) -> bool {
    let create = target.pointer("/options/create") == Some(&Value::Bool(true));
    if create {
        make(&mut item.document.value, path);
    }
    let pointers = pointers(&item.document.value, path, create);
    for pointer in &pointers {
        let Some(old) = item.document.value.pointer_mut(pointer) else { continue };
        *old = replaced(old, copied, target);
        item.written(pointer, document.origin(at));
    }
    !pointers.is_empty()
}

fn part_replaced(text: &str, delimiter: &str, index: i64, new: &str) -> String {
    let mut parts: Vec<&str> = text.split(delimiter).collect();
    let place = usize::try_from(index).ok();
    match place.map(|place| parts.get_mut(place)) {
        None => parts.insert(0, new),
        Some(Some(part)) => *part = new,
        Some(None) => parts.push(new),
    }
    parts.join(delimiter)
}

/// Makes the mappings on the way to a field that is not there, and entries of lists that are told by a member.
fn make(value: &mut Value, path: &str) {
    let mut here = value;
    let steps = steps(path);
    for (number, step) in steps.iter().enumerate() {
        if let Some((key, wanted)) = told_by(step) {
            let Some(entries) = here.as_array_mut() else { return };
            let known = entries.iter().position(|entry| is_told_by(entry, key, wanted));
            let at = known.unwrap_or(entries.len());
            if known.is_none() {
                entries.push(json!({ key: wanted }));
            }
            let Some(entry) = entries.get_mut(at) else { return };
            here = entry;
            continue;
        }
        let Some(map) = here.as_object_mut().filter(|_| step != "*") else { return };
        let is_of_list = steps.get(number + 1).is_some_and(|next| told_by(next).is_some());
        let made = || if is_of_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
        here = map.entry(step.as_str()).or_insert_with(made);
    }
}

/// `[key=a.b]`: the entry of a list whose member says so.
fn told_by(step: &str) -> Option<(&str, &str)> {
    step.strip_prefix('[')?.strip_suffix(']')?.split_once('=')
}

fn is_told_by(entry: &Value, key: &str, wanted: &str) -> bool {
    entry.get(key).and_then(Value::as_str) == Some(wanted)
}

/// The steps of a path: `spec.list.[key=a.b].0.x\.y`.
fn steps(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut inside = false;
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        let next = match character {
            '\\' => characters.next(),
            '.' if !inside => {
                steps.push(String::new());
                continue;
            }
            character => {
                inside = character == '[' || (inside && character != ']');
                Some(character)
            }
        };
        if let (Some(next), Some(step)) = (next, steps.last_mut()) {
            step.push(next);
        }
    }
    steps.retain(|step| !step.is_empty());
    steps.into_iter().map(|step| key_in_brackets(&step).map_or(step.clone(), str::to_owned)).collect()
}

/// The key of a step such as `[karpenter.sh/discovery]`: in brackets a dot is none between steps. Those with `=` are about entries of a list.
fn key_in_brackets(step: &str) -> Option<&str> {
    step.strip_prefix('[')?.strip_suffix(']').filter(|key| !key.contains('='))
}

/// Where the path leads in the object. With `create` the last step may be one that is not there yet.
fn pointers(value: &Value, path: &str, create: bool) -> Vec<String> {
    let mut found = vec![String::new()];
    for step in steps(path) {
        let mut next = Vec::new();
        for pointer in found {
            let Some(here) = value.pointer(&pointer) else { continue };
            let entries = || here.as_array().into_iter().flatten().enumerate();
            if step == "*" {
                next.extend(entries().map(|(index, _)| format!("{pointer}/{index}")));
            } else if let Some((key, wanted)) = told_by(&step) {
                let meant = entries().filter(|(_, entry)| is_told_by(entry, key, wanted));
                next.extend(meant.map(|(index, _)| format!("{pointer}/{index}")));
            } else {
                let at = spans::join(&pointer, &step);
                if value.pointer(&at).is_some() || (create && here.is_object()) {
                    next.push(at);
                }
            }
        }
        found = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `kustomize build` 5.5 does it.
    #[test]
    fn of_a_scalar_only_the_text_is_copied() {
        let copied = |value: Value| Copied { text: text_of(&value), value };
        for (old, new, expected) in [
            (json!(10), json!("25"), json!(25)),
            (json!(false), json!("true"), json!(true)),
            (json!("web"), json!(58), json!("58")),
            (json!("web"), json!(true), json!("true")),
            (json!(10), json!("many"), json!("many")),
            (json!(10), json!(2.5), json!(2.5)),
            (json!(["a"]), json!("b"), json!("b")),
            (json!("a"), json!({ "b": 1 }), json!({ "b": 1 })),
        ] {
            assert_eq!(replaced(&old, &copied(new), &Value::Null), expected, "{old}");
        }
        let part = |index: i64| json!({ "options": { "delimiter": "-", "index": index } });
        for (index, expected) in [(1, "a-x-c"), (-1, "x-a-b-c"), (9, "a-b-c-x")] {
            assert_eq!(replaced(&json!("a-b-c"), &copied(json!("x")), &part(index)), json!(expected), "{index}");
        }
        assert_eq!(replaced(&json!("a-b"), &copied(json!(7)), &part(1)), json!("a-7"));
    }

    #[test]
    fn entries_of_lists_are_made_as_kustomize_makes_them() {
        let mut object = json!({ "list": [{ "key": "a" }] });
        for path in ["list.[key=b.c].value", "list.[key=a].value", "other.[name=x].on.y", "list.*.none"] {
            make(&mut object, path);
        }
        let value = json!({});
        let expected = json!({
            "list": [{ "key": "a", "value": value }, { "key": "b.c", "value": value }],
            "other": [{ "name": "x", "on": { "y": value } }],
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn a_key_may_stand_in_brackets() {
        let object = json!({ "terms": [{ "tags": { "karpenter.sh/discovery": "x" } }] });
        let expected = vec!["/terms/0/tags/karpenter.sh~1discovery".to_owned()];
        for path in [
            "terms.*.tags.[karpenter.sh/discovery]",
            "terms.0.tags.[karpenter.sh/discovery]",
            "terms.*.tags.karpenter\\.sh/discovery",
        ] {
            assert_eq!(pointers(&object, path, false), expected, "{path}");
        }
        assert_eq!(steps("a.[name=b.c].d"), ["a", "[name=b.c]", "d"]);
    }
}
