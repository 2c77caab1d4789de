//! CL0343 and CL0344: what `terminationGracePeriod` makes of the age at which nodes go. Expiry asks no budget, and its drain has no other end.

use super::Rule;
use super::ages::{EXPIRE_AFTER, GRACE_PERIOD, seconds};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::{is_of_another_provider, is_of_auto_mode};

pub static WITHOUT_GRACE: Rule = Rule::document(
    "CL0343",
    "expiry-without-grace",
    Note,
    "A pool that chooses an age for its nodes also says how long their drains may take.",
    &[Kind::NodePool],
    without_grace,
);
pub static GRACE_BEYOND_LIFE: Rule = Rule::document(
    "CL0344",
    "grace-beyond-life",
    Note,
    "A drain may take no longer than a node lives before it.",
    &[Kind::NodePool],
    grace_beyond_life,
);

pub static RULES: &[&Rule] = &[&WITHOUT_GRACE, &GRACE_BEYOND_LIFE];

/// Karpenter's default. Most pools have it written out as the examples do, and nobody chose it.
const DEFAULT_SECONDS: u64 = 720 * 3_600;

fn without_grace(document: &Document) -> Vec<Finding> {
    let chosen = seconds(document, EXPIRE_AFTER).filter(|life| ![0, DEFAULT_SECONDS].contains(life));
    let has_grace = document.value.pointer(GRACE_PERIOD).is_some();
    // Nodes of EKS Auto Mode have a grace period of their own.
    if chosen.is_none() || has_grace || is_of_auto_mode(document) || is_of_another_provider(document) {
        return Vec::new();
    }
    let life = document.str(EXPIRE_AFTER).unwrap_or_default();
    let message = format!(
        "nodes are drained after {life}, but need not be gone: without terminationGracePeriod a drain that a PodDisruptionBudget or do-not-disrupt holds up never ends"
    );
    let finding = Finding::at(&WITHOUT_GRACE, document, EXPIRE_AFTER, FindingPlace::Value, message);
    vec![finding.hint("write how long a drain may take at most, such as `terminationGracePeriod: 24h`; right as it is where no pod may be killed")]
}

fn grace_beyond_life(document: &Document) -> Vec<Finding> {
    let Some(life) = seconds(document, EXPIRE_AFTER).filter(|life| *life > 0) else { return Vec::new() };
    if seconds(document, GRACE_PERIOD).is_none_or(|grace| grace <= life) {
        return Vec::new();
    }
    let text = |pointer: &str| document.str(pointer).unwrap_or_default();
    let message = format!(
        "nodes go after {}, and their drain may take {}: a node may be drained for longer than it took pods",
        text(EXPIRE_AFTER),
        text(GRACE_PERIOD)
    );
    let finding = Finding::at(&GRACE_BEYOND_LIFE, document, EXPIRE_AFTER, FindingPlace::Value, message);
    let finding = finding.related(document, GRACE_PERIOD, "how long a drain may take");
    vec![finding.hint("shorten `terminationGracePeriod`, or let nodes live longer")]
}
