//! CL0627 and CL0628: Applications of Argo CD that apply pools together with the controller, or that make up their names.
//! Sources: Argo CD, "Sync Phases and Waves", "Kustomize", and "Generating Applications with ApplicationSet".

use std::sync::Arc;

use serde_json::Value;

use super::Rule;
use super::recreation::{ANNOTATIONS, Placed, named, placed, said};
use crate::definitions::argo::{self, ArgoSource};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::{self, Document};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::Object;

pub static WITHOUT_WAVES: Rule = Rule::pass(
    "CL0627",
    "without-waves",
    Note,
    "Pools and classes that Argo CD applies with the controller are in a later wave.",
);
pub static TEMPLATED_NAME: Rule =
    Rule::pass("CL0628", "templated-pool-name", Note, "No ApplicationSet makes up the name of a pool or a class.");

pub static RULES: &[&Rule] = &[&WITHOUT_WAVES, &TEMPLATED_NAME];

const KINDS: &[Kind] = &[Kind::NodePool, Kind::EC2NodeClass];
const WAVE: &str = "argocd.argoproj.io/sync-wave";
const CHART: &str = "karpenter";
/// Part of the name of the controller's image, wherever it is mirrored.
const IMAGE: &str = "karpenter/controller";

/// `documents` are all of the files as they are written, `paths` those of the files in their order.
pub fn of_deliveries(
    argo: &[ArgoSource<'_>],
    documents: &[&Document],
    objects: &[Object],
    paths: &[&str],
) -> Vec<Finding> {
    let ours = if argo.is_empty() { Vec::new() } else { placed(objects, KINDS, paths) };
    if ours.is_empty() {
        return Vec::new();
    }
    let controllers: Vec<(&Document, &str)> = documents
        .iter()
        .filter(|it| is_controller(it))
        .map(|it| (*it, paths.get(it.file).copied().unwrap_or_default()))
        .collect();
    let of_each = argo.chunk_by(|one, other| std::ptr::eq(one.document, other.document));
    let mut findings: Vec<Finding> =
        of_each.filter_map(|sources| without_waves(sources, &controllers, &ours)).collect();
    findings.extend(argo.iter().flat_map(|source| templated_names(source, &ours)));
    findings
}

/// Whether the object is Karpenter's controller, or what brings its chart.
fn is_controller(document: &Document) -> bool {
    let is_image =
        |container: &Value| container.get("image").and_then(Value::as_str).is_some_and(|image| image.contains(IMAGE));
    match document.str("/kind") {
        Some("Deployment") => document.items("/spec/template/spec/containers").any(|(_, it)| is_image(it)),
        Some("HelmRelease") => document.str("/spec/chart/spec/chart") == Some(CHART),
        Some("Application") => argo::is_application(document) && chart(document).is_some(),
        _ => false,
    }
}

/// The source of an Application that is the controller's chart.
fn chart(application: &Document) -> Option<String> {
    argo::sources_of(application).into_iter().find(|source| application.str(&format!("{source}/chart")) == Some(CHART))
}

fn wave(document: &Document) -> i64 {
    said(document, ANNOTATIONS, WAVE).and_then(|(_, text)| text.trim().parse().ok()).unwrap_or_default()
}

/// `sources` are those of one Application.
fn without_waves(
    sources: &[ArgoSource<'_>],
    controllers: &[(&Document, &str)],
    ours: &[Placed<'_>],
) -> Option<Finding> {
    let application = sources.first()?.document;
    let is_applied = |place: &str| sources.iter().any(|source| source.applies(place));
    // The chart gives its objects no waves.
    let of_chart = chart(application).map(|pointer| (application, pointer, 0));
    let of_files = controllers.iter().filter(|(it, place)| !std::ptr::eq(*it, application) && is_applied(place));
    let of_files = of_files.map(|(it, _)| (*it, "/kind".to_owned(), wave(it)));
    let (controller, pointer, its_wave) = of_chart.into_iter().chain(of_files).max_by_key(|(.., wave)| *wave)?;
    let is_early = |(object, place): &&Placed<'_>| is_applied(place) && wave(&object.document) <= its_wave;
    let early: Vec<&Object> = ours.iter().filter(is_early).map(|(object, _)| *object).collect();
    let (what, ..) = named(&early)?;
    let first = early.first()?;
    let at = sources.iter().find(|source| ours.iter().any(|(_, place)| source.applies(place)))?;
    let is = if early.len() == 1 { "is" } else { "are" };
    let message = format!(
        "{what} {is} applied with the controller, and in no later wave: where all is removed the controller may go first, and then nothing ends the nodes"
    );
    let place = format!("{}/path", at.pointer);
    let finding = Finding::at(&WITHOUT_WAVES, application, &place, FindingPlace::Value, message);
    let finding = finding.related(controller, &pointer, "the controller");
    let finding = finding.related(&first.document, "/metadata/name", "in the same wave or an earlier one");
    let next = its_wave.saturating_add(1);
    Some(finding.hint(format!(
        "annotate pools and classes with `{WAVE}: \"{next}\"`, or give the controller an Application of its own"
    )))
}

/// Names that a set of Applications makes of what its generators say.
fn templated_names(source: &ArgoSource<'_>, ours: &[Placed<'_>]) -> Vec<Finding> {
    let document = source.document;
    if document.str("/kind") != Some("ApplicationSet") {
        return Vec::new();
    }
    let applied: Vec<&Object> = ours.iter().filter(|(_, place)| source.applies(place)).map(|(it, _)| *it).collect();
    let Some((what, _, consequence)) = named(&applied) else { return Vec::new() };
    let parts = ["kustomize/namePrefix", "kustomize/nameSuffix"].map(|field| format!("{}/{field}", source.pointer));
    let parts = parts.into_iter().filter(|pointer| document.str(pointer).is_some_and(|text| text.contains("{{")));
    let patches = format!("{}/kustomize/patches", source.pointer);
    let patches =
        document.items(&patches).filter(|(_, patch)| names_anew(patch)).map(|(pointer, _)| format!("{pointer}/patch"));
    let message = format!(
        "the generator has a part in the name of {what}: where that changes the object is deleted, and one of another name is made, and {consequence}"
    );
    let finding = |pointer: String| {
        let finding = Finding::at(&TEMPLATED_NAME, document, &pointer, FindingPlace::Value, message.clone());
        finding.hint("leave names as they are in the files, since each cluster has its own; fill in what may change, such as limits")
    };
    parts.chain(patches).map(finding).collect()
}

/// Whether a patch of pools or classes puts what a generator says in the place of the name.
fn names_anew(patch: &Value) -> bool {
    let kind = patch.pointer("/target/kind").and_then(Value::as_str);
    let Some(text) = patch.get("patch").and_then(Value::as_str).filter(|text| text.contains("{{")) else {
        return false;
    };
    let parsed = document::parse(0, &Arc::from(text));
    let operations = parsed.documents.iter().filter_map(|it| it.value.as_array()).flatten();
    let names = |operation: &Value| {
        let text = |field: &str| operation.get(field).and_then(Value::as_str).unwrap_or_default();
        text("path") == "/metadata/name" && text("value").contains("{{")
    };
    kind.is_some_and(|kind| KINDS.iter().any(|it| it.name() == kind)) && operations.into_iter().any(names)
}
