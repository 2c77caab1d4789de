//! What the account does not allow at present, whoever asked for it.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use crate::adapters::aws::api::Ec2Api;
use crate::adapters::aws::refusals;
use crate::api::cloud_facts::DeniedPermission;

/// A refusal is explained once: decoding it is a call of its own.
#[derive(Debug, Default)]
pub struct Denials {
    /// By what AWS said.
    explained: Mutex<BTreeMap<String, String>>,
}

impl Denials {
    /// By action, in the order of the table of actions.
    pub async fn now(&self, api: &impl Ec2Api) -> Vec<DeniedPermission> {
        let mut explained = self.explained.lock().await;
        let denied = api.tally().denied();
        explained.retain(|message, _| denied.iter().any(|error| error.message == *message));
        let mut permissions = Vec::new();
        for error in denied {
            let text = match explained.get(&error.message) {
                Some(text) => text.clone(),
                None => {
                    let text = refusals::explain(api, &error).await;
                    explained.entry(error.message.clone()).or_insert(text).clone()
                }
            };
            permissions.push(DeniedPermission {
                action: error.action.name().to_owned(),
                text,
                needed_for: error.action.why().to_owned(),
            });
        }
        permissions
    }
}
