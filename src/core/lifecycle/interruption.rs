//! What EC2 announces about instances: events of EventBridge, as a queue delivers them, and what is noted of them on a NodeClaim.
//! Source: reference, section 6.9.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Deserialize;

use crate::inputs::Inputs;
use crate::snapshot::Objects;
use crate::snapshot::nodes::Machine;
use cutlist_api::ec2_node_class::{CapacityReservation, EC2NodeClass};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

use super::conditions;

/// Condition of a NodeClaim whose instance EC2 takes away: its reason and message are those of the [`Interruption`].
pub const INTERRUPTED: &str = "Interrupted";

/// From the warning until a spot instance is taken back.
/// Source: EC2 user guide, "Spot Instance interruption notices".
const SPOT_NOTICE: SignedDuration = SignedDuration::from_secs(120);

/// Instances of a capacity block are drained so long before its end; EC2 ends them ten minutes later.
/// Source: reference, section 6.7.
const BLOCK_NOTICE: SignedDuration = SignedDuration::from_mins(40);

/// Whether EC2 takes the instance of a machine away.
pub fn is_interrupted(machine: &Machine<'_>, inputs: &Inputs<'_>) -> bool {
    machine.claim.is_some_and(|claim| announced(claim, inputs).is_some())
}

/// What EC2 announced of the claim's instance: its reason, and the same in words. That a capacity block ends nobody has to note first.
pub fn announced(claim: &NodeClaim, inputs: &Inputs<'_>) -> Option<(String, String)> {
    let noted = of_claim(claim).map(|condition| (condition.reason.clone(), condition.message.clone()));
    noted.or_else(|| {
        let ending = Interruption::by_end_of_block(claim, &inputs.snapshot.node_classes, inputs.now)?;
        Some((ending.kind.reason().to_owned(), ending.message()))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptionKind {
    Spot,
    Rebalance,
    Stopping,
    Terminating,
    ScheduledChange,
    StatusCheckFailed,
    CapacityReservation,
    /// Of no event: the class says when it ends.
    CapacityBlock,
}

impl InterruptionKind {
    /// The reference's reason for an event.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Spot => "SpotInterrupted",
            Self::Rebalance => "SpotRebalanceRecommendation",
            Self::Stopping => "InstanceStopping",
            Self::Terminating => "InstanceTerminating",
            Self::ScheduledChange | Self::StatusCheckFailed => "InstanceUnhealthy",
            Self::CapacityReservation => "CapacityReservationInstanceInterrupted",
            Self::CapacityBlock => "CapacityBlockExpiring",
        }
    }
}

/// One event, for one or more instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    pub kind: InterruptionKind,
    pub instance_ids: Vec<String>,
    /// When EC2 said so.
    pub time: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct EventBridgeEvent {
    source: String,
    detail_type: String,
    /// One that nobody can read takes nothing from what is announced.
    #[serde(default)]
    time: serde_json::Value,
    #[serde(default)]
    detail: serde_json::Value,
}

impl Interruption {
    /// `None` for what nobody can read, and for events that are about something else.
    pub fn parse(body: &str) -> Option<Self> {
        let EventBridgeEvent { source, detail_type, time, detail } = serde_json::from_str(body).ok()?;
        let text = |key: &str| detail.get(key).and_then(serde_json::Value::as_str);
        let kind = match (source.as_str(), detail_type.as_str()) {
            ("aws.ec2", "EC2 Spot Instance Interruption Warning") => InterruptionKind::Spot,
            ("aws.ec2", "EC2 Instance Rebalance Recommendation") => InterruptionKind::Rebalance,
            ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning") => {
                InterruptionKind::CapacityReservation
            }
            ("aws.ec2", "EC2 Instance State-change Notification") => match text("state")? {
                "stopping" | "stopped" => InterruptionKind::Stopping,
                "shutting-down" | "terminated" => InterruptionKind::Terminating,
                _ => return None,
            },
            ("aws.health", "AWS Health Event")
                if text("service") == Some("EC2") && text("eventTypeCategory") == Some("scheduledChange") =>
            {
                InterruptionKind::ScheduledChange
            }
            (keys::STATUS_CHECKS, keys::STATUS_CHECK_FAILED) => InterruptionKind::StatusCheckFailed,
            _ => return None,
        };
        let affected = detail.get("affectedEntities").and_then(serde_json::Value::as_array).into_iter().flatten();
        let affected = affected.filter_map(|entity| entity.get("entityValue")?.as_str());
        let instance_ids = text("instance-id").into_iter().chain(affected).map(str::to_owned).collect();
        let time = time.as_str().and_then(|time| time.parse().ok());
        Some(Self { kind, instance_ids, time })
    }

    /// The capacity block that the claim's instance runs in, where it is about to end.
    pub fn by_end_of_block(claim: &NodeClaim, classes: &Objects<EC2NodeClass>, now: Timestamp) -> Option<Self> {
        let label = |key: &str| claim.metadata.labels.as_ref()?.get(key).map(String::as_str);
        let id = label(keys::CAPACITY_RESERVATION_ID)?;
        let listed = classes.iter().filter_map(|class| class.status.as_ref()).flat_map(|it| &it.capacity_reservations);
        let block = listed.filter(|it| it.id == id).find(|it| is_block(it, label(keys::CAPACITY_RESERVATION_TYPE)))?;
        let time = block.end_time.as_ref().map(|end| end.0);
        let is_ending =
            block.state.as_deref() == Some("expiring") || drained_from(block).is_some_and(|from| from <= now);
        let ending = Self { kind: InterruptionKind::CapacityBlock, instance_ids: Vec::new(), time };
        is_ending.then_some(ending)
    }

    /// Whether it is about the instance of this provider ID, `aws:///ZONE/INSTANCE`.
    pub fn concerns(&self, provider_id: &str) -> bool {
        let instance = provider_id.rsplit('/').next();
        self.instance_ids.iter().any(|id| Some(id.as_str()) == instance)
    }

    /// Whether the instance goes; a recommendation to rebalance is only that.
    pub fn ends_instances(&self) -> bool {
        self.kind != InterruptionKind::Rebalance
    }

    pub fn message(&self) -> String {
        let takes_back = || self.time.and_then(|time| time.checked_add(SPOT_NOTICE).ok());
        match self.kind {
            InterruptionKind::Spot => takes_back().map_or_else(
                || "EC2 takes the spot instance back within two minutes".to_owned(),
                |end| format!("EC2 takes the spot instance back at {end}"),
            ),
            InterruptionKind::Rebalance => "EC2 is more likely than usual to take the spot instance back".to_owned(),
            InterruptionKind::Stopping => "the instance is stopping".to_owned(),
            InterruptionKind::Terminating => "the instance is terminating".to_owned(),
            InterruptionKind::ScheduledChange => "EC2 has scheduled maintenance of the instance".to_owned(),
            InterruptionKind::StatusCheckFailed => self.time.map_or_else(
                || "a status check of the instance fails".to_owned(),
                |since| format!("a status check of the instance fails since {since}"),
            ),
            InterruptionKind::CapacityReservation => {
                "EC2 takes back the capacity reservation that the instance runs in".to_owned()
            }
            InterruptionKind::CapacityBlock => self.time.map_or_else(
                || "the capacity block that the instance runs in is about to end".to_owned(),
                |end| format!("the capacity block that the instance runs in ends at {end}"),
            ),
        }
    }

    /// The claim with a note of it; `None` where there is one already.
    pub fn noted(&self, claim: &NodeClaim, now: Timestamp) -> Option<NodeClaim> {
        if claim.is_true(INTERRUPTED) {
            return None;
        }
        let mut noted = claim.clone();
        conditions::set(&mut noted, INTERRUPTED, "True", self.kind.reason(), &self.message(), now);
        Some(noted)
    }
}

/// When the instances of capacity blocks are to be drained.
pub fn ends_of_blocks(classes: &Objects<EC2NodeClass>) -> impl Iterator<Item = Timestamp> {
    let listed = classes.iter().filter_map(|class| class.status.as_ref()).flat_map(|it| &it.capacity_reservations);
    listed.filter(|it| is_block(it, None)).filter_map(drained_from)
}

/// Whether nothing is launched into a capacity reservation any more: it has ended, or what was launched would be drained at once.
pub fn is_over(reservation: &CapacityReservation, now: Timestamp) -> bool {
    let end = reservation.end_time.as_ref().map(|end| end.0);
    let last = if is_block(reservation, None) { drained_from(reservation) } else { end };
    reservation.state.as_deref() == Some("expiring") || last.is_some_and(|last| last <= now)
}

fn drained_from(block: &CapacityReservation) -> Option<Timestamp> {
    let end = block.end_time.as_ref()?.0;
    Some(end.saturating_sub(BLOCK_NOTICE).unwrap_or(Timestamp::MIN))
}

/// Whether a reservation is a capacity block, by what the class or, where it does not say, the node says of it.
fn is_block(reservation: &CapacityReservation, type_of_node: Option<&str>) -> bool {
    reservation.reservation_type.as_deref().or(type_of_node) == Some("capacity-block")
}

fn of_claim(claim: &NodeClaim) -> Option<&Condition> {
    claim.condition(INTERRUPTED).filter(|condition| condition.status == "True")
}

/// Since when it is known that EC2 has too little of what the claim's instance is.
pub fn short_of_capacity_since(claim: &NodeClaim) -> Option<Timestamp> {
    let condition = of_claim(claim)?;
    let kinds = [InterruptionKind::Spot, InterruptionKind::CapacityReservation];
    let is_short = kinds.iter().any(|kind| kind.reason() == condition.reason);
    is_short.then_some(condition.last_transition_time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::object;

    fn event(source: &str, detail_type: &str, detail: &str) -> Option<Interruption> {
        Interruption::parse(&format!(
            r#"{{"version":"0","source":"{source}","detail-type":"{detail_type}","time":"2026-11-20T09:00:00Z","detail":{detail}}}"#
        ))
    }

    #[test]
    fn events_that_end_instances_are_told_from_the_others() {
        let of_instance = r#"{"instance-id":"i-1","instance-action":"terminate"}"#;
        let spot = event("aws.ec2", "EC2 Spot Instance Interruption Warning", of_instance).unwrap();
        assert!(
            spot.ends_instances() && spot.concerns("aws:///us-east-1a/i-1") && !spot.concerns("aws:///us-east-1a/i-12")
        );
        assert_eq!(spot.message(), "EC2 takes the spot instance back at 2026-11-20T09:02:00Z");
        let rebalance = event("aws.ec2", "EC2 Instance Rebalance Recommendation", of_instance).unwrap();
        assert!(!rebalance.ends_instances());
        let state = |state: &str| {
            let detail = format!(r#"{{"instance-id":"i-1","state":"{state}"}}"#);
            event("aws.ec2", "EC2 Instance State-change Notification", &detail).map(|it| it.kind)
        };
        assert_eq!(state("stopping"), Some(InterruptionKind::Stopping));
        assert_eq!(state("shutting-down"), Some(InterruptionKind::Terminating));
        assert_eq!(state("running"), None);
        let failed = event(keys::STATUS_CHECKS, keys::STATUS_CHECK_FAILED, of_instance).unwrap();
        assert!(failed.ends_instances() && failed.concerns("aws:///us-east-1a/i-1"));
        assert_eq!(failed.message(), "a status check of the instance fails since 2026-11-20T09:00:00Z");
    }

    #[test]
    fn scheduled_changes_of_ec2_name_several_instances() {
        let detail = |service: &str, category: &str| {
            format!(
                r#"{{"service":"{service}","eventTypeCategory":"{category}","affectedEntities":[{{"entityValue":"i-1"}},{{"entityValue":"i-2"}}]}}"#
            )
        };
        let health =
            |service: &str, category: &str| event("aws.health", "AWS Health Event", &detail(service, category));
        assert_eq!(health("EC2", "scheduledChange").unwrap().instance_ids, ["i-1", "i-2"]);
        assert_eq!(health("RDS", "scheduledChange"), None);
        assert_eq!(health("EC2", "issue"), None);
    }

    #[test]
    fn a_capacity_block_is_drained_before_it_ends() {
        let claim: NodeClaim = object(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "a", "labels": { keys::CAPACITY_RESERVATION_ID: "cr-1" } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
            },
        }));
        let ends = |id: &str, reservation_type: &str, state: &str, end: Option<&str>| {
            let class: EC2NodeClass = object(json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
                "spec": { "amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": [] },
                "status": { "capacityReservations": [{
                    "id": id, "instanceType": "p5.48xlarge", "availabilityZone": "us-east-1a",
                    "reservationType": reservation_type, "state": state, "endTime": end,
                }] },
            }));
            let now = "2026-11-20T09:00:00Z".parse().unwrap();
            Interruption::by_end_of_block(&claim, &vec![class].into(), now).map(|it| it.message())
        };
        let soon = Some("2026-11-20T09:40:00Z");
        let text = "the capacity block that the instance runs in ends at 2026-11-20T09:40:00Z";
        assert_eq!(ends("cr-1", "capacity-block", "active", soon).as_deref(), Some(text));
        assert!(ends("cr-1", "capacity-block", "expiring", None).is_some());
        assert_eq!(ends("cr-1", "capacity-block", "active", Some("2026-11-20T09:40:01Z")), None);
        assert_eq!(ends("cr-1", "capacity-block", "active", None), None);
        assert_eq!(ends("cr-2", "capacity-block", "expiring", soon), None);
        assert_eq!(ends("cr-1", "default", "active", soon), None, "its nodes go on as bought on demand");
    }

    #[test]
    fn nothing_is_launched_into_a_reservation_that_would_be_drained_at_once() {
        let ends = |reservation_type: &str, state: &str, end: Option<&str>| {
            let reservation = serde_json::from_value(json!({
                "id": "cr-1", "instanceType": "p5.48xlarge", "availabilityZone": "a", "instanceMatchCriteria": "targeted",
                "ownerID": "111122223333", "reservationType": reservation_type, "state": state, "endTime": end,
            }));
            is_over(&reservation.unwrap(), "2026-11-20T09:00:00Z".parse().unwrap())
        };
        assert!(ends("capacity-block", "active", Some("2026-11-20T09:40:00Z")));
        assert!(!ends("capacity-block", "active", Some("2026-11-20T09:40:01Z")));
        assert!(!ends("default", "active", Some("2026-11-20T09:40:00Z")));
        assert!(ends("default", "active", Some("2026-11-20T09:00:00Z")));
        assert!(ends("default", "expiring", None));
        assert!(!ends("default", "active", None));
    }

    #[test]
    fn a_time_that_can_not_be_read_loses_no_warning() {
        for time in [r#""""#, r#""soon""#, "1763629200", "null", "[]"] {
            let spot = Interruption::parse(&format!(
                r#"{{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","time":{time},"detail":{{"instance-id":"i-1"}}}}"#
            ));
            let spot = spot.unwrap();
            assert!(spot.concerns("aws:///us-east-1a/i-1") && spot.time.is_none(), "{time}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_nothing() {
        for body in [
            "",
            "{}",
            "[]",
            "not json",
            r#"{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}"#,
        ] {
            assert!(Interruption::parse(body).is_none_or(|it| it.instance_ids.is_empty()), "{body}");
        }
    }
}
