//! What no queue announces: instances whose checks fail, and what EC2 has scheduled for them. It is asked for, and told as what the queue
//! brings is. Behaviour: reference, section 6.9.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::Mutex;

use crate::adapters::aws::api::instances::InstanceStatus;
use crate::adapters::aws::api::{Action, Ec2Api, Filter, pages};
use crate::adapters::aws::resolution::known::LastAnswer;
use crate::api::keys;
use crate::ports::Message;

const LOOKS_APART: SignedDuration = SignedDuration::from_mins(1);
/// A check may fail for a moment, as while an instance boots.
const IMPAIRED_FOR: SignedDuration = SignedDuration::from_secs(120);
/// What ends or stops an instance; volumes have events of their own.
const EVENTS: [&str; 5] =
    ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"];
/// Receipts of messages that are in no queue.
const RECEIPT: &str = "instance-status:";

#[derive(Debug, Default)]
pub struct Statuses {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last look; what went wrong since.
    looked: LastAnswer<()>,
    /// What is asked for next.
    turn: Turn,
}

/// Filters of one call must all hold, so each is asked for by itself, one at a look: idle clusters make few calls.
#[derive(Clone, Copy, Debug, Default)]
enum Turn {
    #[default]
    Instances,
    Hosts,
    Events,
}

impl Turn {
    fn filter(self) -> Filter {
        match self {
            Self::Instances => Filter::new("instance-status.status", ["impaired"]),
            Self::Hosts => Filter::new("system-status.status", ["impaired"]),
            Self::Events => Filter::new("event.code", EVENTS),
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Instances => Self::Hosts,
            Self::Hosts => Self::Events,
            Self::Events => Self::Instances,
        }
    }
}

impl Statuses {
    /// Of all instances of the account, if it is time to look: the same again as long as it is so.
    pub async fn messages(&self, api: &impl Ec2Api, now: Timestamp) -> Vec<Message> {
        let mut inner = self.inner.lock().await;
        if !inner.looked.is_due(LOOKS_APART, now) {
            return Vec::new();
        }
        let filters = [inner.turn.filter()];
        let ask = async |page: Option<String>| api.describe_instance_status(&filters, page.as_deref()).await;
        match pages::all(Action::DescribeInstanceStatus, ask).await {
            Ok(found) => {
                inner.turn = inner.turn.next();
                inner.looked.record(Ok(()), now);
                found.iter().filter_map(|status| message(status, now)).collect()
            }
            Err(error) => {
                inner.looked.record(Err(error), now);
                Vec::new()
            }
        }
    }

    /// Why nothing is known of them, for people.
    pub async fn trouble(&self) -> Option<String> {
        let inner = self.inner.lock().await;
        // What is denied is said apart.
        inner.looked.trouble_text().filter(|_| !inner.looked.is_denied())
    }
}

/// Whether a message came of this, and is in no queue.
pub fn is_of_status(receipt: &str) -> bool {
    receipt.starts_with(RECEIPT)
}

/// As EventBridge would send it; nothing for an instance that is well.
fn message(status: &InstanceStatus, now: Timestamp) -> Option<Message> {
    let since = [status.instance_impaired_since, status.system_impaired_since].into_iter().flatten().min();
    let since = since.filter(|since| now.duration_since(*since) >= IMPAIRED_FOR);
    let body = match since {
        Some(since) => {
            json!({ "source": keys::STATUS_CHECKS, "detail-type": keys::STATUS_CHECK_FAILED, "time": since.to_string(),
            "detail": { "instance-id": status.id } })
        }
        None if status.events.iter().any(|event| EVENTS.contains(&event.as_str())) => json!({
            "source": "aws.health", "detail-type": "AWS Health Event", "time": now.to_string(),
            "detail": { "service": "EC2", "eventTypeCategory": "scheduledChange",
                "affectedEntities": [{ "entityValue": status.id }] } }),
        None => return None,
    };
    Some(Message { receipt: format!("{RECEIPT}{}", status.id), body: body.to_string(), sent_at: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn kind(instance: Option<i64>, system: Option<i64>, events: &[&str]) -> Option<String> {
        let status = InstanceStatus {
            id: "i-1".to_owned(),
            instance_impaired_since: instance.map(at),
            system_impaired_since: system.map(at),
            events: events.iter().map(|event| (*event).to_owned()).collect(),
        };
        let message = message(&status, at(200))?;
        assert!(is_of_status(&message.receipt));
        let event: serde_json::Value = serde_json::from_str(&message.body).unwrap();
        let about = ["/detail/instance-id", "/detail/affectedEntities/0/entityValue"].map(|at| event.pointer(at));
        assert!(about.contains(&Some(&json!("i-1"))), "{event}");
        Some(format!("{} {}", event["detail-type"].as_str().unwrap(), event["time"].as_str().unwrap()))
    }

    #[test]
    fn what_fails_for_long_or_is_to_end_is_told() {
        assert_eq!(kind(None, None, &[]), None);
        assert_eq!(kind(Some(81), None, &[]), None, "119 seconds");
        let failed = |since: i64| Some(format!("EC2 Instance Status Check Failed {}", at(since)));
        assert_eq!(kind(Some(80), None, &[]), failed(80));
        assert_eq!(kind(Some(150), Some(0), &["instance-stop"]), failed(0));
        assert_eq!(kind(None, None, &["instance-retirement"]), Some(format!("AWS Health Event {}", at(200))));
        assert_eq!(kind(None, None, &["something-else"]), None);
    }
}
