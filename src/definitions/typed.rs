//! Documents that were judged as values of their types.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::broken::BrokenDefinition;
use super::diagnostic::Severity;
use super::document::Document;
use super::findings::{Finding, FindingPlace};
use super::kinds::Kind;
use super::open::OpenDefinition;
use super::places;
use super::revision::Revision;
use super::rules::{Check, reading};
use super::variables::AsWritten;
use super::{Definition, Definitions};
use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::cluster_fields;
use crate::core::plan::DefinitionPlace;

/// Values of the documents in which no error was found. Where their fields stand is kept for the reasons of a plan.
pub fn typed(revision: Revision<'_>, findings: &mut Vec<Finding>, keeps_places: bool) -> Definitions {
    let mut definitions = Definitions::default();
    // An error of a rule over all documents makes those it names unusable as well.
    let refused: BTreeSet<(usize, String)> = findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error && matches!(finding.rule.check, Check::Revision(_)))
        .filter_map(|finding| Some((finding.file, finding.object.clone()?)))
        .collect();
    let revision_paths = revision.paths;
    for object in revision.objects.into_iter().filter(|object| !object.staged) {
        let given_at = &object.given_at;
        let mut document = object.document;
        if !object.usable || document.name().is_some_and(|name| refused.contains(&(document.file, name))) {
            definitions.broken.extend(BrokenDefinition::of(object.kind, &document, &revision_paths));
            continue;
        }
        if cluster_fields::may_be_in_metadata(&document.value) {
            cluster_fields::remove_from_metadata(&mut document.value);
        }
        let path = revision_paths.get(document.file).copied().unwrap_or_default();
        let open = OpenDefinition::of(object.kind, &document, path, object.unchecked);
        let result = match object.kind {
            Kind::NodePool => definition(&document, given_at, &revision_paths, keeps_places, "")
                .map(|value| definitions.node_pools.push(value)),
            Kind::EC2NodeClass => definition(&document, given_at, &revision_paths, keeps_places, "")
                .map(|value| definitions.node_classes.push(value)),
            Kind::NodeOverlay => definition(&document, given_at, &revision_paths, keeps_places, "")
                .map(|value| definitions.node_overlays.push(value)),
            Kind::CapacityBuffer => definition(&document, given_at, &revision_paths, keeps_places, "")
                .map(|value| definitions.capacity_buffers.push(value)),
            Kind::PodTemplate => definition(&document, given_at, &revision_paths, keeps_places, "")
                .map(|value| definitions.pod_templates.push(value)),
            Kind::DisruptionBudget => definition(&document, given_at, &revision_paths, keeps_places, "")
                .map(|value| definitions.disruption_budgets.push(value)),
            Kind::Settings if document.value.get("spec").is_none() => Ok(()),
            Kind::Settings => definition(&document, given_at, &revision_paths, keeps_places, "/spec")
                .map(|value: Definition<_>| definitions.settings = value.value),
            Kind::Scenario => definition(&document, given_at, &revision_paths, keeps_places, "/spec")
                .map(|value| definitions.scenario = Some(value)),
            Kind::ImageLock => definition(&document, given_at, &revision_paths, keeps_places, "/spec").map(
                |mut value: Definition<_>| {
                    value.places = places::of_locked(&document, &revision_paths);
                    definitions.image_lock = Some(value);
                },
            ),
        };
        let unread = result.err();
        match open {
            // A variable may be why the document can not be read.
            Some(open) => {
                definitions.open.push(OpenDefinition { unchecked: open.unchecked || unread.is_some(), ..open });
            }
            None => {
                let broken = || BrokenDefinition::of(object.kind, &document, &revision_paths);
                definitions.broken.extend(unread.is_some().then(broken).flatten());
                findings.extend(unread.map(|finding| *finding));
            }
        }
    }
    keep_templates_of_buffers(&mut definitions);
    definitions
}

/// Pod templates that no buffer names are somebody else's.
fn keep_templates_of_buffers(definitions: &mut Definitions) {
    let buffers = &definitions.capacity_buffers;
    let namespace = |metadata: &ObjectMeta| metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let is_named = |template: &ObjectMeta| {
        let names = |buffer: &CapacityBuffer| {
            let reference = buffer.spec.pod_template_ref.as_ref();
            reference.is_some_and(|it| Some(&it.name) == template.name.as_ref())
                && namespace(&buffer.metadata) == namespace(template)
        };
        buffers.iter().any(|buffer| names(&buffer.value))
    };
    definitions.pod_templates.retain(|template| is_named(&template.value.metadata));
}

fn definition<T: DeserializeOwned>(
    document: &Document,
    given_at: &BTreeMap<String, DefinitionPlace>,
    paths: &[&str],
    keeps_places: bool,
    pointer: &str,
) -> Result<Definition<T>, Box<Finding>> {
    let value = document.value.pointer(pointer).unwrap_or(&Value::Null);
    let own = places::of(document, "", paths);
    let mut places = if keeps_places { places::of_fields(document, paths) } else { BTreeMap::new() };
    for (pointer, place) in &mut places {
        if let Some(given) = given_at.get(pointer) {
            place.clone_from(given);
        }
    }
    let variables = document.variables.names().clone();
    let AsWritten { hidden: hidden_variables, hash: hash_as_written } = document.variables.as_written().clone();
    let (file, line) = (own.file, own.line);
    let definition = |value| Definition { value, file, line, places, variables, hash_as_written, hidden_variables };
    T::deserialize(value).map(definition).map_err(|error| {
        let message = format!("the document can not be read: {error}");
        Box::new(Finding::at(&reading::UNREADABLE, document, "", FindingPlace::Value, message))
    })
}
