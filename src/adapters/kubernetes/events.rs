//! Kubernetes Events on the objects concerned.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use crate::ports::Notice;

use super::connection::Connection;
use super::event_limits::EventLimits;

/// Notices that wait to be published; more than that at once are dropped and counted, as Kubernetes' own recorder does.
const QUEUE: usize = 1_000;
/// Of the Kubernetes API.
const NOTE_BYTES_MAX: usize = 1_024;
const CONTROLLER: &str = "cutlist";

/// Publishes notices one after the other, in the background.
#[derive(Clone)]
pub struct EventRecorder {
    sender: mpsc::Sender<Notice>,
    limits: Arc<Mutex<EventLimits>>,
}

impl EventRecorder {
    /// Call it inside a runtime.
    pub fn start(connection: &Connection, instance: &str) -> Self {
        let (sender, mut receiver) = mpsc::channel::<Notice>(QUEUE);
        let reporter = Reporter { controller: CONTROLLER.to_owned(), instance: Some(instance.to_owned()) };
        let recorder = Recorder::new(connection.client.clone(), reporter);
        tokio::spawn(async move {
            while let Some(notice) = receiver.recv().await {
                let (event, reference) = event(notice);
                if let Err(error) = recorder.publish(&event, &reference).await {
                    tracing::warn!(reason = event.reason, error = %error, "an Event could not be written");
                }
            }
        });
        Self { sender, limits: Arc::new(Mutex::new(EventLimits::new(now()))) }
    }

    /// Never waits; what does not fit is dropped and logged. What is not worth a write takes no place: a plan has good news for
    /// thousands of pods at once.
    pub fn publish(&self, notice: Notice) {
        let is_worth_it = self.limits.lock().unwrap_or_else(PoisonError::into_inner).allow(&notice, now());
        if is_worth_it && let Err(error) = self.sender.try_send(notice) {
            tracing::warn!(error = %error, "an Event was dropped");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "only how long ago the last one was written")]
fn now() -> Instant {
    Instant::now()
}

fn event(notice: Notice) -> (Event, ObjectReference) {
    let mut note = notice.note;
    if note.len() > NOTE_BYTES_MAX {
        let end = (0..=NOTE_BYTES_MAX - 3).rev().find(|end| note.is_char_boundary(*end)).unwrap_or(0);
        note.truncate(end);
        note.push_str("...");
    }
    let event = Event {
        type_: if notice.is_warning { EventType::Warning } else { EventType::Normal },
        action: notice.reason.to_string(),
        reason: notice.reason.to_string(),
        note: Some(note),
        secondary: None,
    };
    let reference = ObjectReference {
        api_version: Some(notice.api_version.to_owned()),
        kind: Some(notice.kind.to_owned()),
        namespace: notice.namespace,
        name: Some(notice.name),
        uid: notice.uid,
        ..ObjectReference::default()
    };
    (event, reference)
}
