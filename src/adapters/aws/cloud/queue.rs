//! The queue of what EC2 announces. It is not there, or can not be read: nodes are launched and ended all the same, and it is said.

use jiff::SignedDuration;
use tokio::sync::Mutex;

use crate::adapters::aws::api::account::QueueMessage;
use crate::adapters::aws::api::{ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::resolution::known::LastAnswer;
use crate::ports::{Clock, Message};

use super::pace::Pace;

/// The queue is looked at at most so often. Spot instances are announced two minutes ahead: a dozen looks, since a call that does not wait
/// asks only some of the servers of SQS, and one that waits would hold up the pods that come meanwhile.
const LOOKS_APART: SignedDuration = SignedDuration::from_secs(10);
/// SQS gives up to ten messages a call.
const CALLS_A_LOOK: usize = 10;
const FULL: usize = 10;

/// The queue by its name.
#[derive(Debug)]
pub struct Queue {
    name: Option<String>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    url: Option<String>,
    /// The last look; what went wrong since.
    looked: LastAnswer<()>,
}

impl Queue {
    pub fn new(name: Option<String>) -> Self {
        Self { name, inner: Mutex::default() }
    }

    /// What was announced, if it is time to look.
    pub async fn messages<C: Clock>(&self, api: &impl Ec2Api, pace: &Pace<C>) -> Vec<Message> {
        let Some(name) = &self.name else { return Vec::new() };
        let mut inner = self.inner.lock().await;
        let now = pace.now();
        if !inner.looked.is_due(LOOKS_APART, now) {
            return Vec::new();
        }
        match look(api, name, &mut inner.url).await {
            Ok(found) => {
                // Where there are more, the next look is at once.
                let more = found.len() >= FULL * CALLS_A_LOOK;
                inner.looked = if more { LastAnswer::default() } else { LastAnswer::answered((), now) };
                let message = |QueueMessage { receipt, body, sent_at }| Message { receipt, body, sent_at };
                found.into_iter().map(message).collect()
            }
            Err(error) => {
                if inner.looked.trouble.is_none() {
                    tracing::warn!(queue = name, error = error.text(), "what EC2 announces is not heard");
                }
                if error.class == FailureClass::NotFound {
                    inner.url = None;
                }
                inner.looked.record(Err(error), now);
                Vec::new()
            }
        }
    }

    /// Takes a message off the queue.
    pub async fn forget(&self, api: &impl Ec2Api, receipt: &str) -> Result<(), ApiError> {
        let Some(url) = self.inner.lock().await.url.clone() else { return Ok(()) };
        match api.delete_message(&url, receipt).await {
            Err(error) if error.class == FailureClass::NotFound => Ok(()),
            answer => answer,
        }
    }

    /// Why nothing is heard, for people.
    pub async fn trouble(&self) -> Option<String> {
        self.inner.lock().await.looked.trouble_text()
    }
}

async fn look(api: &impl Ec2Api, name: &str, url: &mut Option<String>) -> Result<Vec<QueueMessage>, ApiError> {
    let known = match url {
        Some(url) => url.clone(),
        None => url.insert(api.get_queue_url(name).await?).clone(),
    };
    let mut all = Vec::new();
    for _ in 0..CALLS_A_LOOK {
        let some = match api.receive_messages(&known, 0).await {
            // What was received is hidden from the next look: it is acted on first, and the failure comes again.
            Err(_) if !all.is_empty() => break,
            received => received?,
        };
        let is_last = some.len() < FULL;
        all.extend(some);
        if is_last {
            break;
        }
    }
    Ok(all)
}
