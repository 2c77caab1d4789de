//! Hears what EC2 announces, and sees which capacity blocks end: it is noted on the NodeClaims concerned, and the next plan replaces their
//! nodes.

use jiff::{SignedDuration, Timestamp};

use crate::api::node_claim::NodeClaim;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{View, name_of, provider_id};
use crate::core::lifecycle::interruption::Interruption;
use crate::core::offer::taken_back;
use crate::ports::{Cloud, Cluster, Message, PortError, PortErrorKind};

use super::Claims;
use super::effects::unless_gone;

/// Another cluster may hear the same queue, or an instance have no claim yet: what concerns none is left for so long. By then EC2 has taken
/// the instance back.
const LEFT_TO_OTHERS: SignedDuration = SignedDuration::from_mins(5);
/// Refusals that are waited for in one look.
const REFUSED_MAX: usize = 2;

/// What came of what EC2 announces.
#[derive(Debug, Default)]
pub struct Heard {
    /// Something was written, so that it is to be planned anew.
    pub wrote: bool,
    /// Calls that failed: what they are about comes again, and what other messages are about was done.
    pub troubles: Vec<PortError>,
    /// Notes on claims that somebody refused.
    refused: usize,
}

impl Heard {
    /// Whether it was noted on a claim. A call that is refused for this claim stops no other, and is not made again at once; after a few no
    /// more are made in this look, since each may take half a minute.
    async fn note<K: Cluster>(
        &mut self,
        (cluster, claim): (&K, &NodeClaim),
        interruption: &Interruption,
        claims: &mut Claims,
        now: Timestamp,
        journal: &mut Journal,
    ) -> bool {
        let object = format!("interruption of NodeClaim {}", name_of(claim));
        if self.refused >= REFUSED_MAX || claims.set_aside.is_aside(&object, now) {
            return false;
        }
        match note(cluster, interruption, claim, claims, now, journal).await {
            Ok(wrote) => self.wrote |= wrote,
            Err(error) => {
                if error.is_of_one_object() {
                    self.refused += 1;
                    claims.set_aside.refused(&object, now);
                }
                self.troubles.push(error);
                return false;
            }
        }
        true
    }
}

/// Acts on the messages that are there, then takes them off the queue.
pub async fn hear<K: Cluster, E: Cloud>(
    (cluster, cloud): (&K, &E),
    view: &View<'_>,
    claims: &mut Claims,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<Heard, PortError> {
    let mut heard = Heard::default();
    let mut messages = Vec::new();
    for said in [cloud.messages().await, cloud.failing().await] {
        match said {
            Ok(said) => messages.extend(said),
            Err(error) => heard.troubles.push(error),
        }
    }
    for message in messages {
        let mut is_noted = true;
        // What is of no kind that anybody acts on, or nobody can read, would come again for ever.
        if let Some(interruption) = Interruption::parse(&message.body) {
            let of_instance = |claim: &&NodeClaim| provider_id(claim).is_some_and(|id| interruption.concerns(id));
            let mut concerned = view.snapshot.node_claims.iter().filter(of_instance).peekable();
            is_noted = concerned.peek().is_some() || is_worth_nothing(&message, now);
            for claim in concerned {
                is_noted &= heard.note((cluster, claim), &interruption, claims, now, journal).await;
            }
        }
        if is_noted && let Err(error) = cloud.forget_message(&message.receipt).await {
            let is_silent = error.kind == PortErrorKind::Temporary;
            heard.troubles.push(error);
            if is_silent {
                break;
            }
        }
    }
    for claim in &view.snapshot.node_claims {
        if let Some(ending) = Interruption::by_end_of_block(claim, &view.snapshot.node_classes, now) {
            heard.note((cluster, claim), &ending, claims, now, journal).await;
        }
    }
    Ok(heard)
}

/// Whether a message that concerns none of these claims is of no use to anybody else that hears the same queue.
fn is_worth_nothing(message: &Message, now: Timestamp) -> bool {
    message.sent_at.is_none_or(|sent_at| now.duration_since(sent_at).abs() >= LEFT_TO_OTHERS)
}

async fn note<K: Cluster>(
    cluster: &K,
    interruption: &Interruption,
    claim: &NodeClaim,
    claims: &mut Claims,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<bool, PortError> {
    let event = || Event::Interrupted {
        node_claim: name_of(claim).to_owned(),
        node: claim.status.as_ref().and_then(|status| status.node_name.clone()).unwrap_or_default(),
        kind: interruption.kind,
        message: interruption.message(),
        ends: interruption.ends_instances(),
    };
    if !interruption.ends_instances() {
        journal.say(now, &event());
        return Ok(false);
    }
    let is_leaving = claim.metadata.deletion_timestamp.is_some();
    let Some(noted) = interruption.noted(claim, now).filter(|_| !is_leaving) else { return Ok(false) };
    unless_gone(cluster.update_node_claim(&noted).await)?;
    // Remembered, since the claim may be gone long before it is worth another try.
    claims.refused.extend(taken_back(&noted));
    journal.say(now, &event());
    Ok(true)
}
