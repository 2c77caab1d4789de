//! What was planned against what happened: pods on the node the plan named, nodes and price as planned.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::api::keys;
use crate::api::node_plan::Fidelity;
use crate::controller::observed::view::{NodePrices, View, label};
use crate::core::lifecycle::conditions;
use crate::core::model::HourlyPrice;
use crate::core::plan::{Plan, ReasonCode, Step, StepKind, buffer_of};

/// Pods that found no place after so long count as not where they should be.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// A plan whose nodes are on their way.
#[derive(Debug)]
struct Expected {
    plan_id: String,
    since: Timestamp,
    /// Pod to the claim that it was planned for.
    pods: BTreeMap<String, String>,
    nodes: BTreeMap<String, Node>,
}

/// One planned node.
#[derive(Debug)]
struct Node {
    instance_type: String,
    zone: String,
    capacity_type: String,
    price: HourlyPrice,
}

/// Plans that were begun and not judged yet.
#[derive(Debug, Default)]
pub struct Expectations(Vec<Expected>);

impl Expectations {
    /// Notes the creations of the moves that were begun, with those of the plan that were begun before.
    pub fn expect(&mut self, plan: &Plan, moves: &[u32], now: Timestamp) {
        let created = |step: &&Step| step.kind == StepKind::Create && moves.contains(&step.move_number);
        let begun = self.0.iter().position(|expected| expected.plan_id == plan.id);
        let mut expected = begun.map_or_else(|| Expected::new(&plan.id, now), |begun| self.0.remove(begun));
        for step in plan.steps.iter().filter(created) {
            // Pods that move come back under other names; only those that wait can be followed.
            let waits = step.reason.code == ReasonCode::PodsPending;
            let pods = step.pods.iter().filter(|pod| waits && buffer_of(pod).is_none());
            expected.pods.extend(pods.map(|pod| (pod.clone(), step.node_claim.clone())));
            expected.nodes.insert(
                step.node_claim.clone(),
                Node {
                    instance_type: step.instance_type.clone(),
                    zone: step.zone.clone(),
                    capacity_type: step.capacity_type.clone(),
                    price: step.price_per_hour,
                },
            );
        }
        if !expected.nodes.is_empty() {
            self.0.push(expected);
        }
    }

    /// The plans whose nodes are up and whose pods have found a place, and when to look again at the others.
    pub fn judge(
        &mut self,
        view: &View<'_>,
        prices: NodePrices<'_>,
        now: Timestamp,
    ) -> (Vec<(String, Fidelity)>, Option<Timestamp>) {
        let mut judged = Vec::new();
        self.0.retain(|expected| {
            let due = now.duration_since(expected.since) >= PATIENCE;
            let outcome = due || expected.is_over(view);
            if outcome {
                judged.push((expected.plan_id.clone(), expected.fidelity(view, prices)));
            }
            !outcome
        });
        let next = self.0.iter().filter_map(|expected| expected.since.checked_add(PATIENCE).ok()).min();
        (judged, next)
    }
}

impl Expected {
    fn new(plan_id: &str, since: Timestamp) -> Self {
        Self { plan_id: plan_id.to_owned(), since, pods: BTreeMap::new(), nodes: BTreeMap::new() }
    }

    fn is_over(&self, view: &View<'_>) -> bool {
        let up = |name: &String| view.claim(name).is_none_or(|claim| claim.is_true(conditions::INITIALIZED));
        let waiting = view.snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_none());
        self.nodes.keys().all(up) && !waiting.into_iter().any(|pod| self.pods.contains_key(&pod.key()))
    }

    fn fidelity(&self, view: &View<'_>, prices: NodePrices<'_>) -> Fidelity {
        let node_names: BTreeMap<&str, &str> = self
            .nodes
            .keys()
            .filter_map(|name| Some((name.as_str(), view.claim(name)?.status.as_ref()?.node_name.as_deref()?)))
            .collect();
        // Pods that are gone were somebody else's decision.
        let there: Vec<(&String, Option<&str>)> = view
            .snapshot
            .pods
            .iter()
            .filter_map(|pod| Some((self.pods.get(&pod.key())?, pod.spec.node_name.as_deref())))
            .collect();
        let as_planned =
            there.iter().filter(|(claim, node)| node.is_some() && node_names.get(claim.as_str()) == node.as_ref());
        let mut planned = HourlyPrice::ZERO;
        let mut launched = HourlyPrice::ZERO;
        let mut nodes_as_planned = 0;
        for (name, node) in &self.nodes {
            planned += node.price;
            let Some(claim) = view.claim(name) else { continue };
            launched += prices.of(claim);
            let is_same = label(claim, keys::INSTANCE_TYPE) == node.instance_type
                && label(claim, keys::ZONE) == node.zone
                && label(claim, keys::CAPACITY_TYPE) == node.capacity_type;
            nodes_as_planned += usize::from(is_same);
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Fidelity {
            pods_planned: count(there.len()),
            pods_as_planned: count(as_planned.count()),
            nodes_planned: count(self.nodes.len()),
            nodes_as_planned: count(nodes_as_planned),
            price_planned: planned.to_string(),
            price_launched: launched.to_string(),
        }
    }
}
