//! The queue of what EC2 announces. It is not there, or can not be read: nodes are launched and ended all the same, and it is said.
//!
//! Somebody listens beside all other work ([`Ears`]): a call that waits is answered as soon as something comes, asks all servers of SQS where
//! one that does not wait asks some, and idle clusters make few of them.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::api::account::QueueMessage;
use crate::adapters::aws::api::{ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::resolution::known::{LastAnswer, Trouble};
use crate::ports::{Clock, Message};

/// A call waits so long for a message; SQS allows no more.
const WAIT_SECONDS: u32 = 20;
/// From call to call where nothing comes: ten seconds nobody waits, of the two minutes that a spot instance has.
const IDLE_APART: SignedDuration = SignedDuration::from_secs(30);
/// The same where something does: what is left to others comes again and again, each message by itself.
const BUSY_APART: SignedDuration = SignedDuration::from_secs(5);
/// SQS gives up to ten messages a call; where it gives that many, the next call is at once.
const FULL: usize = 10;
/// Messages that wait to be acted on; no more are asked for before they are, and the queue keeps them.
const HEARD_MAX: usize = 100;
/// How often it is looked whether they were.
const FULL_LOOK: SignedDuration = SignedDuration::from_secs(1);
/// The longest pause after a failure.
const TROUBLE_MAX: SignedDuration = SignedDuration::from_mins(5);

/// The queue by its name. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Queue {
    name: Option<String>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    url: Option<String>,
    /// The last look; what went wrong since.
    looked: LastAnswer<()>,
    heard: VecDeque<Message>,
}

impl Queue {
    pub fn new(name: Option<String>) -> Self {
        Self { name, inner: Arc::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was announced since this was asked last.
    pub fn heard(&self) -> Vec<Message> {
        self.with(|inner| inner.heard.drain(..).collect())
    }

    /// Takes a message off the queue.
    pub async fn forget(&self, api: &impl Ec2Api, receipt: &str) -> Result<(), ApiError> {
        let Some(url) = self.with(|inner| inner.url.clone()) else { return Ok(()) };
        match api.delete_message(&url, receipt).await {
            Err(error) if error.class == FailureClass::NotFound => Ok(()),
            answer => answer,
        }
    }

    /// Why nothing is heard, for people.
    pub fn trouble(&self) -> Option<String> {
        self.with(|inner| inner.looked.trouble_text())
    }

    /// Waits for messages once: how long to leave it now.
    async fn listen<C: Clock>(&self, api: &impl Ec2Api, name: &str, clock: &C) -> SignedDuration {
        if self.with(|inner| inner.heard.len()) >= HEARD_MAX {
            return FULL_LOOK;
        }
        let began = clock.now();
        let found = match self.receive(api, name).await {
            Ok(found) => found,
            Err(error) => return self.failed(name, error, clock.now()),
        };
        let now = clock.now();
        let apart = match found.len() {
            0 => IDLE_APART,
            1..FULL => BUSY_APART,
            _ => SignedDuration::ZERO,
        };
        let message = |QueueMessage { receipt, body, sent_at }| Message { receipt, body, sent_at };
        self.with(|inner| {
            inner.looked = LastAnswer::answered((), now);
            inner.heard.extend(found.into_iter().map(message));
        });
        // By a clock that was set meanwhile, as after a moment.
        apart.saturating_sub(now.duration_since(began).clamp(SignedDuration::ZERO, apart))
    }

    async fn receive(&self, api: &impl Ec2Api, name: &str) -> Result<Vec<QueueMessage>, ApiError> {
        let url = match self.with(|inner| inner.url.clone()) {
            Some(url) => url,
            None => {
                let url = api.get_queue_url(name).await?;
                self.with(|inner| inner.url.insert(url).clone())
            }
        };
        api.receive_messages(&url, WAIT_SECONDS).await
    }

    fn failed(&self, name: &str, error: ApiError, now: Timestamp) -> SignedDuration {
        self.with(|inner| {
            if inner.looked.trouble.is_none() {
                tracing::warn!(queue = name, error = error.text(), "what EC2 announces is not heard");
            }
            if error.class == FailureClass::NotFound {
                inner.url = None;
            }
            inner.looked.record(Err(error), now);
            let retry_at = inner.looked.trouble.as_ref().map_or(now, Trouble::retry_at);
            retry_at.duration_since(now).clamp(FULL_LOOK, TROUBLE_MAX)
        })
    }
}

/// Who listens to the queue, beside whoever acts on what is heard.
#[derive(Debug)]
pub struct Ears<P, C> {
    pub(super) api: P,
    pub(super) clock: C,
    /// `None`: there is nothing to hear, or nobody who would act on it.
    pub(super) queue: Option<Queue>,
}

impl<P: Deref<Target: Ec2Api + Sized>, C: Clock> Ears<P, C> {
    /// Does not come to an end.
    pub async fn listen(self) {
        let heard = self.queue.as_ref().and_then(|queue| Some((queue, queue.name.as_deref()?)));
        let Some((queue, name)) = heard else { return std::future::pending().await };
        loop {
            let pause = queue.listen(&*self.api, name, &self.clock).await;
            tokio::time::sleep(pause.unsigned_abs()).await;
        }
    }
}
