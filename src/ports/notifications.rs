//! Where notifications go, and what is remembered of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;

use super::PortError;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The same for the same thing.
    pub key: &'a str,
    pub content_type: &'static str,
    pub text: &'a str,
}

/// Why a message did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// In one line, with the causes, and without the address.
    pub why: String,
    /// Whether it is this message that is not taken, whenever it is sent.
    pub is_of_message: bool,
    /// How long the receiver asks to be left alone.
    pub wait: Option<Duration>,
}

/// One address that messages go to.
pub trait Receiver: Send + Sync + 'static {
    /// What it is called in messages.
    fn name(&self) -> &str;
    fn deliver(&self, message: Message<'_>) -> impl Future<Output = Result<(), Undelivered>> + Send;
}

/// When what was told, by its key.
pub type Told = BTreeMap<String, Timestamp>;

/// By receiver: what was told to it.
pub type Notified = BTreeMap<String, Told>;

/// Where it is noted what was told, so that the next process does not tell it again.
pub trait NotificationLedger: Send + Sync + 'static {
    /// What is noted; nothing where there is no note, or none that can be read.
    fn read(&self) -> impl Future<Output = Result<Notified, PortError>> + Send;
    /// Notes all of it.
    fn note(&self, notified: &Notified) -> impl Future<Output = Result<(), PortError>> + Send;
}
