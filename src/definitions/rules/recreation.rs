//! CL0623 and CL0624: annotations by which Argo CD or Flux deletes what it is to change, and makes it anew.

use serde_json::Value;

use super::Rule;
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::kinds::Kind;

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
const ANNOTATIONS: &str = "/metadata/annotations";

/// The pointer and the text of an annotation, or of whatever is asked as one.
fn said<'d>(document: &'d Document, within: &str, name: &str) -> Option<(String, &'d str)> {
    let mut members = document.members(within);
    members.find(|(_, key, _)| *key == name).and_then(|(pointer, _, value)| Some((pointer, value.as_str()?)))
}

/// Where the options of Argo CD stand, and whether each is among them.
fn sync_options<const COUNT: usize>(document: &Document, asked: [&str; COUNT]) -> Option<(String, [bool; COUNT])> {
    let (pointer, text) = said(document, ANNOTATIONS, SYNC_OPTIONS)?;
    let has = |option: &str| text.split(',').any(|it| it.trim() == option);
    Some((pointer, asked.map(has)))
}

/// What it means that the object is deleted.
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
        let finding = Finding::at(&RECREATED, document, &pointer, Place::Value, message);
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
    let finding = Finding::at(&REPLACED, document, &pointer, Place::Value, message);
    vec![finding.hint("leave it out, or write `ServerSideApply=true`: these objects are small enough to be applied")]
}
