//! CL0334 and CL0335: ages at which nodes end before they are of use, and drains that give pods no time.

use super::Rule;
use crate::api::duration::NillableDuration;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static SHORT_LIFE: Rule = Rule::document(
    "CL0334",
    "short-life",
    Warning,
    "Nodes live longer than they take to join, and longer than consolidateAfter.",
    &[Kind::NodePool],
    short_life,
);
pub static NO_GRACE: Rule = Rule::document(
    "CL0335",
    "no-grace",
    Warning,
    "Pods of a node that goes have some time to end.",
    &[Kind::NodePool],
    no_grace,
);

pub static RULES: &[&Rule] = &[&SHORT_LIFE, &NO_GRACE];

pub(super) const EXPIRE_AFTER: &str = "/spec/template/spec/expireAfter";
pub(super) const GRACE_PERIOD: &str = "/spec/template/spec/terminationGracePeriod";
/// How long Karpenter waits for a node to join before it gives the node up: `registrationTTL` of the reference.
pub(super) const REGISTRATION_SECONDS: u64 = 15 * 60;

/// Gives `None` for `Never`, and for what can not be read.
pub(super) fn seconds(document: &Document, pointer: &str) -> Option<u64> {
    document.str(pointer)?.parse::<NillableDuration>().ok()?.seconds()
}

fn short_life(document: &Document) -> Vec<Finding> {
    let Some(life) = seconds(document, EXPIRE_AFTER) else { return Vec::new() };
    let after = seconds(document, "/spec/disruption/consolidateAfter").filter(|after| *after >= life);
    let (message, hint) = match after {
        _ if life == 0 => (
            "with `expireAfter: 0s` every node is expired as soon as it is there, for ever",
            "write `Never` for nodes that do not expire",
        ),
        _ if life < REGISTRATION_SECONDS => (
            "nodes expire sooner than Karpenter waits for one to join, which is 15m",
            "write an age such as `720h`, or `Never`",
        ),
        Some(_) => (
            "nodes expire before consolidation may look at them: consolidateAfter is no shorter",
            "shorten `consolidateAfter`, or write `Never` there for a pool that is not consolidated",
        ),
        None => return Vec::new(),
    };
    vec![Finding::at(&SHORT_LIFE, document, EXPIRE_AFTER, FindingPlace::Value, message).hint(hint)]
}

fn no_grace(document: &Document) -> Vec<Finding> {
    if seconds(document, GRACE_PERIOD) != Some(0) {
        return Vec::new();
    }
    let message =
        "with `terminationGracePeriod: 0s` every pod is killed at once where a node goes, whatever its budgets say";
    let finding = Finding::at(&NO_GRACE, document, GRACE_PERIOD, FindingPlace::Value, message);
    vec![finding.hint("write how long a drain may take at most, such as `24h`, or leave it out: then a drain waits")]
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::lint;

    fn codes(expire_after: &str, grace: &str, consolidate_after: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: general }}\nspec:\n  disruption: {{ consolidateAfter: \
             {consolidate_after} }}\n  template:\n    spec:\n      nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: \
             default }}\n      requirements: []\n      expireAfter: {expire_after}\n      terminationGracePeriod: {grace}\n"
        );
        let found = lint(&[SourceFile::new("pool.yaml".to_owned(), text)], &Default::default()).diagnostics;
        found.into_iter().map(|it| it.code).filter(|code| ["CL0334", "CL0335"].contains(&code.as_str())).collect()
    }

    #[test]
    fn says_what_ends_too_early() {
        for (expire_after, grace, consolidate_after, expected) in [
            ("0s", "24h", "1m", ["CL0334"].as_slice()),
            ("14m59s", "24h", "1m", &["CL0334"]),
            ("15m", "24h", "1m", &[]),
            ("1h", "24h", "1h", &["CL0334"]),
            ("1h", "24h", "Never", &[]),
            ("Never", "0s", "1m", &["CL0335"]),
            ("0s", "0s", "1m", &["CL0334", "CL0335"]),
            ("Never", "1s", "720h", &[]),
        ] {
            assert_eq!(codes(expire_after, grace, consolidate_after), expected, "{expire_after} {grace}");
        }
    }
}
