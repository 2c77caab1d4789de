//! What the custom resource definitions demand, one by one, and whether the server refused an object for it and accepted one that meets
//! it. The server's own words say for which demand it refused.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::objects::{self, Subject, Verdict};

/// Kinds whose objects people do not write, so that lint does not judge them; `tests/e2e/definitions` breaks their rules.
const NOT_JUDGED: [&str; 2] = ["NodeClaim", "NodePlan"];
/// What no object can break, and why.
const NEVER_BROKEN: [(&str, &str, &str); 0] = [];

/// One thing that a schema demands.
struct Demand {
    /// `spec.template.spec.taints[].key`; `*` is any member of a mapping.
    field: String,
    what: What,
}

enum What {
    Type,
    Required,
    Unknown,
    Enum,
    Pattern,
    Minimum,
    Maximum,
    Shortest,
    Longest,
    Fewest,
    Most,
    Rule { text: String, message: String },
}

impl What {
    fn words(&self) -> String {
        match self {
            Self::Type => "its type".to_owned(),
            Self::Required => "being there".to_owned(),
            Self::Unknown => "no other fields".to_owned(),
            Self::Enum => "its words".to_owned(),
            Self::Pattern => "its pattern".to_owned(),
            Self::Minimum => "its minimum".to_owned(),
            Self::Maximum => "its maximum".to_owned(),
            Self::Shortest => "its least length".to_owned(),
            Self::Longest => "its greatest length".to_owned(),
            Self::Fewest => "its least count".to_owned(),
            Self::Most => "its greatest count".to_owned(),
            Self::Rule { text, .. } => format!("the rule {text}"),
        }
    }

    /// Whether the words of the server are about this.
    fn is_meant(&self, message: &str) -> bool {
        match self {
            Self::Type => message.contains("must be of type"),
            Self::Required => message.starts_with("Required value"),
            Self::Unknown => message == "unknown field",
            Self::Enum => message.starts_with("Unsupported value"),
            Self::Pattern => message.contains("should match"),
            Self::Minimum => message.contains("should be greater than or equal to"),
            Self::Maximum => message.contains("should be less than or equal to"),
            Self::Shortest => message.contains("should be at least"),
            Self::Longest => message.contains("may not be more than") || message.starts_with("Too long"),
            Self::Fewest => message.contains("should have at least"),
            Self::Most => message.starts_with("Too many"),
            Self::Rule { message: words, .. } => message.ends_with(words.as_str()),
        }
    }
}

/// Demands that no object breaks, or that none meets, in words.
pub fn untried(subjects: &[Subject]) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, schema) in schemas() {
        let objects = subjects.iter().flat_map(|subject| {
            let verdicts = objects::recorded(&subject.name);
            let of_kind = subject.objects.iter().filter(|object| object.kind == kind);
            of_kind
                .map(|object| (&object.value, verdicts.get(&object.name).cloned().unwrap_or_default()))
                .collect::<Vec<_>>()
        });
        let (accepted, refused): (Vec<_>, Vec<_>) = objects.partition(|(_, verdict)| verdict.causes.is_empty());
        let broken = broken(&schema, &refused);
        let mut demands = Vec::new();
        demands_of(&schema, "", &mut demands);
        for demand in demands {
            let words = format!("{kind} {}: {}", demand.field, demand.what.words());
            let is_broken =
                broken.get(&demand.field).is_some_and(|said| said.iter().any(|it| demand.what.is_meant(it)));
            let is_excused = NEVER_BROKEN.iter().any(|(its, field, _)| *its == kind && *field == demand.field);
            if !is_broken && !is_excused {
                found.push(format!("{words}: no object is refused for it"));
            }
            if is_broken && is_excused {
                found.push(format!("{words}: an object is refused for it, though none could be"));
            }
            let holder = match demand.what {
                What::Unknown => demand.field.rsplit_once('.').map_or("", |(holder, _)| holder).to_owned(),
                _ => demand.field.clone(),
            };
            if !accepted.iter().any(|(object, _)| has(object, &holder)) {
                found.push(format!("{words}: no object with it is accepted"));
            }
        }
    }
    found
}

/// The schema of the spec of each kind that is judged.
fn schemas() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/crds");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut schemas = Vec::new();
    for path in paths {
        let mut crd: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        let mut schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
        // The status is the controller's, and dropped from what people write.
        schema["properties"].as_object_mut().unwrap().remove("status");
        schemas.push((kind, schema));
    }
    assert!(schemas.len() > NOT_JUDGED.len());
    schemas.retain(|(kind, _)| !NOT_JUDGED.contains(&kind.as_str()));
    schemas
}

fn demands_of(schema: &Value, field: &str, demands: &mut Vec<Demand>) {
    let mut add = |what| demands.push(Demand { field: field.to_owned(), what });
    let keywords = [
        ("enum", What::Enum),
        ("pattern", What::Pattern),
        ("minimum", What::Minimum),
        ("maximum", What::Maximum),
        ("minLength", What::Shortest),
        ("maxLength", What::Longest),
        ("minItems", What::Fewest),
        ("maxItems", What::Most),
        ("maxProperties", What::Most),
    ];
    for (keyword, what) in keywords {
        if schema.get(keyword).is_some() {
            add(what);
        }
    }
    // The document itself is a mapping, or it is no object at all.
    if !field.is_empty() && (schema.get("type").is_some() || schema["x-kubernetes-int-or-string"] == true) {
        add(What::Type);
    }
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
        let at = rule["fieldPath"].as_str().unwrap_or_default();
        let what = What::Rule { text: text("rule"), message: text("message") };
        demands.push(Demand { field: join(field, at.trim_start_matches('.')), what });
    }
    for member in schema["required"].as_array().into_iter().flatten() {
        demands.push(Demand { field: join(field, member.as_str().unwrap()), what: What::Required });
    }
    if let Some(members) = schema["properties"].as_object() {
        demands.push(Demand { field: join(field, "?"), what: What::Unknown });
        members.iter().for_each(|(name, member)| demands_of(member, &join(field, name), demands));
    }
    if let Some(any) = schema.get("additionalProperties").filter(|any| any.is_object()) {
        demands_of(any, &join(field, "*"), demands);
    }
    if let Some(items) = schema.get("items") {
        demands_of(items, &format!("{field}[]"), demands);
    }
}

fn join(field: &str, member: &str) -> String {
    match (field, member) {
        ("", _) => member.to_owned(),
        (_, "") => field.to_owned(),
        _ => format!("{field}.{member}"),
    }
}

/// What the server said, by field of the schema.
fn broken(schema: &Value, refused: &[(&Value, Verdict)]) -> BTreeMap<String, Vec<String>> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cause in refused.iter().flat_map(|(_, verdict)| &verdict.causes) {
        let field = of_schema(schema, &cause.field);
        said.entry(field).or_default().push(cause.message.clone());
    }
    said
}

/// `spec.limits.cpu` is `spec.limits.*` of the schema, `spec.list[3]` is `spec.list[]`; what the schema has not is `?`.
fn of_schema(schema: &Value, field: &str) -> String {
    let mut found = String::new();
    let (mut here, mut rest) = (schema, field);
    while !rest.is_empty() {
        if let Some((_, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            // A member of a mapping may stand in brackets, too.
            let (part, inner) = if here.get("items").is_some() {
                ("[]", &here["items"])
            } else {
                (".*", &here["additionalProperties"])
            };
            found += part;
            here = inner;
            rest = after.trim_start_matches('.');
            continue;
        }
        if here.get("additionalProperties").is_some_and(Value::is_object) {
            return join(&found, "*");
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let Some(member) = here["properties"].get(name) else { return join(&found, "?") };
        found = join(&found, name);
        here = member;
        rest = behind.trim_start_matches('.');
    }
    found
}

/// Whether the object has something at the field of the schema.
fn has(object: &Value, field: &str) -> bool {
    let Some(field) = Some(field).filter(|it| !it.is_empty()) else { return !object.is_null() };
    if let Some(rest) = field.strip_prefix("[]") {
        return object.as_array().is_some_and(|items| items.iter().any(|item| has(item, rest.trim_start_matches('.'))));
    }
    let end = field.find(['.', '[']).unwrap_or(field.len());
    let (name, behind) = field.split_at(end);
    let rest = behind.trim_start_matches('.');
    match (name, object.as_object()) {
        ("*", Some(members)) => members.values().any(|member| has(member, rest)),
        (_, Some(members)) => members.get(name).is_some_and(|member| has(member, rest)),
        _ => false,
    }
}
