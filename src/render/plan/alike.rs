//! Sentences that read alike are told once, and counted: thousands of pods and nodes have few reasons, which differ in
//! names and figures only.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::plan::{CloudFact, DefinitionPlace, HeldBack, Pending, ReasonCode, Risk, RiskCode};

/// The sentence without what differs from node to node: words with a digit or a slash. The keys of labels and taints
/// stay, since sentences about different keys are not alike. Their values go.
fn shape(text: &str) -> String {
    let word = |word: &str| {
        // A price for an hour has a dot and a slash, too.
        let is_domain = |text: &str| text.contains('.') && text.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_quoted = |character: char| matches!(character, '`' | '"' | '(');
        if word.split_once('/').is_some_and(|(domain, _)| is_domain(domain.trim_start_matches(is_quoted))) {
            return word.split_once('=').map_or_else(|| word.to_owned(), |(key, _)| format!("{key}=#"));
        }
        let is_particular = word.contains(|character: char| character.is_ascii_digit() || character == '/');
        if is_particular { "#".to_owned() } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What is at risk, by the kind of risk.
pub fn risks_by_code(risks: &[Risk]) -> BTreeMap<RiskCode, Vec<&Risk>> {
    let mut by_code: BTreeMap<RiskCode, Vec<&Risk>> = BTreeMap::new();
    for risk in risks {
        by_code.entry(risk.code).or_default().push(risk);
    }
    by_code
}

/// Nodes that are held back with sentences of one shape.
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

/// Nodes that are held back, by code and shape of sentence, the shape with most nodes first. O(nodes log nodes).
pub fn held_back_alike(held_back: &[HeldBack]) -> BTreeMap<ReasonCode, Vec<HeldBackAlike<'_>>> {
    let mut shapes: BTreeMap<(ReasonCode, String), Vec<&HeldBack>> = BTreeMap::new();
    for held in held_back {
        shapes.entry((held.code, shape(&held.text))).or_default().push(held);
    }
    let mut by_code: BTreeMap<ReasonCode, Vec<HeldBackAlike<'_>>> = BTreeMap::new();
    for ((code, _), held) in shapes {
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

/// Groups of pods that wait for reasons of one shape, with changes of one shape.
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

/// Pods that wait, with groups that read alike as one: most pods first, then in the order of the plan. O(pods log
/// pods).
pub fn pending_alike(pending: &[Pending]) -> Vec<PendingAlike<'_>> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut alike: Vec<PendingAlike<'_>> = Vec::new();
    for group in pending {
        let reasons = group.reasons.iter().map(|it| format!("{}\n{:?}\n{}", it.node_pool, it.code, shape(&it.text)));
        let change = group.smallest_change.as_deref().map(shape).unwrap_or_default();
        let key = format!("{}\n\n{change}", reasons.collect::<Vec<_>>().join("\n"));
        let place = *places.entry(key).or_insert(alike.len());
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

    #[test]
    fn sentences_about_different_labels_are_two() {
        let of = |key: &str, value: &str| shape(&format!("the pod wants {key} {value}, the pool has no such label"));
        assert_ne!(of("kubernetes.io/arch", "arm64"), of("topology.k8s.aws/zone-id", "use1-az9"));
        assert_eq!(of("topology.k8s.aws/zone-id", "use1-az8"), of("topology.k8s.aws/zone-id", "use1-az9"));
        let taint = |value: &str| shape(&format!("taint example.com/rack={value}:NoSchedule is not tolerated"));
        assert_eq!(taint("17"), taint("18"));
        let saved = |price: &str| shape(&format!("up to {price}/h could be saved (now {price}/h)"));
        assert_eq!(saved("$0.0910"), saved("$0.1736"), "figures are figures");
    }

    #[test]
    fn sentences_that_differ_in_figures_and_names_are_one() {
        let held = |node: &str, text: &str| HeldBack {
            node: node.to_owned(),
            code: ReasonCode::NotCheaper,
            text: text.to_owned(),
            budget: None,
            definition: None,
        };
        let nodes = [
            held("a", "3 of its 5 pods fit neither on other nodes nor on one cheaper node"),
            held("b", "nothing would be saved"),
            held("c", "1 of its 5 pods fit neither on other nodes nor on one cheaper node"),
        ];
        let alike = held_back_alike(&nodes).remove(&ReasonCode::NotCheaper).unwrap();
        let rows: Vec<(usize, usize, &str)> = alike.iter().map(|row| (row.nodes.len(), row.texts, row.text)).collect();
        assert_eq!(rows, [(2, 2, nodes[0].text.as_str()), (1, 1, "nothing would be saved")]);
    }
}
