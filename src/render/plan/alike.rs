//! What is alike is told once, and counted: thousands of pods and nodes have few reasons, whose sentences differ in names and figures only.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::plan::{Change, CloudFact, DefinitionPlace, HeldBack, Pending, ReasonCode, Risk, RiskCode};

/// What reasons with one code have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness<'a> {
    Kind(&'a [String]),
    /// Of plans of older versions: nothing is alike but what reads the same.
    Text(&'a str),
}

impl<'a> Likeness<'a> {
    fn of(kind: &'a [String], text: &'a str) -> Self {
        if kind.is_empty() { Self::Text(text) } else { Self::Kind(kind) }
    }
}

/// What is at risk, by the kind of risk.
pub fn risks_by_code(risks: &[Risk]) -> BTreeMap<RiskCode, Vec<&Risk>> {
    let mut by_code: BTreeMap<RiskCode, Vec<&Risk>> = BTreeMap::new();
    for risk in risks {
        by_code.entry(risk.code).or_default().push(risk);
    }
    by_code
}

/// Nodes that are held back for what is alike.
#[derive(Debug, PartialEq, Eq)]
pub struct HeldBackAlike<'a> {
    /// In the order of the plan.
    pub nodes: Vec<&'a str>,
    /// The first sentence, and how many different ones there are.
    pub text: &'a str,
    pub texts: usize,
    /// Where the definition sets what the first sentence is about.
    pub definition: Option<&'a DefinitionPlace>,
}

/// Nodes that are held back, by code and likeness, the likeness with most nodes first. O(nodes log nodes).
pub fn held_back_alike(held_back: &[HeldBack]) -> BTreeMap<ReasonCode, Vec<HeldBackAlike<'_>>> {
    let mut alike: BTreeMap<(ReasonCode, Likeness<'_>), Vec<&HeldBack>> = BTreeMap::new();
    for held in held_back {
        alike.entry((held.code, Likeness::of(&held.kind, &held.text))).or_default().push(held);
    }
    let mut by_code: BTreeMap<ReasonCode, Vec<HeldBackAlike<'_>>> = BTreeMap::new();
    for ((code, _), held) in alike {
        let alike = HeldBackAlike {
            nodes: held.iter().map(|held| held.node.as_str()).collect(),
            text: held.first().map_or("", |held| held.text.as_str()),
            texts: held.iter().map(|held| held.text.as_str()).collect::<BTreeSet<_>>().len(),
            definition: held.first().and_then(|held| held.definition.as_ref()),
        };
        by_code.entry(code).or_default().push(alike);
    }
    for rows in by_code.values_mut() {
        rows.sort_by(|one, two| two.nodes.len().cmp(&one.nodes.len()).then_with(|| one.text.cmp(two.text)));
    }
    by_code
}

/// Groups of pods that wait for reasons that are alike, and that changes of one kind would help.
#[derive(Debug)]
pub struct PendingAlike<'a> {
    pub groups: Vec<&'a Pending>,
    pub pods: usize,
}

impl<'a> PendingAlike<'a> {
    /// How many different texts the groups have beside that of the first.
    pub fn other_texts(&self, text: impl Fn(&'a Pending) -> Option<&'a str>) -> usize {
        let texts: BTreeSet<&str> = self.groups.iter().filter_map(|group| text(group)).collect();
        texts.len().saturating_sub(1)
    }
}

/// What groups of pods have in common that are told as one: of each reason its pool, code and likeness, and what would help.
type WaitsAlike<'a> = (Vec<(&'a str, ReasonCode, Likeness<'a>)>, Vec<Change>, Option<&'a str>);

fn waits_alike(group: &Pending) -> WaitsAlike<'_> {
    let reasons = group.reasons.iter();
    let reasons = reasons.map(|it| (it.node_pool.as_str(), it.code, Likeness::of(&it.kind, &it.text))).collect();
    // Plans of older versions have changes in words alone.
    let in_words = group.smallest_change.as_deref().filter(|_| group.changes.is_empty());
    (reasons, group.changes.iter().map(Change::kind).collect(), in_words)
}

/// Pods that wait, with groups that are alike as one: most pods first, then in the order of the plan. O(pods log
/// pods).
pub fn pending_alike(pending: &[Pending]) -> Vec<PendingAlike<'_>> {
    let mut places: BTreeMap<WaitsAlike<'_>, usize> = BTreeMap::new();
    let mut alike: Vec<PendingAlike<'_>> = Vec::new();
    for group in pending {
        let place = *places.entry(waits_alike(group)).or_insert(alike.len());
        match alike.get_mut(place) {
            Some(existing) => {
                existing.groups.push(group);
                existing.pods += group.pods.len();
            }
            None => alike.push(PendingAlike { groups: vec![group], pods: group.pods.len() }),
        }
    }
    alike.sort_by_key(|group| std::cmp::Reverse(group.pods));
    alike
}

/// Facts by EC2NodeClass, in the plan's order; those of the account have the empty name.
pub fn by_class(facts: &[CloudFact]) -> BTreeMap<&str, Vec<&CloudFact>> {
    let mut grouped: BTreeMap<&str, Vec<&CloudFact>> = BTreeMap::new();
    for fact in facts {
        grouped.entry(&fact.node_class).or_default().push(fact);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::PendingReason;

    fn held(node: &str, kind: &[&str], text: &str) -> HeldBack {
        HeldBack {
            node: node.to_owned(),
            code: ReasonCode::NotCheaper,
            text: text.to_owned(),
            kind: kind.iter().map(|word| (*word).to_owned()).collect(),
            budget: None,
            definition: None,
        }
    }

    fn rows(held_back: &[HeldBack]) -> Vec<(usize, usize, &str)> {
        let alike = held_back_alike(held_back).remove(&ReasonCode::NotCheaper).unwrap();
        alike.iter().map(|row| (row.nodes.len(), row.texts, row.text)).collect()
    }

    #[test]
    fn nodes_that_are_held_back_for_one_kind_of_reason_are_one_row() {
        let nodes = [
            held("a", &["NoRoom", "OneCheaperNode"], "3 of its 5 pods fit nowhere"),
            held("b", &["NothingIsSaved"], "nothing would be saved"),
            held("c", &["NoRoom", "OneCheaperNode"], "its only pod fits nowhere"),
        ];
        assert_eq!(rows(&nodes), [(2, 2, nodes[0].text.as_str()), (1, 1, "nothing would be saved")]);
    }

    #[test]
    fn of_a_plan_without_kinds_only_the_same_sentence_is_alike() {
        let nodes = [held("a", &[], "2 pods"), held("b", &[], "3 pods"), held("c", &[], "3 pods")];
        assert_eq!(rows(&nodes), [(2, 1, "3 pods"), (1, 1, "2 pods")]);
    }

    #[test]
    fn pods_that_the_same_kinds_of_changes_would_help_are_one_group() {
        let raise = |node_pool: &str, to: &str| Change::RaiseLimit {
            node_pool: node_pool.to_owned(),
            resource: "cpu".to_owned(),
            from: "1".to_owned(),
            to: to.to_owned(),
        };
        let group = |pod: &str, text: &str, change: Change| Pending {
            pods: vec![pod.to_owned()],
            reasons: vec![PendingReason::new("a", ReasonCode::LimitReached, text.to_owned())],
            smallest_change: Some(change.to_string()),
            changes: vec![change],
        };
        let pending = [
            group("a", "4 used", raise("a", "5")),
            group("b", "1 used", raise("b", "2")),
            group("c", "5 used", raise("a", "6")),
        ];
        let alike = pending_alike(&pending);
        assert_eq!(alike.iter().map(|it| it.pods).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(alike[0].other_texts(|group| group.smallest_change.as_deref()), 1);
    }
}
