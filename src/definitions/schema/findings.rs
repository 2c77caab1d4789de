//! What the validator says, in words that name the mistake and the way out.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError};
use serde_json::Value;

use super::canonical;
use crate::api::node_pool::{CLASS_GROUP, CLASS_KIND};
use crate::api::validation::forms;
use crate::definitions::document::{Document, OF_TEMPLATE, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::kinds::Kind;
use crate::definitions::rules::schema as rules;
use crate::definitions::suggest::{self, Hint};

/// One finding for each mistake that the error tells of.
pub fn from_error(
    document: &Document,
    schema: &Value,
    empty_members: &[String],
    error: &ValidationError<'_>,
) -> Vec<Finding> {
    let pointer = error.instance_path().as_str();
    let schema_pointer = error.schema_path().as_str();
    let value = error.instance();
    let at_value = |rule, message: String| Finding::at(rule, document, pointer, FindingPlace::Value, message);
    let name = name(pointer);
    vec![match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let parent_schema = schema.pointer(spans::parent(schema_pointer)).unwrap_or(&Value::Null);
            return unexpected
                .iter()
                .map(|field| unknown_field(document, pointer, field, parent_schema, schema))
                .collect();
        }
        ValidationErrorKind::Required { property } => {
            missing_field(document, pointer, property.as_str().unwrap_or_default(), empty_members)
        }
        ValidationErrorKind::Type { kind } => {
            let field = schema.pointer(spans::parent(schema_pointer)).unwrap_or(&Value::Null);
            wrong_type(document, pointer, value, kind, field)
        }
        ValidationErrorKind::Enum { options } => not_one_of(document, pointer, value, options),
        ValidationErrorKind::Pattern { pattern } => malformed(document, pointer, value, pattern),
        ValidationErrorKind::Minimum { limit } => {
            let limit = whole(limit);
            at_value(&rules::OUT_OF_RANGE, format!("{name} is {value}, and must be at least {limit}"))
        }
        ValidationErrorKind::Maximum { limit } => {
            let limit = whole(limit);
            at_value(&rules::OUT_OF_RANGE, format!("{name} is {value}, and must be at most {limit}"))
        }
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            at_value(&rules::OUT_OF_RANGE, format!("{name} is {value}, and must be more than {limit}"))
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            at_value(&rules::OUT_OF_RANGE, format!("{name} is {value}, and must be less than {limit}"))
        }
        ValidationErrorKind::MinLength { limit: 1 } => at_value(&rules::COUNT, format!("{name} is empty")),
        ValidationErrorKind::MinLength { limit } => {
            at_value(&rules::COUNT, format!("{name} is shorter than {limit} characters"))
        }
        ValidationErrorKind::MaxLength { limit } => {
            at_value(&rules::COUNT, format!("{name} is longer than {limit} characters"))
        }
        ValidationErrorKind::MinItems { limit } | ValidationErrorKind::MinProperties { limit } => {
            let message = format!("{name} has {}, and must have at least {limit}", entries(value));
            Finding::at(&rules::COUNT, document, pointer, FindingPlace::Key, message)
        }
        ValidationErrorKind::MaxItems { limit } | ValidationErrorKind::MaxProperties { limit } => {
            let message = format!("{name} has {}, and must have at most {limit}", entries(value));
            Finding::at(&rules::COUNT, document, pointer, FindingPlace::Key, message)
        }
        ValidationErrorKind::Format { format } if format == "date-time" => {
            let message = format!("{name} is {}, which is no time such as \"2026-01-31T12:00:00Z\"", shown(value));
            at_value(&rules::PATTERN, message)
        }
        _ => at_value(&rules::OTHER, format!("{name}: {}", error.masked())),
    }]
}

/// A text that has not the form of its field.
fn malformed(document: &Document, pointer: &str, value: &Value, pattern: &str) -> Finding {
    let at = |message: String| Finding::at(&rules::PATTERN, document, pointer, FindingPlace::Value, message);
    let (name, shown) = (name(pointer), shown(value));
    let text = value.as_str().unwrap_or_default();
    let Some(form) = forms::ALL.iter().find(|form| form.pattern == pattern) else {
        return at(format!("{name} is {shown}, which does not match `{pattern}`"));
    };
    let finding = at(format!("{name} is {shown}, which is not {}", form.words));
    let is_schedule = *form == forms::SCHEDULE;
    match canonical::meant(form, text) {
        Some(meant) => finding.hint(Hint::question(&[&meant])).instead(Some(Instead::Text(meant))),
        None if text.contains("{{") => finding.hint(OF_TEMPLATE),
        None if is_schedule && text.contains("TZ=") => finding.hint(IN_UTC),
        // A folded or literal block.
        None if is_schedule && text.ends_with('\n') => {
            finding.hint("write it behind the key: `>` and `|` end it with a newline")
        }
        None => finding,
    }
}

const IN_UTC: &str = "hours of a budget are UTC; a DisruptionBudget of Cutlist has a `timeZone`";

/// The field's name in backticks, or a word for the whole document or an item.
pub(super) fn name(pointer: &str) -> String {
    let last = spans::last(pointer);
    if pointer.is_empty() {
        "the document".to_owned()
    } else if last.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("`{}[{last}]`", spans::last(spans::parent(pointer)))
    } else {
        format!("`{last}`")
    }
}

/// A value in a message; long ones are cut.
fn shown(value: &Value) -> String {
    const CHARACTERS_MAX: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= CHARACTERS_MAX {
        text
    } else {
        format!("{}...", text.chars().take(CHARACTERS_MAX).collect::<String>())
    }
}

/// Schemas of Kubernetes write their bounds as `100.0`.
fn whole(limit: &Value) -> String {
    let text = limit.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn entries(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("{} entries", items.len()),
        Value::Object(map) => format!("{} entries", map.len()),
        _ => "no entries".to_owned(),
    }
}

fn unknown_field(document: &Document, pointer: &str, field: &str, parent: &Value, root: &Value) -> Finding {
    let at = spans::join(pointer, field);
    let known = parent.get("properties").and_then(Value::as_object);
    let names = || known.into_iter().flat_map(|known| known.keys().map(String::as_str));
    let where_to = elsewhere(root, field);
    let hint = match suggest::did_you_mean(field, names()) {
        _ if let Some(now) = moved(document, &at) => Some(now.into()),
        Some(question) => Some(question),
        None if let Some(name) = begins_one(field, names()) => Some(Hint::question(&[name])),
        None if !where_to.is_empty() => Some(format!("it belongs under {}", where_to.join(" or ")).into()),
        None => {
            let names: Vec<&str> = names().collect();
            (!names.is_empty()).then(|| format!("known here: {}", names.join(", ")).into())
        }
    };
    let place = if pointer.is_empty() {
        "at the top of the document".to_owned()
    } else {
        format!("in `{}`", spans::field_path(pointer))
    };
    let message = format!("unknown field `{field}` {place}");
    Finding::at(&rules::UNKNOWN_FIELD, document, &at, FindingPlace::Key, message).maybe_hint(hint)
}

/// The one name that begins so: `placementGroup`.
fn begins_one<'n>(field: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// Shorter words begin anything.
    const LETTERS_MIN: usize = 5;
    let mut alike = names.filter(|name| field.len() >= LETTERS_MIN && name.starts_with(field));
    alike.next().filter(|_| alike.next().is_none())
}

/// What took the place of a field that Karpenter had before version 1, or that pods have, where its name does not say it.
fn moved(document: &Document, pointer: &str) -> Option<&'static str> {
    let kind = document.str("/kind")?;
    let field = spans::last(pointer);
    let is_of_taint = pointer.contains("/taints/") || pointer.contains("/startupTaints/");
    match (kind, field.as_str()) {
        (_, "operator") if is_of_taint => Some("remove it: a toleration has an operator, and a taint has none"),
        ("NodePool", "kubelet") => Some("it is `spec.kubelet` of the EC2NodeClass since Karpenter 1"),
        ("NodePool", "ttlSecondsAfterEmpty") => {
            Some("write `disruption.consolidationPolicy: WhenEmpty` with `consolidateAfter`")
        }
        ("NodePool", "ttlSecondsUntilExpired") => Some("write `template.spec.expireAfter`, such as 720h"),
        ("NodePool", "consolidation") => Some("write `disruption` with `consolidationPolicy` and `consolidateAfter`"),
        ("NodePool", "providerRef") => Some("write `template.spec.nodeClassRef` with group, kind and name"),
        ("NodePool", "terminationGracePeriodSeconds") => {
            Some("write `template.spec.terminationGracePeriod`, a duration such as 24h")
        }
        ("NodePool", "timeZone") if pointer.contains("/budgets/") => Some(IN_UTC),
        ("EC2NodeClass", "ids") if pointer.contains("SelectorTerms/") => Some(one_id(pointer)),
        ("EC2NodeClass", "groupName") => Some("write `name`, which is the name of the group"),
        ("EC2NodeClass", "name") if pointer.contains("/subnetSelectorTerms/") => {
            Some("a subnet has its name in a tag: write `tags: { Name: NAME }`")
        }
        ("EC2NodeClass", "subnetSelector") => Some("write `subnetSelectorTerms`, a list of terms with tags or id"),
        ("EC2NodeClass", "securityGroupSelector") => {
            Some("write `securityGroupSelectorTerms`, a list of terms with tags, name or id")
        }
        ("EC2NodeClass", "amiSelector") => {
            Some("write `amiSelectorTerms`, a list of terms with alias, id, name or tags")
        }
        ("EC2NodeClass", "launchTemplate" | "launchTemplateName") => {
            Some("launch templates are not read since Karpenter 1: write their settings as fields of the class")
        }
        _ => None,
    }
}

fn one_id(pointer: &str) -> &'static str {
    match pointer.split('/').nth(2).unwrap_or_default() {
        "subnetSelectorTerms" => "a term has one `id`: write a term for each, such as `- id: subnet-0123456789abcdef0`",
        "securityGroupSelectorTerms" => {
            "a term has one `id`: write a term for each, such as `- id: sg-0123456789abcdef0`"
        }
        "capacityReservationSelectorTerms" => {
            "a term has one `id`: write a term for each, such as `- id: cr-0123456789abcdef0`"
        }
        _ => "a term has one `id`: write a term for each, such as `- id: ami-0123456789abcdef0`",
    }
}

/// Where else the schema has a field of this name. Nobody writes a status.
fn elsewhere(root: &Value, field: &str) -> Vec<String> {
    fn search(schema: &Value, field: &str, path: &str, found: &mut Vec<String>) {
        const DEEPEST: usize = 5;
        if path.matches('.').count() > DEEPEST {
            return;
        }
        let members = schema.get("properties").and_then(Value::as_object);
        for (name, inner) in members.into_iter().flatten() {
            if name == field && !path.is_empty() {
                found.push(format!("`{path}`"));
            }
            if path.is_empty() && ["metadata", "status"].contains(&name.as_str()) {
                continue;
            }
            let inner_path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            search(inner, field, &inner_path, found);
            if let Some(items) = inner.get("items") {
                search(items, field, &format!("{inner_path}[]"), found);
            }
        }
    }
    const FOUND_MAX: usize = 2;
    let mut found = Vec::new();
    search(root, field, "", &mut found);
    found.truncate(FOUND_MAX);
    found
}

fn missing_field(document: &Document, pointer: &str, field: &str, empty_members: &[String]) -> Finding {
    let at = spans::join(pointer, field);
    if empty_members.contains(&at) {
        let message = format!("`{field}` has no value");
        return Finding::at(&rules::MISSING_FIELD, document, &at, FindingPlace::Key, message);
    }
    let holder =
        if pointer.is_empty() { "the document".to_owned() } else { format!("`{}`", spans::field_path(pointer)) };
    let mut finding =
        Finding::at(&rules::MISSING_FIELD, document, pointer, FindingPlace::Key, format!("{holder} lacks `{field}`"));
    // Before version 1 a pool named its class alone.
    let may_be = |member: &str, meant: &str| document.str(&spans::join(pointer, member)).is_none_or(|it| it == meant);
    let is_of_karpenter = may_be("kind", CLASS_KIND) && may_be("group", CLASS_GROUP);
    match (spans::last(pointer).as_str(), field) {
        ("nodeClassRef", "group") if is_of_karpenter => finding = finding.hint(format!("add `group: {CLASS_GROUP}`")),
        ("nodeClassRef", "kind") if is_of_karpenter => finding = finding.hint(format!("add `kind: {CLASS_KIND}`")),
        _ => {}
    }
    finding.pointer = Some(at);
    finding
}

/// What is written and null, where a text, a number or a boolean belongs.
pub fn without_value(kind: Kind, document: &Document, empty_members: &[String], found: &[Finding]) -> Vec<Finding> {
    /// Whose definitions take no null.
    const KINDS: [Kind; 4] = [Kind::NodePool, Kind::EC2NodeClass, Kind::NodeOverlay, Kind::CapacityBuffer];
    const SCALARS: [&str; 4] = ["string", "integer", "number", "boolean"];
    // `creationTimestamp: null` is what many programs write.
    let is_of_author = |pointer: &str| {
        let of_metadata = pointer.strip_prefix("/metadata/");
        of_metadata.is_none_or(|rest| rest.starts_with("labels/") || rest.starts_with("annotations/"))
    };
    let is_said = |pointer: &str| found.iter().any(|finding| finding.pointer.as_deref() == Some(pointer));
    let is_scalar = |pointer: &str| super::type_at(kind, pointer).is_some_and(|name| SCALARS.contains(&name));
    let pointers = empty_members.iter().filter(|_| KINDS.contains(&kind));
    let pointers = pointers.filter(|pointer| is_of_author(pointer) && !is_said(pointer) && is_scalar(pointer));
    let finding = |pointer: &String| {
        let message = format!("{} has no value: kubectl drops it, and server-side apply can refuse it", name(pointer));
        let hint = match value_in_comment(document, pointer) {
            Some(value) => format!("`#` begins a comment: write \"{value}\""),
            None => "write a value, or remove it".to_owned(),
        };
        Finding::at(&rules::NO_VALUE, document, pointer, FindingPlace::Key, message).hint(hint)
    };
    pointers.map(finding).collect()
}

/// One word behind the key that is a comment, and was meant to be its value.
fn value_in_comment(document: &Document, pointer: &str) -> Option<String> {
    let key = document.place(pointer, FindingPlace::Key);
    let text = document.origin(pointer).text;
    let line = text.get(key.end_byte..)?.lines().next()?;
    let word = line.trim_start().strip_prefix(':')?.trim();
    (word.len() > 1 && word.starts_with('#') && !word.contains([' ', '\t', '"', '\\'])).then(|| word.to_owned())
}

/// `field` is the schema of the value.
fn wrong_type(document: &Document, pointer: &str, value: &Value, kind: &TypeKind, field: &Value) -> Finding {
    let wanted: Vec<String> = match kind {
        TypeKind::Single(kind) => vec![kind.to_string()],
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.to_string()).collect(),
    };
    let wants = |name: &str| wanted.iter().any(|wanted| wanted == name);
    let name = name(pointer);
    let scalar = value.is_number() || value.is_boolean();
    if scalar && wants("string") {
        let written = document.written(pointer).unwrap_or_else(|| value.to_string());
        let got = if value.is_boolean() { "a boolean" } else { "a number" };
        if document.variables.is_of_flux() && document.variables.names().contains_key(pointer) {
            let message = format!("{name} must be text, and `{value}`, which Flux makes of it, is {got}");
            return Finding::at(&rules::UNQUOTED, document, pointer, FindingPlace::Value, message).hint(QUOTE_OF_FLUX);
        }
        let message = format!("{name} must be text, and `{written}` without quotes is {got}");
        let (hint, quoted) = quoted_hint(&written, field);
        return Finding::at(&rules::UNQUOTED, document, pointer, FindingPlace::Value, message)
            .hint(hint)
            .instead(quoted);
    }
    let words: Vec<&str> = wanted.iter().map(|wanted| type_words(wanted)).collect();
    let message = format!("{name} must be {}, and is {}", words.join(" or "), value_words(value));
    let instead = value.as_str().and_then(|text| instead_of_text(document, pointer, text, &wants));
    let hint = match value {
        Value::String(_) | Value::Array(_) | Value::Object(_)
            if document.written(pointer).is_some_and(|written| written.contains("${")) =>
        {
            Some(format!("after substitution it is {}", shown(value)))
        }
        Value::String(text) if wants("array") => Some(format!("write it as a list: [{text}]")),
        Value::String(text) if wants("integer") && text.parse::<i64>().is_ok() => {
            Some(format!("write it without quotes: {text}"))
        }
        Value::String(text) if wants("boolean") && matches!(text.as_str(), "true" | "false") => {
            Some(format!("write it without quotes: {text}"))
        }
        Value::Object(_) if wants("array") => Some("start each entry with `- `".to_owned()),
        Value::Array(_) if wants("object") => Some("write `key: value` without `- `".to_owned()),
        _ => None,
    };
    let place = if value.is_object() || value.is_array() { FindingPlace::Key } else { FindingPlace::Value };
    Finding::at(&rules::WRONG_TYPE, document, pointer, place, message).maybe_hint(hint).instead(instead)
}

/// What people who use Flux do.
const QUOTE_OF_FLUX: &str = "Flux replaces variables where the quotes around them are gone: let a variable `quote: '\"'` stand on both sides of \
                             it, as in ${quote}${NAME}${quote}";

/// What was written as text, in the type that is wanted.
fn instead_of_text(document: &Document, pointer: &str, text: &str, wants: &dyn Fn(&str) -> bool) -> Option<Instead> {
    let is_word = (wants("integer") && text.parse::<i64>().is_ok_and(|number| number.to_string() == text))
        || (wants("boolean") && matches!(text, "true" | "false"));
    let written = document.written(pointer)?;
    // One word: a list of several may have been meant, in some form or other.
    let is_one = !text.is_empty() && !text.contains([' ', ',', '[', ']', '{', '}', '#']);
    match (is_word, wants("array") && is_one) {
        (true, _) => Some(Instead::Yaml(text.to_owned())),
        (_, true) => Some(Instead::Yaml(format!("[{written}]"))),
        _ => None,
    }
}

/// A hint, and the quoted text where quoting is enough: it has the form of the field then. "30" is no duration either.
fn quoted_hint(written: &str, field: &Value) -> (String, Option<Instead>) {
    let options: Vec<&str> =
        field.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if !options.is_empty() && !options.contains(&written) {
        let meant = match written {
            "true" => "enabled",
            "false" => "disabled",
            _ => written,
        };
        let hint = match options.contains(&meant) {
            true => format!("write `{meant}`"),
            false => format!("write one of {}", options.join(", ")),
        };
        return (hint, None);
    }
    let form = field.get("pattern").and_then(|pattern| forms::ALL.iter().find(|form| pattern == form.pattern));
    let fits = |form: &forms::Form| {
        let schema = serde_json::json!({ "pattern": form.pattern });
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        options.build(&schema).is_ok_and(|validator| validator.is_valid(&Value::String(written.to_owned())))
    };
    match form.filter(|form| !fits(form)) {
        Some(form) => (format!("write {}", form.words), None),
        None => {
            let quoted = format!("\"{written}\"");
            (format!("quote it: {quoted}"), Some(Instead::Yaml(quoted)))
        }
    }
}

pub(super) fn type_words(name: &str) -> &'static str {
    match name {
        "array" => "a list",
        "object" => "a mapping",
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        _ => "empty",
    }
}

pub(super) fn value_words(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

fn not_one_of(document: &Document, pointer: &str, value: &Value, options: &Value) -> Finding {
    let options: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let message = format!("{} is {}, and must be one of {}", name(pointer), shown(value), options.join(", "));
    let finding = Finding::at(&rules::NOT_ONE_OF, document, pointer, FindingPlace::Value, message);
    let Some(text) = value.as_str() else { return finding };
    match RENAMED_VALUES.iter().find(|(old, _)| *old == text) {
        Some((_, new)) => finding.hint(Hint::question(&[new])).instead(Some(Instead::Text((*new).to_owned()))),
        None => finding.maybe_hint(suggest::did_you_mean(text, options.into_iter())),
    }
}

/// Words and fields of Karpenter before version 1, as people still write them.
const RENAMED_VALUES: [(&str, &str); 1] = [("WhenUnderutilized", "WhenEmptyOrUnderutilized")];
const RENAMED_FIELDS: [(&str, &str); 1] = [("/spec/template/spec/nodeClassRef/apiVersion", "group")];

/// The group of an API version, which may be that of another provider.
fn group_of(document: &Document, pointer: &str) -> String {
    let version = document.str(pointer).filter(|version| !version.contains("${"));
    version.and_then(|version| version.split_once('/')).map_or(CLASS_GROUP, |(group, _)| group).to_owned()
}

/// One mistake, one finding: `weigth` is unknown, and for that `weight` is missing.
pub fn drop_consequences(document: &Document, findings: &mut Vec<Finding>) {
    let mut renamed = Vec::new();
    for finding in findings.iter_mut().filter(|finding| std::ptr::eq(finding.rule, &rules::UNKNOWN_FIELD)) {
        let old = RENAMED_FIELDS.iter().find(|(old, _)| finding.pointer.as_deref() == Some(*old));
        let is_there = |new: &str| {
            let pointer = finding.pointer.as_deref().unwrap_or_default();
            document.value.pointer(&spans::join(spans::parent(pointer), new)).is_some()
        };
        if let Some((_, new)) = old.filter(|(_, new)| is_there(new)) {
            *finding = finding.clone().hint(format!("remove it: `{new}` took its place"));
        } else if let Some((old, new)) = old {
            let hint = format!("write `{new}: {}`", group_of(document, old));
            *finding = finding.clone().hint(hint).instead(Some(Instead::Text((*new).to_owned())));
            renamed.push(spans::join(spans::parent(old), new));
        }
    }
    let meant: Vec<String> = findings
        .iter()
        .filter(|finding| std::ptr::eq(finding.rule, &rules::UNKNOWN_FIELD))
        .filter_map(|finding| {
            let pointer = finding.pointer.as_deref()?;
            Some(spans::join(spans::parent(pointer), finding.meant.as_deref()?))
        })
        .chain(renamed)
        .collect();
    let unquoted: Vec<String> = findings
        .iter()
        .filter(|finding| std::ptr::eq(finding.rule, &rules::UNQUOTED))
        .filter_map(|finding| finding.pointer.clone())
        .collect();
    let ambiguous: Vec<&str> = document.ambiguous.iter().map(|(pointer, _)| pointer.as_str()).collect();
    findings.retain(|finding| {
        let Some(pointer) = finding.pointer.as_deref() else { return true };
        let missing = std::ptr::eq(finding.rule, &rules::MISSING_FIELD);
        let consequence = missing && meant.iter().any(|meant| meant == pointer);
        let is_said = std::ptr::eq(finding.rule, &rules::NOT_ONE_OF) && unquoted.iter().any(|it| it == pointer);
        !consequence && !is_said && !ambiguous.contains(&pointer)
    });
}
