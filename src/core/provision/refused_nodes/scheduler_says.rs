//! What kube-scheduler itself says of a pod that it found no node for, in `PodScheduled`.
//! Source: `k8s.io/kubernetes/pkg/scheduler/framework`: `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) ... . preemption: ...`

use crate::snapshot::Pod;

/// Beginnings of what its plugins say, and their names.
const MESSAGES: &[(&str, &str)] = &[
    ("Insufficient ", "NodeResourcesFit"),
    ("Too many pods", "NodeResourcesFit"),
    ("node(s) had untolerated taint", "TaintToleration"),
    ("node(s) were unschedulable", "NodeUnschedulable"),
    ("node(s) didn't match the requested node name", "NodeName"),
    ("node(s) didn't match Pod's node affinity", "NodeAffinity"),
    ("node(s) didn't have free ports", "NodePorts"),
    ("node(s) didn't match pod topology spread constraints", "PodTopologySpread"),
    ("node(s) didn't match pod affinity", "InterPodAffinity"),
    ("node(s) didn't match pod anti-affinity", "InterPodAffinity"),
    ("node(s) didn't satisfy existing pods anti-affinity", "InterPodAffinity"),
    ("node(s) exceed max volume count", "NodeVolumeLimits"),
    ("node(s) had no available volume zone", "VolumeZone"),
    ("node(s) had volume node affinity conflict", "VolumeBinding"),
    ("node(s) didn't match PersistentVolume's node affinity", "VolumeBinding"),
    ("node(s) didn't find available persistent volumes", "VolumeBinding"),
    ("node(s) did not have enough free storage", "VolumeBinding"),
    ("node(s) unavailable due to", "VolumeBinding"),
    ("node has pod using PersistentVolumeClaim", "VolumeRestrictions"),
    ("cannot allocate all claims", "DynamicResources"),
    ("resourceclaim", "DynamicResources"),
];
/// Of a plugin that says nothing of its own, such as one that somebody wrote: kube-scheduler gives its name.
const PLUGIN: &str = "node(s) didn't satisfy plugin(s) [";

/// Names of filters, and in words what is known. The numbers of nodes, which change all the time, are left out.
pub fn why(pod: &Pod) -> (Vec<String>, String) {
    const NOTHING: &str = "no filter that is known here keeps them away";
    let message = pod.scheduling_refused().and_then(|condition| condition.message.as_deref()).unwrap_or_default();
    let reasons = message.split_once(": ").map_or(message, |(_, reasons)| reasons);
    let reasons = reasons.split("preemption:").next().unwrap_or_default().trim().trim_end_matches('.');
    let mut said: Vec<&str> = reasons.split(", ").map(without_count).filter(|text| !text.is_empty()).collect();
    said.sort_unstable();
    said.dedup();
    if said.is_empty() {
        return (Vec::new(), NOTHING.to_owned());
    }
    let mut filters: Vec<String> = said.iter().filter_map(|text| filter_of(text)).collect();
    filters.sort();
    filters.dedup();
    let filters_text = if filters.is_empty() { String::new() } else { format!("{}: ", filters.join(", ")) };
    let text = format!("{NOTHING}; kube-scheduler says of all nodes: {filters_text}{}", said.join(", "));
    (filters, text)
}

/// `2 node(s) ...` without the number.
fn without_count(text: &str) -> &str {
    let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
    if number.chars().all(|character| character.is_ascii_digit()) { rest } else { text }
}

fn filter_of(text: &str) -> Option<String> {
    if let Some(names) = text.strip_prefix(PLUGIN) {
        return names.split(']').next().map(str::to_owned);
    }
    MESSAGES.iter().find(|(beginning, _)| text.starts_with(beginning)).map(|(_, filter)| (*filter).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Merge, pod};

    fn said(message: &str) -> (Vec<String>, String) {
        why(&pod("web").merge(json!({ "status": { "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        }] } })))
    }

    #[test]
    fn filters_are_told_from_what_kube_scheduler_says() {
        let message = "0/14 nodes are available: 1 Insufficient memory, 2 Insufficient cpu, 3 node(s) had untolerated taint {a: b}, \
                       8 node(s) didn't match Pod's node affinity/selector. preemption: 0/14 nodes are available: 14 Preemption is \
                       not helpful for scheduling.";
        let (filters, text) = said(message);
        assert_eq!(filters, ["NodeAffinity", "NodeResourcesFit", "TaintToleration"]);
        assert_eq!(
            text,
            "no filter that is known here keeps them away; kube-scheduler says of all nodes: NodeAffinity, NodeResourcesFit, \
             TaintToleration: Insufficient cpu, Insufficient memory, node(s) didn't match Pod's node affinity/selector, node(s) had \
             untolerated taint {a: b}"
        );
        assert_eq!(said("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [Licences].").0, ["Licences"]);
    }

    #[test]
    fn whatever_it_says_is_quoted() {
        assert_eq!(said("0/1 nodes are available: 1 no luck today.").0, Vec::<String>::new());
        assert!(said("0/1 nodes are available: 1 no luck today.").1.ends_with("no luck today"));
        for odd in ["", ": ", "0/1", "preemption:", ".", "1", "é: 7 é"] {
            said(odd);
        }
        assert_eq!(why(&pod("web")).1, "no filter that is known here keeps them away");
    }
}
