//! What the schemas of the kinds say of a field.

use serde_json::Value;

use super::place::{EditPlace, Role};
use crate::definitions::document::spans;
use crate::definitions::kinds::{self, Kind};
use crate::definitions::schema;

/// A field, for whoever writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Field {
    /// `spec.template.spec.expireAfter`; empty for the document.
    pub path: String,
    /// `string`, `list of mappings`.
    pub type_name: String,
    pub description: Option<&'static str>,
    pub is_required: bool,
    pub default: Option<&'static Value>,
    /// What it must be one of.
    pub values: Vec<&'static Value>,
    /// `at least 1`, `matches ...`.
    pub bounds: Vec<String>,
    /// What the rules of the schema ask for, in their words.
    pub rules: Vec<&'static str>,
}

/// The kind of a document by what it says of itself, else by the name of its file.
pub fn kind_of(api_version: Option<&str>, kind: Option<&str>, file_name: &str) -> Option<Kind> {
    let of_version = |it: &Kind| api_version.is_none_or(|version| version.is_empty() || version == it.api_version());
    match kind.filter(|name| !name.is_empty()) {
        Some(name) => Kind::ALL.into_iter().find(|it| it.name() == name && of_version(it)),
        None => kinds::of_file(file_name),
    }
}

/// The field that a place is about: of a key the member with that name.
pub fn of_place(place: &EditPlace, file_name: &str) -> Option<Field> {
    let kind = kind_of(place.of_root("apiVersion"), place.of_root("kind"), file_name)?;
    let mut path = place.path.clone();
    if place.role == Role::Key || place.has_colon {
        path.push(place.word.clone());
    }
    at(kind, &path)
}

/// What the schema of the kind says of the field at a path of keys and numbers.
pub fn at(kind: Kind, path: &[String]) -> Option<Field> {
    let schema = schema::at(kind, path.iter().map(String::as_str))?;
    let parent = path.split_last().and_then(|(_, parent)| schema::at(kind, parent.iter().map(String::as_str)));
    let is_named = |names: &Value| {
        names.as_array().is_some_and(|it| it.iter().any(|name| name.as_str() == path.last().map(String::as_str)))
    };
    let mut field = of_schema(schema);
    field.path = shown(path);
    field.is_required = parent.and_then(|parent| parent.get("required")).is_some_and(is_named);
    Some(field)
}

/// The fields that a mapping may have, by name: those of one that may have any name are not among them.
pub fn members(kind: Kind, path: &[String]) -> Vec<(&'static str, Field)> {
    let Some(schema) = schema::at(kind, path.iter().map(String::as_str)) else { return Vec::new() };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = properties(schema);
    let member = |(name, member): (&'static str, &'static Value)| {
        let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
        (name, Field { path: shown(&path), is_required: required.contains(&name), ..of_schema(member) })
    };
    // The status is the controller's.
    properties.into_iter().filter(|(name, _)| !(path.is_empty() && *name == "status")).map(member).collect()
}

/// Whether a mapping is expected there.
pub fn is_mapping(kind: Kind, path: &[String]) -> bool {
    schema::at(kind, path.iter().map(String::as_str)).is_some_and(|schema| !properties(schema).is_empty())
}

fn properties(schema: &'static Value) -> Vec<(&'static str, &'static Value)> {
    let own = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<(&str, &Value)> = own.map(|(name, member)| (name.as_str(), member)).collect();
    for branch in branches(schema) {
        found.extend(properties(branch));
    }
    found
}

/// Alternatives, without the one that is nothing.
fn branches(schema: &'static Value) -> impl Iterator<Item = &'static Value> {
    let lists = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
    lists.flatten().filter(|branch| branch.get("type").is_none_or(|it| it != "null"))
}

fn of_schema(schema: &'static Value) -> Field {
    Field {
        path: String::new(),
        type_name: type_name(schema, false),
        description: text(schema, "description").filter(|text| !text.starts_with("Auto-generated")),
        is_required: false,
        default: schema.get("default"),
        values: values(schema),
        bounds: bounds(schema),
        rules: rules(schema),
    }
}

fn text(schema: &'static Value, keyword: &str) -> Option<&'static str> {
    schema.get(keyword).and_then(Value::as_str)
}

fn type_name(schema: &'static Value, is_plural: bool) -> String {
    let own = match schema.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect(),
        _ => branches(schema).filter_map(|branch| text(branch, "type")).collect(),
    };
    let plural = if is_plural { "s" } else { "" };
    let mut words: Vec<String> = Vec::new();
    for name in own {
        let word = match name {
            "object" => format!("mapping{plural}"),
            "array" => match schema.get("items") {
                Some(items) => format!("list{plural} of {}", type_name(items, true)),
                None => format!("list{plural}"),
            },
            other => format!("{other}{plural}"),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

fn values(schema: &'static Value) -> Vec<&'static Value> {
    let own = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let mut values: Vec<&Value> = own.chain(schema.get("const")).filter(|value| !value.is_null()).collect();
    for branch in branches(schema) {
        values.extend(self::values(branch));
    }
    values
}

/// Keywords of JSON Schema that bound a value, and how they are said.
const BOUNDS: [(&str, &str); 8] = [
    ("minimum", "at least"),
    ("maximum", "at most"),
    ("minLength", "characters: at least"),
    ("maxLength", "characters: at most"),
    ("minItems", "entries: at least"),
    ("maxItems", "entries: at most"),
    ("minProperties", "members: at least"),
    ("maxProperties", "members: at most"),
];

fn bounds(schema: &'static Value) -> Vec<String> {
    let of_keyword = |(keyword, words): (&str, &str)| Some(format!("{words} {}", whole(schema.get(keyword)?)));
    let mut found: Vec<String> = BOUNDS.into_iter().filter_map(of_keyword).collect();
    if let Some(pattern) = text(schema, "pattern") {
        let form = crate::api::validation::forms::ALL.iter().find(|form| form.pattern == pattern);
        found.push(form.map_or_else(|| format!("matches `{pattern}`"), |form| form.words.to_owned()));
    }
    found
}

/// Schemas of Kubernetes write their bounds as `100.0`.
fn whole(limit: &Value) -> String {
    let text = limit.to_string();
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

fn rules(schema: &'static Value) -> Vec<&'static str> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| text(rule, "message")).collect()
}

/// As Kubernetes writes paths: `spec.requirements[0].key`.
fn shown(path: &[String]) -> String {
    let pointer: String = path.iter().map(|part| format!("/{}", spans::escape(part))).collect();
    spans::field_path(&pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn says_what_a_field_is() {
        let budgets = at(Kind::NodePool, &path("spec.disruption.budgets")).unwrap();
        assert_eq!(budgets.type_name, "list of mappings");
        assert!(budgets.default.is_some() && budgets.description.is_some());
        let operator = at(Kind::NodePool, &path("spec.template.spec.requirements.0.operator")).unwrap();
        assert!(operator.is_required && operator.values.iter().any(|value| *value == "NotIn"), "{operator:?}");
        assert_eq!(operator.path, "spec.template.spec.requirements[0].operator");
        let packing = at(Kind::Settings, &path("spec.packing")).unwrap();
        assert!(packing.values.iter().any(|value| *value == "cheapest"), "{packing:?}");
        assert_eq!(at(Kind::NodePool, &path("spec.nonsense")), None);
    }

    #[test]
    fn names_what_a_mapping_may_have() {
        let names =
            |kind, text: &str| -> Vec<&str> { members(kind, &path(text)).into_iter().map(|(name, _)| name).collect() };
        assert!(names(Kind::NodePool, "").contains(&"spec") && !names(Kind::NodePool, "").contains(&"status"));
        assert!(names(Kind::NodePool, "spec.template.spec").contains(&"expireAfter"));
        assert!(names(Kind::NodePool, "metadata").contains(&"labels"));
        assert!(names(Kind::NodePool, "metadata.labels").is_empty());
        assert!(names(Kind::Settings, "spec").contains(&"penalties"));
    }

    #[test]
    fn the_kind_is_what_the_document_says_or_its_file_is_called() {
        assert_eq!(kind_of(Some("karpenter.sh/v1"), Some("NodePool"), "a.yaml"), Some(Kind::NodePool));
        assert_eq!(kind_of(None, Some("NodePool"), "a.yaml"), Some(Kind::NodePool));
        assert_eq!(kind_of(Some("karpenter.sh/v1beta1"), Some("NodePool"), "a.yaml"), None);
        assert_eq!(kind_of(None, None, "cutlist.yaml"), Some(Kind::Settings));
        assert_eq!(kind_of(None, None, "a.yaml"), None);
    }
}
