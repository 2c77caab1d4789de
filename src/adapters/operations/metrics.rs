//! Metrics. Under the reference's names where they mean the same, under `cutlist_` where they do not exist there.
//! Source: reference, section 7.2.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::ports::operations::Meter;

/// Seconds; from a small plan to one that takes its whole budget of work.
const PLANNING_BUCKETS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Created {
    nodepool: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Disrupted {
    reason: String,
    capacity_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decision {
    decision: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResource {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    verb: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CloudCall {
    action: String,
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Notified {
    receiver: String,
    outcome: String,
}

/// Everything that is measured. Cheap to clone; all clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    claims_created: Family<Created, Counter>,
    claims_terminated: Counter,
    claims_disrupted: Family<Disrupted, Counter>,
    nodes_created: Counter,
    nodes_terminated: Counter,
    decisions: Family<Decision, Counter>,
    scheduling_seconds: Histogram,
    unschedulable_pods: Gauge,
    nodes: Gauge,
    pods_bound: Gauge,
    pods_pending: Gauge,
    price_per_hour: Gauge<f64, AtomicU64>,
    plans: Family<OutcomeLabels, Counter>,
    revisions: Family<OutcomeLabels, Counter>,
    pods_fulfilled: Family<OutcomeLabels, Counter>,
    failed_calls: Counter,
    kinds_in_doubt: Family<OfResource, Gauge>,
    unreadable_objects: Gauge,
    leads: Gauge,
    notifications: Family<Notified, Counter>,
    calls: Family<Call, Gauge>,
    cloud_calls: Family<CloudCall, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            claims_created: Family::default(),
            claims_terminated: Counter::default(),
            claims_disrupted: Family::default(),
            nodes_created: Counter::default(),
            nodes_terminated: Counter::default(),
            decisions: Family::default(),
            scheduling_seconds: Histogram::new(PLANNING_BUCKETS),
            unschedulable_pods: Gauge::default(),
            nodes: Gauge::default(),
            pods_bound: Gauge::default(),
            pods_pending: Gauge::default(),
            price_per_hour: Gauge::default(),
            plans: Family::default(),
            revisions: Family::default(),
            pods_fulfilled: Family::default(),
            failed_calls: Counter::default(),
            kinds_in_doubt: Family::default(),
            unreadable_objects: Gauge::default(),
            leads: Gauge::default(),
            notifications: Family::default(),
            calls: Family::default(),
            cloud_calls: Family::default(),
        }
    }
}

impl Meter for Metrics {
    fn claim_created(&self, node_pool: &str, reason: &str) {
        let labels = Created { nodepool: node_pool.to_owned(), reason: reason.to_owned() };
        self.claims_created.get_or_create(&labels).inc();
    }

    fn claim_terminated(&self) {
        self.claims_terminated.inc();
    }

    fn claim_disrupted(&self, reason: &str, capacity_type: &str) {
        let labels = Disrupted { reason: reason.to_owned(), capacity_type: capacity_type.to_owned() };
        self.claims_disrupted.get_or_create(&labels).inc();
    }

    fn node_registered(&self) {
        self.nodes_created.inc();
    }

    fn node_deleted(&self) {
        self.nodes_terminated.inc();
    }

    fn decided(&self, decision: &str, reason: &str) {
        let labels = Decision { decision: decision.to_owned(), reason: reason.to_owned() };
        self.decisions.get_or_create(&labels).inc();
    }

    fn fleet(&self, nodes: usize, pods_bound: usize, pods_pending: usize, dollars_per_hour: f64) {
        self.nodes.set(number(nodes));
        self.pods_bound.set(number(pods_bound));
        self.pods_pending.set(number(pods_pending));
        self.price_per_hour.set(dollars_per_hour);
    }

    fn plan(&self, outcome: &str) {
        self.plans.get_or_create(&OutcomeLabels { outcome: outcome.to_owned() }).inc();
    }

    fn revision(&self, outcome: &str) {
        self.revisions.get_or_create(&OutcomeLabels { outcome: outcome.to_owned() }).inc();
    }

    fn fulfilled(&self, as_planned: u64, elsewhere: u64) {
        self.pods_fulfilled.get_or_create(&OutcomeLabels { outcome: "as_planned".to_owned() }).inc_by(as_planned);
        self.pods_fulfilled.get_or_create(&OutcomeLabels { outcome: "elsewhere".to_owned() }).inc_by(elsewhere);
    }

    fn call_failed(&self) {
        self.failed_calls.inc();
    }

    fn doubts<'a>(&self, resources: impl Iterator<Item = &'a str>, unreadable_objects: usize) {
        self.kinds_in_doubt.clear();
        for resource in resources {
            self.kinds_in_doubt.get_or_create(&OfResource { resource: resource.to_owned() }).set(1);
        }
        self.unreadable_objects.set(number(unreadable_objects));
    }
}

impl Metrics {
    pub fn planned(&self, seconds: f64, pods_pending: usize) {
        self.scheduling_seconds.observe(seconds);
        self.unschedulable_pods.set(number(pods_pending));
    }

    pub fn leads(&self, leads: bool) {
        self.leads.set(i64::from(leads));
    }

    /// `outcome`: sent, failed (and tried again), given_up, dropped.
    pub fn notified(&self, receiver: &str, outcome: &str) {
        let labels = Notified { receiver: receiver.to_owned(), outcome: outcome.to_owned() };
        self.notifications.get_or_create(&labels).inc();
    }

    /// How often the API server was called so far.
    pub fn calls(&self, verb: &str, resource: &str, count: u64) {
        let labels = Call { verb: verb.to_owned(), resource: resource.to_owned() };
        self.calls.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// How often AWS was called so far. `action` as IAM writes it; `outcome`: ok, throttled, denied, unanswered, failed.
    pub fn cloud_calls(&self, action: &str, outcome: &str, count: u64) {
        let labels = CloudCall { action: action.to_owned(), outcome: outcome.to_owned() };
        let counter = self.cloud_calls.get_or_create(&labels);
        counter.inc_by(count.saturating_sub(counter.get()));
    }

    /// The text that Prometheus reads (OpenMetrics).
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only when a metric's own formatting does, and none of these has any.
        let _ = encode(&mut text, &self.registry());
        text
    }

    /// Names end in `_total` by themselves where they count.
    fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register("karpenter_nodeclaims_created", "NodeClaims created", self.claims_created.clone());
        registry.register("karpenter_nodeclaims_terminated", "NodeClaims gone", self.claims_terminated.clone());
        registry.register("karpenter_nodeclaims_disrupted", "NodeClaims disrupted", self.claims_disrupted.clone());
        registry.register("karpenter_nodes_created", "Nodes registered", self.nodes_created.clone());
        registry.register("karpenter_nodes_terminated", "Nodes deleted", self.nodes_terminated.clone());
        let decisions = "Disruptions decided on";
        registry.register("karpenter_voluntary_disruption_decisions", decisions, self.decisions.clone());
        let seconds = "Seconds that a plan took";
        registry.register("karpenter_scheduler_scheduling_duration_seconds", seconds, self.scheduling_seconds.clone());
        let unschedulable = "Pods that the last plan found no place for";
        registry.register(
            "karpenter_scheduler_unschedulable_pods_count",
            unschedulable,
            self.unschedulable_pods.clone(),
        );
        registry.register("karpenter_cluster_state_node_count", "Nodes in the cluster", self.nodes.clone());
        registry.register("cutlist_pods_bound", "Pods on a node, without daemons", self.pods_bound.clone());
        registry.register("cutlist_pods_pending", "Pods without a node, without daemons", self.pods_pending.clone());
        let price = "Price of all nodes in US dollars per hour";
        registry.register("cutlist_fleet_price_dollars_per_hour", price, self.price_per_hour.clone());
        let revisions =
            "Revisions by what became of them: found, and then refused, unsigned or held where they were not used";
        registry.register("cutlist_revisions", revisions, self.revisions.clone());
        registry.register("cutlist_plans", "Plans by what became of them", self.plans.clone());
        let fulfilled = "Pods of plans that were carried out, by where they landed";
        registry.register("cutlist_plan_pods", fulfilled, self.pods_fulfilled.clone());
        registry.register("cutlist_failed_calls", "Looks that ended with a failed call", self.failed_calls.clone());
        let in_doubt = "1 for each kind that is not seen as it is now";
        registry.register("cutlist_kinds_in_doubt", in_doubt, self.kinds_in_doubt.clone());
        let unreadable = "Objects of the cluster that can not be read";
        registry.register("cutlist_unreadable_objects", unreadable, self.unreadable_objects.clone());
        registry.register("cutlist_leads", "1 where this replica leads", self.leads.clone());
        let notifications = "Notifications by receiver and by what became of them: sent, failed, given_up, dropped";
        registry.register("cutlist_notifications", notifications, self.notifications.clone());
        registry.register("cutlist_api_calls", "Calls to the API server since the start", self.calls.clone());
        let cloud_calls = "Calls to AWS since the start, by action and by what came of them: ok, throttled, denied, unanswered, failed";
        registry.register("cutlist_aws_calls", cloud_calls, self.cloud_calls.clone());
        registry
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_reference_where_they_mean_the_same() {
        let metrics = Metrics::default();
        metrics.claim_created("default", "provisioned");
        metrics.fleet(3, 20, 1, 0.5);
        metrics.cloud_calls("ec2:CreateFleet", "throttled", 5);
        metrics.cloud_calls("ec2:CreateFleet", "throttled", 7);
        let text = metrics.text();
        assert!(
            text.contains("karpenter_nodeclaims_created_total{nodepool=\"default\",reason=\"provisioned\"} 1"),
            "{text}"
        );
        assert!(text.contains("cutlist_fleet_price_dollars_per_hour 0.5"), "{text}");
        assert!(text.contains("cutlist_aws_calls_total{action=\"ec2:CreateFleet\",outcome=\"throttled\"} 7"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
