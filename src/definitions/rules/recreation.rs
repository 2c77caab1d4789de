//! CL0623 and CL0624: annotations by which Argo CD or Flux deletes what it is to change, and makes it anew; and the same of all objects of an
//! Application or a Kustomization.

use serde_json::Value;

use super::Rule;
use crate::definitions::argo::ArgoSource;
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::flux::{FluxKustomization, FluxKustomizations};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::Object;

const KINDS: &[Kind] = &[Kind::NodePool, Kind::EC2NodeClass, Kind::NodeOverlay];

pub static RECREATED: Rule = Rule::document(
    "CL0623",
    "recreated-on-change",
    Warning,
    "A pool, a class or an overlay is changed in place: none is deleted and made anew.",
    KINDS,
    recreated,
);
pub static REPLACED: Rule = Rule::document(
    "CL0624",
    "replaced-on-sync",
    Note,
    "A pool, a class or an overlay is applied, so that what Karpenter wrote to it stays.",
    KINDS,
    replaced,
);

pub static RULES: &[&Rule] = &[&RECREATED, &REPLACED];

const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const FORCE_OF_FLUX: &str = "kustomize.toolkit.fluxcd.io/force";
const REPLACE: &str = "Replace=true";
const FORCE: &str = "Force=true";
pub(super) const ANNOTATIONS: &str = "/metadata/annotations";

/// The pointer and the text of an annotation, or of whatever is asked as one.
pub(super) fn said<'d>(document: &'d Document, within: &str, name: &str) -> Option<(String, &'d str)> {
    let mut members = document.members(within);
    members.find(|(_, key, _)| *key == name).and_then(|(pointer, _, value)| Some((pointer, value.as_str()?)))
}

/// Whether one of these options of Argo CD is said at the object.
pub(super) fn has_sync_option(document: &Document, options: &[&str]) -> bool {
    let said = said(document, ANNOTATIONS, SYNC_OPTIONS);
    said.is_some_and(|(_, text)| text.split(',').any(|it| options.contains(&it.trim())))
}

/// Where the options of Argo CD stand, and whether each is among them.
fn sync_options<const COUNT: usize>(document: &Document, asked: [&str; COUNT]) -> Option<(String, [bool; COUNT])> {
    let (pointer, text) = said(document, ANNOTATIONS, SYNC_OPTIONS)?;
    let has = |option: &str| text.split(',').any(|it| it.trim() == option);
    Some((pointer, asked.map(has)))
}

/// The consequence of deleting the object.
fn consequence(document: &Document) -> &'static str {
    match document.value.get("kind").and_then(Value::as_str) {
        Some("NodePool") => "the nodes of a NodePool go with it, all at once, whatever its budgets say",
        Some("EC2NodeClass") => {
            "a class that is being deleted makes no nodes, and is not gone before the last node of it is"
        }
        _ => "until it is there again, its prices and resources do not count",
    }
}

fn recreated(document: &Document) -> Vec<Finding> {
    let of_argo = sync_options(document, [REPLACE, FORCE]).and_then(|(pointer, [replace, force])| {
        let when = if replace { "with each change" } else { "where a change can not be applied" };
        force.then(|| (pointer, format!("{when} Argo CD deletes the object, and makes it anew")))
    });
    // Flux reads labels as well.
    let of_flux = [ANNOTATIONS, "/metadata/labels"].into_iter().find_map(|within| {
        let (pointer, _) =
            said(document, within, FORCE_OF_FLUX).filter(|(_, text)| text.eq_ignore_ascii_case("enabled"))?;
        Some((pointer, "where a change can not be applied Flux deletes the object, and makes it anew".to_owned()))
    });
    let finding = |(pointer, what): (String, String)| {
        let message = format!("{what}: {}", consequence(document));
        let finding = Finding::at(&RECREATED, document, &pointer, FindingPlace::Value, message);
        finding.hint(
            "leave it out: what can not be changed is better made under another name, and the old one removed after it",
        )
    };
    of_argo.into_iter().chain(of_flux).map(finding).collect()
}

fn replaced(document: &Document) -> Vec<Finding> {
    let Some((pointer, [true, false])) = sync_options(document, [REPLACE, FORCE]) else { return Vec::new() };
    let message = format!(
        "each sync takes away what Karpenter wrote to the object, such as its hash; and one that is forced deletes it: {}",
        consequence(document)
    );
    let finding = Finding::at(&REPLACED, document, &pointer, FindingPlace::Value, message);
    vec![finding.hint("leave it out, or write `ServerSideApply=true`: these objects are small enough to be applied")]
}

/// An object, and the path of its file or of the kustomization that builds it.
pub(super) type Placed<'o> = (&'o Object, &'o str);

/// The objects of these kinds that are applied, those of the first kind first. `paths` are those of the files, in their order.
pub(super) fn placed<'o>(objects: &'o [Object], kinds: &[Kind], paths: &[&'o str]) -> Vec<Placed<'o>> {
    let is_applied = |object: &&Object| kinds.contains(&object.kind) && !object.staged;
    let place = |object: &Object| paths.get(object.build.unwrap_or(object.document.file)).copied().unwrap_or_default();
    let mut placed: Vec<Placed<'_>> = objects.iter().filter(is_applied).map(|it| (it, place(it))).collect();
    // The first kind of several has most to lose.
    placed.sort_by_key(|(object, _)| object.kind);
    placed
}

/// Kustomizations of Flux and Applications of Argo CD that are told so of all their objects. `paths` are those of the files, in their order.
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
    let mut findings = forced_by_flux(flux, &ours);
    let of_each = argo.chunk_by(|one, other| std::ptr::eq(one.document, other.document));
    findings.extend(of_each.flat_map(|sources| replaced_by_argo(sources, &ours)));
    findings
}

fn forced_by_flux(flux: &FluxKustomizations, ours: &[Placed<'_>]) -> Vec<Finding> {
    const AT: &str = "/spec/force";
    let all = flux.folders().flat_map(|(_, all)| all).chain(flux.of_others());
    let forced = all.filter(|it| it.document.value.pointer(AT) == Some(&Value::Bool(true)));
    let finding = |it: &FluxKustomization| {
        let is_built = |(_, place): &&Placed<'_>| flux.folder_of(place) == Some(it.folder.as_str());
        let covered: Vec<&Object> = ours.iter().filter(is_built).map(|(object, _)| *object).collect();
        let (what, pronoun, consequence) = named(&covered)?;
        let message =
            format!("where a change can not be applied Flux deletes {what}, and makes {pronoun} anew: {consequence}");
        let finding = Finding::at(&RECREATED, &it.document, AT, FindingPlace::Value, message);
        Some(finding.hint(format!("leave it out, and write `{FORCE_OF_FLUX}: enabled` at the objects that need it")))
    };
    forced.filter_map(finding).collect()
}

/// `sources` are those of one Application.
fn replaced_by_argo(sources: &[ArgoSource<'_>], ours: &[Placed<'_>]) -> Vec<Finding> {
    let Some(application) = sources.first().map(|source| source.document) else { return Vec::new() };
    let is_without = |object: &Object| has_sync_option(&object.document, &["Replace=false"]);
    let is_applied =
        |(object, place): &&Placed<'_>| sources.iter().any(|source| source.applies(place)) && !is_without(object);
    let covered: Vec<&Object> = ours.iter().filter(is_applied).map(|(object, _)| *object).collect();
    let Some((what, pronoun, consequence)) = named(&covered) else { return Vec::new() };
    let options = ["/spec", "/spec/template/spec"].map(|spec| format!("{spec}/syncPolicy/syncOptions"));
    let options = options.iter().flat_map(|list| application.items(list)).filter(|(_, option)| *option == REPLACE);
    let finding = |(pointer, _): (String, &Value)| {
        let message = format!(
            "each sync takes away what Karpenter wrote to {what}, such as its hash; and one that is forced deletes {pronoun}: {consequence}"
        );
        let finding = Finding::at(&REPLACED, application, &pointer, FindingPlace::Value, message);
        finding.hint(
            "leave it out, and annotate the objects that are too large to be applied; or write `ServerSideApply=true`",
        )
    };
    options.map(finding).collect()
}

/// The first object with the number of the others, a word for them, and what it means that they are deleted.
pub(super) fn named(covered: &[&Object]) -> Option<(String, &'static str, &'static str)> {
    let (first, others) = covered.split_first()?;
    let name = first.document.name()?;
    let (what, pronoun) = match others.len() {
        0 => (name, "it"),
        count => (format!("{name} and {count} more"), "them"),
    };
    Some((what, pronoun, consequence(&first.document)))
}
