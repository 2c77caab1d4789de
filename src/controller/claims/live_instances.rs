//! What the cloud said last of the instances that run. Who acts does not ask for this: the answer is that of the look for garbage, each two
//! minutes while it succeeds. Who only observes asks as often.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::node_claim::NodeClaim;
use crate::controller::observed::view::{View, name_of, provider_id};
use crate::core::inputs::LiveInstance;
use crate::ports::Instance;

/// An older answer says nothing any more: somebody may have changed the groups of an instance since.
const AGE_MAX: SignedDuration = SignedDuration::from_mins(10);

/// By provider ID, and when it was asked. Only the last answer counts: an instance that it lacks is not known.
#[derive(Debug, Default)]
pub struct LiveInstances {
    said: Option<(Timestamp, Arc<BTreeMap<String, LiveInstance>>)>,
    /// By provider ID, the NodeClaim that an instance was given to by its tags, where they say.
    given_to: BTreeMap<String, String>,
}

impl LiveInstances {
    pub fn hear(&mut self, instances: &[Instance], asked_at: Timestamp) {
        let named = instances.iter().filter(|instance| !instance.node_claim.is_empty());
        self.given_to = named.map(|it| (it.provider_id.clone(), it.node_claim.clone())).collect();
        let instances = instances.iter().map(|instance| (instance.provider_id.clone(), live(instance)));
        self.said = Some((asked_at, Arc::new(instances.collect())));
    }

    /// What is known at this moment.
    pub fn known(&self, now: Timestamp) -> Arc<BTreeMap<String, LiveInstance>> {
        let said = self.said.as_ref().filter(|(asked_at, _)| now.duration_since(*asked_at) <= AGE_MAX);
        said.map(|(_, instances)| instances.clone()).unwrap_or_default()
    }

    /// Another NodeClaim that is there, to which the cloud says that this one's instance was given: what a status says may be half of a
    /// backup. However long ago that was asked: an instance is given away once.
    pub fn owner<'s>(&'s self, claim: &NodeClaim, view: &View<'_>) -> Option<&'s str> {
        let owner = self.given_to.get(provider_id(claim)?)?.as_str();
        (owner != name_of(claim) && view.claim(owner).is_some()).then_some(owner)
    }
}

fn live(instance: &Instance) -> LiveInstance {
    LiveInstance {
        image_id: Some(instance.image_id.clone()).filter(|id| !id.is_empty()),
        subnet_id: instance.subnet_id.clone(),
        security_groups: instance.security_groups.clone(),
        reservation_id: instance.reservation_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::keys;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + minute * 60).unwrap()
    }

    fn instance(id: &str) -> Instance {
        Instance {
            provider_id: id.to_owned(),
            launch_id: String::new(),
            instance_type: "m5.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: keys::ON_DEMAND.to_owned(),
            image_id: String::new(),
            subnet_id: Some("subnet-a".to_owned()),
            security_groups: Vec::new(),
            reservation_id: None,
            launched_at: at(0),
            node_claim: String::new(),
            node_pool: String::new(),
            node_class: String::new(),
            installation: String::new(),
        }
    }

    #[test]
    fn only_the_last_answer_counts_and_not_for_long() {
        let mut live = LiveInstances::default();
        assert!(live.known(at(0)).is_empty());
        live.hear(&[instance("one"), instance("two")], at(0));
        let known = live.known(at(10));
        let one = known.get("one").unwrap();
        assert_eq!(
            (one.subnet_id.as_deref(), one.image_id.as_deref()),
            (Some("subnet-a"), None),
            "no name is no image"
        );
        assert!(live.known(at(11)).is_empty(), "too long ago");
        live.hear(&[instance("two")], at(12));
        assert_eq!(live.known(at(12)).keys().collect::<Vec<_>>(), ["two"]);
    }
}
