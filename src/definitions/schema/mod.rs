//! The schemas that documents are held against. Cutlist makes them from its own types, and makes them strict, as its
//! reader needs them.

mod canonical;
mod cel;
mod findings;
mod foreign;
mod strict;

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use jsonschema::{PatternOptions, Validator};
use k8s_openapi::api::core::v1::PodTemplate;
use kube::core::cel::CompiledSchema;
use serde_json::Value;

use super::document::{Document, spans};
use super::findings::{Finding, FindingPlace};
use super::kinds::Kind;
use super::open;
use super::rules::schema as rules;
use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::definitions as resources;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::image_lock::ImageLockDocument;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_pool::NodePool;
use crate::api::scenario::ScenarioDocument;
use crate::api::settings::SettingsDocument;

pub use foreign::faults as faults_of_workload;

/// What a kind's documents are held against.
struct KindSchema {
    /// Strict: fields that it does not name are refused.
    json: Value,
    validator: Validator,
    cel: CompiledSchema,
}

type Compiled = Result<KindSchema, String>;

/// Each is compiled once per process, when the first document of its kind is met: it costs some milliseconds.
static SCHEMAS: LazyLock<BTreeMap<Kind, OnceLock<Compiled>>> = LazyLock::new(|| {
    Kind::ALL.into_iter().filter(|kind| !is_of_kubernetes(*kind)).map(|kind| (kind, OnceLock::new())).collect()
});

fn schema_of(kind: Kind) -> Option<&'static Compiled> {
    Some(SCHEMAS.get(&kind)?.get_or_init(|| compile(kind)))
}

/// Whether the kind is Kubernetes' own, whose API server is the judge of everything but the names and types of fields.
fn is_of_kubernetes(kind: Kind) -> bool {
    kind == Kind::PodTemplate
}

fn compile(kind: Kind) -> Compiled {
    let json = strict::strict(kind, published(kind));
    let options = jsonschema::options().offline().should_validate_formats(true);
    let validator =
        options.with_pattern_options(PatternOptions::regex()).build(&json).map_err(|error| error.to_string())?;
    let cel = kube::core::cel::compile_schema(&json);
    Ok(KindSchema { json, validator, cel })
}

/// The schema of the kind as it is published in `schemas/`: of a resource kind its OpenAPI schema in the custom resource
/// definition, of a file kind its JSON Schema.
pub fn published(kind: Kind) -> Value {
    let definition = match kind {
        Kind::NodePool => resources::of::<NodePool>(),
        Kind::EC2NodeClass => resources::of::<EC2NodeClass>(),
        Kind::NodeOverlay => resources::of::<NodeOverlay>(),
        Kind::CapacityBuffer => resources::of::<CapacityBuffer>(),
        Kind::PodTemplate => return file_schema::<PodTemplate>(),
        Kind::DisruptionBudget => resources::of::<DisruptionBudget>(),
        Kind::Settings => return file_schema::<SettingsDocument>(),
        Kind::Scenario => return file_schema::<ScenarioDocument>(),
        Kind::ImageLock => return file_schema::<ImageLockDocument>(),
    };
    let version = definition.spec.versions.into_iter().next();
    let schema = version.and_then(|version| version.schema).and_then(|schema| schema.open_api_v3_schema);
    serde_json::to_value(schema).unwrap_or_default()
}

/// The schema of a kind for other programs: strict, as documents are judged here, and in plain JSON Schema.
pub struct PublishedSchema {
    pub group: &'static str,
    pub kind: &'static str,
    pub version: &'static str,
    pub schema: Value,
}

/// Of every kind that can be held against a schema.
pub fn for_others() -> Vec<PublishedSchema> {
    let of_kind = |kind: Kind| {
        let schema = schema_of(kind)?.as_ref().ok()?;
        let (group, version) = kind.api_version().split_once('/')?;
        let mut schema = schema.json.clone();
        let map = schema.as_object_mut()?;
        map.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
        map.insert("title".to_owned(), kind.name().into());
        Some(PublishedSchema { group, kind: kind.name(), version, schema })
    };
    Kind::ALL.into_iter().filter_map(of_kind).collect()
}

fn file_schema<T: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Everything that the schema of `kind` and its CEL rules have against the document. Takes out of the document what
/// the API server would: members that are null, and the status. With what the document was before, `old`, rules about what may not change are
/// asked, too. `unchecked` is set when an error may be hidden by a variable
/// without a value.
pub fn check(kind: Kind, document: &mut Document, old: Option<&Value>, unchecked: &mut bool) -> Vec<Finding> {
    let empty_members = strict::prune(&mut document.value);
    let document = &*document;
    if is_of_kubernetes(kind) {
        return faults_of_workload(document);
    }
    let schema = match schema_of(kind) {
        Some(Ok(schema)) => schema,
        Some(Err(error)) => {
            let message = format!("the schema of {} can not be compiled: {error}", kind.name());
            return vec![Finding::at(&rules::OTHER, document, "", FindingPlace::Key, message)];
        }
        None => return Vec::new(),
    };
    let mut findings: Vec<Finding> = schema
        .validator
        .iter_errors(&document.value)
        .flat_map(|error| findings::from_error(document, &schema.json, &empty_members, &error))
        .collect();
    // Before the rules, which are silent where the schema has spoken.
    *unchecked |= open::drop_hidden(document, &mut findings);
    findings::drop_consequences(document, &mut findings);
    findings.extend(cel::check(document, old, schema, &findings));
    findings.extend(findings::without_value(kind, document, &empty_members, &findings));
    findings
}

/// The type that the schema of `kind` gives what `pointer` points at, where it gives one.
pub fn type_at(kind: Kind, pointer: &str) -> Option<&'static str> {
    let parts: Vec<String> = pointer.split('/').skip(1).map(spans::unescape).collect();
    at(kind, parts.iter().map(String::as_str))?.get("type")?.as_str()
}

/// The schema of what stands at these keys and numbers of a document of `kind`.
pub fn at<'p>(kind: Kind, path: impl IntoIterator<Item = &'p str>) -> Option<&'static Value> {
    let mut schema = &schema_of(kind)?.as_ref().ok()?.json;
    for part in path {
        let member = schema.get("properties").and_then(|properties| properties.get(part));
        // What is no schema of a member only says whether there may be one.
        let any = schema.get("additionalProperties").filter(|any| any.is_object());
        schema = member.or_else(|| schema.get("items")).or(any)?;
    }
    Some(schema)
}

/// Why the schema of the kind can not be compiled, if so: a mistake in `api`.
#[cfg(test)]
pub fn error(kind: Kind) -> Option<String> {
    schema_of(kind).and_then(|schema| schema.as_ref().err().cloned())
}
