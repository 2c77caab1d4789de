//! CL0626: pools and classes that Argo CD or Flux deletes as soon as they are no longer in Git, and nobody is asked.
//! Sources: Argo CD, "Sync Options", and "App Deletion"; Flux, Kustomization, "Prune" and "Deletion policy".

use serde_json::Value;

use super::Rule;
use super::recreation::{ANNOTATIONS, Placed, has_sync_option, named, placed, said};
use crate::definitions::argo::ArgoSource;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::flux::{FluxKustomization, FluxKustomizations};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::Object;

pub static PRUNED: Rule = Rule::pass(
    "CL0626",
    "pruned-unasked",
    Note,
    "Argo CD and Flux delete a pool or a class that is no longer in Git only where somebody confirms it.",
);

pub static RULES: &[&Rule] = &[&PRUNED];

const KINDS: &[Kind] = &[Kind::NodePool, Kind::EC2NodeClass];

const PRUNE_OF_FLUX: &str = "kustomize.toolkit.fluxcd.io/prune";
/// With `/foreground` or `/background` behind it, where somebody says how.
const FINALIZER_OF_ARGO: &str = "resources-finalizer.argocd.argoproj.io";

/// The options by which Argo CD leaves an object where it is, or asks first.
const KEPT_BY_PRUNING: &[&str] = &["Prune=false", "Prune=confirm"];
const KEPT_BY_DELETION: &[&str] = &["Delete=false", "Delete=confirm"];

/// `paths` are those of the files, in their order.
pub fn of_deliveries(
    flux: &FluxKustomizations,
    argo: &[ArgoSource<'_>],
    objects: &[Object],
    paths: &[&str],
) -> Vec<Finding> {
    let ours = placed(objects, KINDS, paths);
    if ours.is_empty() {
        return Vec::new();
    }
    let all = flux.folders().flat_map(|(_, all)| all).chain(flux.of_others());
    let mut findings: Vec<Finding> = all.filter_map(|it| of_flux(it, flux, &ours)).collect();
    let of_each = argo.chunk_by(|one, other| std::ptr::eq(one.document, other.document));
    findings.extend(of_each.flat_map(|sources| of_argo(sources, &ours)));
    findings
}

fn of_flux(it: &FluxKustomization, flux: &FluxKustomizations, ours: &[Placed<'_>]) -> Option<Finding> {
    let is_kept = |object: &Object| {
        // Flux reads labels as well.
        [ANNOTATIONS, "/metadata/labels"].into_iter().any(|within| {
            said(&object.document, within, PRUNE_OF_FLUX).is_some_and(|(_, text)| text.eq_ignore_ascii_case("disabled"))
        })
    };
    let is_built =
        |(object, place): &&Placed<'_>| flux.folder_of(place) == Some(it.folder.as_str()) && !is_kept(object);
    let covered: Vec<&Object> = ours.iter().filter(is_built).map(|(object, _)| *object).collect();
    let deletion = it.document.str("/spec/deletionPolicy").unwrap_or_default();
    let (at, when) = match it.document.value.pointer("/spec/prune") {
        Some(Value::Bool(true)) => ("/spec/prune", "as soon as it is no longer in Git"),
        _ if ["Delete", "WaitForTermination"].contains(&deletion) => {
            ("/spec/deletionPolicy", "as soon as the Kustomization is deleted")
        }
        _ => return None,
    };
    finding(
        (&it.document, at),
        "Flux",
        when,
        &covered,
        format!("annotate pools and classes with `{PRUNE_OF_FLUX}: Disabled`, and delete them yourself"),
    )
}

/// `sources` are those of one Application.
fn of_argo(sources: &[ArgoSource<'_>], ours: &[Placed<'_>]) -> Vec<Finding> {
    let Some(application) = sources.first().map(|source| source.document) else { return Vec::new() };
    let covered = |kept: &[&str]| -> Vec<&Object> {
        let is_applied = |(object, place): &&Placed<'_>| {
            sources.iter().any(|source| source.applies(place)) && !has_sync_option(&object.document, kept)
        };
        ours.iter().filter(is_applied).map(|(object, _)| *object).collect()
    };
    let advice = |option: &str| {
        format!("annotate pools and classes with `argocd.argoproj.io/sync-options: {option}`: then somebody is asked")
    };
    let pruned = pruned_by(application).and_then(|at| {
        let place = (application, at.as_str());
        let when = "as soon as it is no longer in Git";
        finding(place, "Argo CD", when, &covered(KEPT_BY_PRUNING), advice("Prune=confirm"))
    });
    let deleted = deleted_by(application).and_then(|(at, when)| {
        finding((application, &at), "Argo CD", when, &covered(KEPT_BY_DELETION), advice("Delete=confirm"))
    });
    pruned.into_iter().chain(deleted).collect()
}

/// Where it is said that what is no longer in Git goes by itself, unless the Application asks as well.
fn pruned_by(application: &Document) -> Option<String> {
    let policy = ["/spec/syncPolicy", "/spec/template/spec/syncPolicy"].into_iter().find(|policy| {
        let value = |field: &str| application.value.pointer(&format!("{policy}/{field}"));
        let is_said = |option: &Value| option.as_str().is_some_and(|it| KEPT_BY_PRUNING.contains(&it));
        let is_kept = application.items(&format!("{policy}/syncOptions")).any(|(_, option)| is_said(option));
        value("automated/prune") == Some(&Value::Bool(true))
            && value("automated/enabled") != Some(&Value::Bool(false))
            && !is_kept
    });
    policy.map(|policy| format!("{policy}/automated/prune"))
}

/// Where it is said that all goes with an Application, and when.
fn deleted_by(application: &Document) -> Option<(String, &'static str)> {
    let is_set = application.str("/kind") == Some("ApplicationSet");
    let (list, when) = match is_set {
        true => ("/spec/template/metadata/finalizers", "as soon as no generator gives its Application"),
        false => ("/metadata/finalizers", "as soon as the Application is deleted"),
    };
    let keeps = application.value.pointer("/spec/syncPolicy/preserveResourcesOnDeletion") == Some(&Value::Bool(true));
    if is_set && keeps {
        return None;
    }
    let is_it = |text: &Value| text.as_str().is_some_and(|it| it.starts_with(FINALIZER_OF_ARGO));
    application.items(list).find(|(_, it)| is_it(it)).map(|(pointer, _)| (pointer, when))
}

fn finding(
    (document, at): (&Document, &str),
    who: &str,
    when: &str,
    covered: &[&Object],
    hint: String,
) -> Option<Finding> {
    let first = covered.first()?;
    let (what, _, consequence) = named(covered)?;
    let when =
        if covered.len() == 1 { when.to_owned() } else { when.replace("it is", "they are").replace("its", "their") };
    let message = format!("{who} deletes {what} {when}, and nobody is asked: {consequence}");
    let finding = Finding::at(&PRUNED, document, at, FindingPlace::Value, message);
    Some(finding.related(&first.document, "/metadata/name", "what goes").hint(hint))
}
