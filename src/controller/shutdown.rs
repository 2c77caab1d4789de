//! A request to stop, seen between two calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Cheap to clone; all clones are one request.
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    notify: Notify,
}

impl Shutdown {
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        self.0.notify.notify_one();
    }

    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Waits for the request.
    pub async fn requested(&self) {
        while !self.is_requested() {
            self.0.notify.notified().await;
        }
    }
}
