//! Ending instances: those that are to end at about the same time in one call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use crate::adapters::aws::api::instances::{InstanceAnswer, InstanceState};
use crate::adapters::aws::api::{Action, ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::instances;
use crate::adapters::aws::resolution::cluster::Identity;
use crate::api::keys;
use crate::ports::{Clock, not_to_come};

use super::pace::Pace;

/// How long the first waits for others.
const WINDOW: Duration = Duration::from_millis(35);
/// EC2 takes so many in a call.
const TOGETHER_MAX: usize = 1_000;
/// Instances whose end is denied one by one before the rest is taken to be.
const DENIED_MAX: u32 = 10;
/// EC2 may not show an instance so long after its launch.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_mins(2);

type EndAnswer = Result<(), ApiError>;

/// Instances that wait to be ended.
#[derive(Debug, Default)]
pub struct Ends {
    waiting: Mutex<Vec<(String, mpsc::Sender<EndAnswer>)>>,
    /// Those that were launched here lately.
    young: Mutex<BTreeMap<String, Timestamp>>,
}

impl Ends {
    /// These were launched at this moment.
    pub fn launched<'i>(&self, ids: impl IntoIterator<Item = &'i str>, now: Timestamp) {
        let mut young = self.young.lock().unwrap_or_else(PoisonError::into_inner);
        young.values_mut().for_each(|at| *at = not_to_come(*at, now));
        young.retain(|_, at| now.duration_since(*at) < SHOWN_WITHIN);
        young.extend(ids.into_iter().map(|id| (id.to_owned(), now)));
    }

    /// Ends an instance of ours. `NotFound`: it has ended.
    pub async fn end<C: Clock>(&self, api: &impl Ec2Api, pace: &Pace<C>, identity: &Identity, id: &str) -> EndAnswer {
        let (answer, mut answered) = mpsc::channel(1);
        let is_first = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push((id.to_owned(), answer));
            waiting.len() == 1
        };
        if is_first {
            tokio::time::sleep(WINDOW).await;
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            let ids: BTreeSet<String> = waiting.iter().map(|(id, _)| id.clone()).collect();
            let mut answers = self.end_all(api, pace, identity, &ids).await;
            for (id, answer) in waiting {
                let of_id = answers.get_mut(&id).cloned().unwrap_or_else(|| Err(lost()));
                // Who does not wait any more asks again.
                let _asks_again = answer.try_send(of_id);
            }
        }
        answered.recv().await.unwrap_or_else(|| Err(lost()))
    }

    async fn end_all<C: Clock>(
        &self,
        api: &impl Ec2Api,
        pace: &Pace<C>,
        identity: &Identity,
        ids: &BTreeSet<String>,
    ) -> BTreeMap<String, EndAnswer> {
        let found = match instances::by_ids(api, ids).await {
            Ok(found) => found,
            Err(error) => return ids.iter().map(|id| (id.clone(), Err(error.clone()))).collect(),
        };
        let states: BTreeMap<&str, InstanceState> = found.iter().map(|it| (it.id.as_str(), it.state)).collect();
        let of_others: BTreeMap<&str, String> =
            found.iter().filter_map(|it| Some((it.id.as_str(), whose(it, identity)?))).collect();
        let mut answers = BTreeMap::new();
        let mut running = Vec::new();
        for id in ids {
            match states.get(id.as_str()) {
                Some(InstanceState::Terminated) => drop(answers.insert(id.clone(), Err(gone(id)))),
                Some(InstanceState::ShuttingDown) => drop(answers.insert(id.clone(), Ok(()))),
                None if self.is_young(id, pace.now()) => drop(answers.insert(id.clone(), Err(not_shown(id)))),
                None => drop(answers.insert(id.clone(), Err(gone(id)))),
                Some(_) => match of_others.get(id.as_str()) {
                    Some(whose) => drop(answers.insert(id.clone(), Err(not_ours(id, whose)))),
                    None => running.push(id.clone()),
                },
            }
        }
        for together in running.chunks(TOGETHER_MAX) {
            match terminate(api, pace, together).await {
                Err(error) if spoils_others(&error) && together.len() > 1 => {
                    answers.extend(end_each(api, pace, together).await);
                }
                answer => answers.extend(together.iter().map(|id| (id.clone(), answer.clone()))),
            }
        }
        answers
    }

    fn is_young(&self, id: &str, now: Timestamp) -> bool {
        let mut young = self.young.lock().unwrap_or_else(PoisonError::into_inner);
        young.get_mut(id).is_some_and(|at| {
            *at = not_to_come(*at, now);
            now.duration_since(*at) < SHOWN_WITHIN
        })
    }
}

/// Whether one instance may fail the call for the others: it is not known, is protected from being ended, or is not among those that the policy
/// allows to end.
fn spoils_others(error: &ApiError) -> bool {
    let is_of_one = matches!(error.class, FailureClass::NotFound | FailureClass::Invalid | FailureClass::Denied);
    is_of_one && !error.is_of_credentials()
}

/// Each in a call of its own. Once several in a row were denied, the others are taken to be: the permission is missing for all of them.
async fn end_each<C: Clock>(api: &impl Ec2Api, pace: &Pace<C>, ids: &[String]) -> BTreeMap<String, EndAnswer> {
    let mut answers = BTreeMap::new();
    let mut denied_in_a_row = 0;
    for (place, id) in ids.iter().enumerate() {
        let answer = terminate(api, pace, std::slice::from_ref(id)).await;
        let is_denied = answer.as_ref().is_err_and(|error| error.class == FailureClass::Denied);
        denied_in_a_row = if is_denied { denied_in_a_row + 1 } else { 0 };
        if denied_in_a_row == DENIED_MAX {
            answers.extend(ids.iter().skip(place).map(|id| (id.clone(), answer.clone())));
            break;
        }
        answers.insert(id.clone(), answer);
    }
    answers
}

async fn terminate<C: Clock>(api: &impl Ec2Api, pace: &Pace<C>, ids: &[String]) -> EndAnswer {
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let call = async || api.terminate_instances(ids).await;
    pace.call(Action::TerminateInstances, count, call).await.map(|_| ())
}

/// Whose an instance is by its tags, where it is not ours: NodeClaims that were copied from another cluster name its instances.
fn whose(instance: &InstanceAnswer, identity: &Identity) -> Option<String> {
    let ours = [(keys::CLUSTER_NAME_TAG, &identity.cluster), (keys::INSTALLATION, &identity.installation)];
    ours.into_iter().find_map(|(tag, own)| {
        let value = instance.tags.get(tag).filter(|value| !value.is_empty() && *value != own)?;
        Some(format!("its tag {tag} is {value}"))
    })
}

fn not_ours(id: &str, whose: &str) -> ApiError {
    let message = format!("{id} is an instance of another cluster or installation: {whose}");
    ApiError { action: Action::TerminateInstances, class: FailureClass::Denied, code: "OfAnother".to_owned(), message }
}

fn gone(id: &str) -> ApiError {
    ApiError::of(Action::TerminateInstances, "InvalidInstanceID.NotFound", format!("{id} has ended"))
}

fn not_shown(id: &str) -> ApiError {
    let message = format!("EC2 does not show {id} yet, which was just launched");
    ApiError { action: Action::TerminateInstances, class: FailureClass::Server, code: "NotShown".to_owned(), message }
}

fn lost() -> ApiError {
    let message = "the call was given up".to_owned();
    ApiError { action: Action::TerminateInstances, class: FailureClass::Server, code: "GivenUp".to_owned(), message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_clock_that_was_set_back_keeps_no_instance_young() {
        let at = |second: i64| Timestamp::from_second(1_790_000_000 + second).unwrap();
        let ends = Ends::default();
        ends.launched(["i-1"], at(36_000));
        assert!(ends.is_young("i-1", at(36_060)) && ends.is_young("i-1", at(0)));
        assert!(ends.is_young("i-1", at(119)) && !ends.is_young("i-1", at(120)), "it is waited for from then on");
    }

    #[test]
    fn an_instance_of_another_cluster_or_installation_is_not_ours() {
        let identity = Identity {
            cluster: "demo".to_owned(),
            region: "us-east-1".to_owned(),
            installation: "blue".to_owned(),
            kubernetes_version: None,
        };
        let whose = |tags: serde_json::Value| {
            let instance = json!({ "id": "i-1", "state": "running", "instanceType": "m5.large", "zone": "us-east-1a",
                "imageId": "ami-1", "launchedAt": "2026-11-20T09:00:00Z", "tags": tags });
            whose(&serde_json::from_value(instance).unwrap(), &identity)
        };
        let of = |cluster: &str, installation: &str| {
            whose(json!({ "eks:eks-cluster-name": cluster, "cutlist.dev/installation": installation }))
        };
        assert_eq!((of("demo", "blue"), of("demo", ""), whose(json!({}))), (None, None, None));
        assert_eq!(of("production", "blue").as_deref(), Some("its tag eks:eks-cluster-name is production"));
        assert_eq!(of("demo", "green").as_deref(), Some("its tag cutlist.dev/installation is green"));
    }
}
