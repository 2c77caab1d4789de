//! Names of claims on their instances: written when there is a token to spare, since nothing but people and a restored backup reads them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::adapters::aws::api::{Action, Ec2Api, Tags};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::instances::instance_id;
use crate::api::keys;
use crate::ports::{Clock, Instance};

use super::pace::Pace;

/// Instances that wait for their name; the others go without.
const WAITING_MAX: usize = 20_000;
/// Written at one look.
const AT_ONCE: usize = 20;

/// Names that are to be written, by instance.
#[derive(Debug, Default)]
pub struct Names {
    waiting: Mutex<BTreeMap<String, String>>,
}

impl Names {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An instance was given to a claim.
    pub fn add(&self, instance: &Instance, claim: &str) {
        if instance.node_claim == claim {
            return;
        }
        let Some(id) = instance_id(&instance.provider_id) else { return };
        self.with(|waiting| {
            if waiting.len() < WAITING_MAX {
                waiting.insert(id.to_owned(), claim.to_owned());
            }
        });
    }

    /// Writes some, without waiting for a token.
    pub async fn write<C: Clock>(&self, api: &impl Ec2Api, pace: &Pace<C>) {
        for _ in 0..AT_ONCE {
            let Some((id, claim)) =
                self.with(|waiting| waiting.first_key_value().map(|(id, name)| (id.clone(), name.clone())))
            else {
                return;
            };
            if !pace.may_now(Action::CreateTags) {
                return;
            }
            let tags = Tags::from([(keys::NODE_CLAIM_TAG.to_owned(), claim)]);
            match api.create_tags(std::slice::from_ref(&id), &tags).await {
                Err(error) if error.class.is_passing() => return,
                Err(error) if error.class != FailureClass::NotFound => {
                    tracing::warn!(instance = id, error = error.text(), "an instance has no name");
                }
                Ok(()) | Err(_) => {}
            }
            self.with(|waiting| waiting.remove(&id));
        }
    }
}
