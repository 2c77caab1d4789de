//! Launches: one call is for several claims, and each of them gets its own answer, once.

use std::rc::Rc;

use tokio::time::timeout_at;

use crate::api::ec2_node_class::{Ami, EC2NodeClass};
use crate::api::node_claim::NodeClaim;
use crate::core::plan::Alternative;
use crate::ports::{Cloud, Instance, LaunchFailure, LaunchRequest, LaunchRules, PortError};

use super::{Beside, CHANGE_WAITED_FOR, Shared, not_yet, now};

/// What a claim is known by. One without a UID was never written.
pub fn key(claim: &NodeClaim) -> String {
    let metadata = &claim.metadata;
    metadata.uid.clone().or_else(|| metadata.name.clone()).unwrap_or_default()
}

/// A request that outlives the look that made it.
struct Owned {
    launch_id: String,
    installation: String,
    claims: Vec<NodeClaim>,
    assigned: Vec<String>,
    class: Option<EC2NodeClass>,
    images: Option<Vec<Ami>>,
    alternatives: Vec<Alternative>,
    rules: LaunchRules,
}

impl Owned {
    fn of(request: &LaunchRequest<'_>, claims: Vec<NodeClaim>) -> Self {
        Self {
            launch_id: request.launch_id.to_owned(),
            installation: request.installation.to_owned(),
            claims,
            assigned: request.assigned.iter().map(|id| (*id).to_owned()).collect(),
            class: request.class.cloned(),
            images: request.images.map(<[Ami]>::to_vec),
            alternatives: request.alternatives.to_vec(),
            rules: request.rules,
        }
    }

    fn request(&self) -> LaunchRequest<'_> {
        LaunchRequest {
            launch_id: &self.launch_id,
            installation: &self.installation,
            claims: self.claims.iter().collect(),
            assigned: self.assigned.iter().map(String::as_str).collect(),
            class: self.class.as_ref(),
            images: self.images.as_deref(),
            alternatives: &self.alternatives,
            rules: self.rules,
        }
    }
}

impl<E> Shared<E> {
    /// The launches of these claims that are under way still.
    fn are_under_way(&self, claims: &[&NodeClaim]) -> bool {
        let book = self.book.borrow();
        claims.iter().any(|claim| book.launches.is_under_way(&key(claim)))
    }
}

impl<E: Cloud + 'static> Beside<E> {
    /// Begins what is not under way, waits a moment, and hands over what is known by then.
    pub(super) async fn launch_beside(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        let shared = &self.0;
        let refused = self.may_act(&format!("launch {}", request.launch_id)).err();
        let until = now() + self.patience(|book| &mut book.launches, CHANGE_WAITED_FOR);
        if refused.is_none() {
            self.begin(request);
        }
        loop {
            let answered = shared.answered.notified();
            if !shared.are_under_way(&request.claims) || timeout_at(until, answered).await.is_err() {
                break;
            }
        }
        let mut book = shared.book.borrow_mut();
        let answer = |claim: &&NodeClaim| {
            let key = key(claim);
            book.launches.take(&key).unwrap_or_else(|| {
                book.launches.leave(&key);
                let name = claim.metadata.name.as_deref().unwrap_or_default();
                let error = refused.as_ref().map_or_else(|| not_yet(format!("launch {name}")), PortError::again);
                Err(LaunchFailure { error, exhausted: Vec::new() })
            })
        };
        request.claims.iter().map(answer).collect()
    }

    /// Asks for the claims that nobody asks for yet, unless too much is under way.
    fn begin(&self, request: &LaunchRequest<'_>) {
        let shared = &self.0;
        let mut book = shared.book.borrow_mut();
        let is_new = |claim: &&&NodeClaim| !book.launches.knows(&key(claim));
        let claims: Vec<NodeClaim> = request.claims.iter().filter(is_new).map(|claim| (*claim).clone()).collect();
        if claims.is_empty() {
            return;
        }
        let keys: Vec<String> = claims.iter().map(key).collect();
        let (owned, noted, of_keys) = (Owned::of(request, claims), Rc::clone(shared), keys.clone());
        let carried_out = async move {
            let answers = noted.cloud.launch(&owned.request()).await;
            for (key, answer) in of_keys.into_iter().zip(answers) {
                noted.note(|book| &mut book.launches, key, answer);
            }
        };
        if shared.begun.try_send(Box::pin(carried_out)).is_ok() {
            keys.into_iter().for_each(|key| book.launches.begins(key));
        }
    }
}
