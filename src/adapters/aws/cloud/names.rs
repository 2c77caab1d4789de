//! Names of claims on their instances: written when there is a token to spare, since nothing but people and a restored backup reads them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::api::{Action, Ec2Api, Tags};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::instances::instance_id;
use crate::api::keys;
use crate::ports::{Clock, Instance, is_to_come};

use super::pace::Pace;

/// Instances that wait for their name; the others go without.
const WAITING_MAX: usize = 20_000;
/// Written at one look.
const AT_ONCE: usize = 20;

/// EC2 may not know an instance so long after its launch.
const KNOWN_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// And is asked again so much later.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// Names that are to be written, by instance.
#[derive(Debug, Default)]
pub struct Names {
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    claim: String,
    launched_at: Timestamp,
    not_before: Timestamp,
}

impl Waiting {
    /// Also by a clock that was set back since.
    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.not_before || is_to_come(self.launched_at, now)
    }

    fn may_be_unknown(&self, now: Timestamp) -> bool {
        now.duration_since(self.launched_at) < KNOWN_WITHIN && !is_to_come(self.launched_at, now)
    }
}

impl Names {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Waiting>) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An instance was given to a claim.
    pub fn add(&self, instance: &Instance, claim: &str) {
        if instance.node_claim == claim {
            return;
        }
        let Some(id) = instance_id(&instance.provider_id) else { return };
        let launched_at = instance.launched_at;
        self.with(|waiting| {
            if waiting.len() < WAITING_MAX {
                waiting
                    .insert(id.to_owned(), Waiting { claim: claim.to_owned(), launched_at, not_before: launched_at });
            }
        });
    }

    /// Writes some, without waiting for a token.
    pub async fn write<C: Clock>(&self, api: &impl Ec2Api, pace: &Pace<C>) {
        for (id, claim) in self.due(pace.now()) {
            if !pace.may_now(Action::CreateTags) {
                return;
            }
            let tags = Tags::from([(keys::NODE_CLAIM_TAG.to_owned(), claim)]);
            match api.create_tags(std::slice::from_ref(&id), &tags).await {
                Err(error) if error.class.is_passing() => return,
                Err(error) if error.class == FailureClass::NotFound && self.is_put_off(&id, pace.now()) => continue,
                Err(error) if error.class != FailureClass::NotFound => {
                    tracing::warn!(instance = id, error = error.text(), "an instance has no name");
                }
                Ok(()) | Err(_) => {}
            }
            self.with(|waiting| waiting.remove(&id));
        }
    }

    fn due(&self, now: Timestamp) -> Vec<(String, String)> {
        self.with(|waiting| {
            let due = waiting.iter().filter(|(_, one)| one.is_due(now));
            due.map(|(id, one)| (id.clone(), one.claim.clone())).take(AT_ONCE).collect()
        })
    }

    /// Whether an instance that EC2 does not know may be one that it does not know yet; then it is tried again later.
    fn is_put_off(&self, id: &str, now: Timestamp) -> bool {
        self.with(|waiting| {
            let Some(young) = waiting.get_mut(id).filter(|one| one.may_be_unknown(now)) else { return false };
            young.not_before = now.saturating_add(AGAIN_AFTER).unwrap_or(now);
            true
        })
    }
}
