//! CL0621 and CL0622: NodePools that were there at the revision that lint holds against (`--against`), and are not now.

use std::collections::BTreeSet;

use super::Rule;
use crate::definitions::before::{Before, Gone, pools};
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::diagnostic::Span;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::revision::Object;

pub static REMOVED: Rule =
    Rule::pass("CL0621", "pool-removed", Note, "A NodePool that was defined before is defined still.");
pub static RENAMED: Rule = Rule::pass("CL0622", "pool-renamed", Warning, "A NodePool keeps its name.");

pub static RULES: &[&Rule] = &[&REMOVED, &RENAMED];

const WHAT_GOES: &str =
    "with it Karpenter deletes its NodeClaims, and drains all its nodes at once, past its disruption budgets";

/// What is found, and the files that were there before, whose index follows those of `paths`.
pub fn removed_pools<'b>(before: &'b Before, objects: &[Object], paths: &[&str]) -> (Vec<Finding>, Vec<&'b str>) {
    let mut files: Vec<&str> = Vec::new();
    let mut taken: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut findings = Vec::new();
    for gone in before.gone_pools(objects, paths) {
        let is_heir = |(place, name, pool): &(&str, &str, &Object)| {
            *place == gone.place && !before.had_pool(name) && !taken.contains(&(*place, *name)) && is_alike(&gone, pool)
        };
        let heir = pools(objects, paths).find(is_heir).map(|(place, name, pool)| {
            taken.insert((place, name));
            renamed(&gone, pool)
        });
        findings.push(heir.unwrap_or_else(|| {
            let here = paths.iter().position(|path| *path == gone.place);
            let file = here.unwrap_or_else(|| {
                let known = files.iter().position(|path| *path == gone.place);
                paths.len()
                    + known.unwrap_or_else(|| {
                        files.push(gone.place);
                        files.len() - 1
                    })
            });
            removed(&gone, file)
        }));
    }
    (findings, files)
}

/// Whether a pool makes the nodes that the other one made.
fn is_alike(gone: &Gone<'_>, pool: &Object) -> bool {
    gone.value.pointer("/spec/template") == pool.document.value.pointer("/spec/template")
}

fn renamed(gone: &Gone<'_>, pool: &Object) -> Finding {
    let name = gone.name;
    let message = format!("NodePool `{name}` has got another name, and so is deleted: {WHAT_GOES}");
    let finding = Finding::at(&RENAMED, &pool.document, "/metadata/name", FindingPlace::Value, message);
    finding.hint(format!(
        "keep the name; or leave `{name}` beside the new one with `limits: {{ nodes: 0 }}`, and remove it when its nodes are gone"
    ))
}

fn removed(gone: &Gone<'_>, file: usize) -> Finding {
    let name = gone.name;
    let message = format!("NodePool `{name}` is not in these files any more: {WHAT_GOES}");
    let mut finding = Finding::at_span(&REMOVED, file, Span::start(), message);
    finding.object = Some(format!("NodePool/{name}"));
    finding.hint("right if it has moved to files that are not read here; else stop it first with `limits: { nodes: 0 }`, let its nodes go, and remove it then")
}
