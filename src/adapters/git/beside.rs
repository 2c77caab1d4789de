//! Polls that nobody waits for: they run beside the controller, which has pods to care for while a server is silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::ports::{PollsOnAnyThread, PortError, Repository, RevisionContent};

type Polled = Result<Option<RevisionContent>, PortError>;

/// Hands over what another repository found, one result after the other. While one is not taken, the next is not asked for.
pub struct Beside {
    results: mpsc::Receiver<Polled>,
    /// Taken off the channel by [`Repository::changed`], for [`Repository::poll`].
    next: Option<Polled>,
    task: JoinHandle<()>,
    is_asking: Arc<AtomicBool>,
}

impl Beside {
    /// Begins with waiting for a change: the first look was taken already. Needs a runtime.
    pub fn start<R: PollsOnAnyThread + Send + 'static>(mut repository: R) -> Self {
        let (found, results) = mpsc::channel(1);
        let is_asking = Arc::new(AtomicBool::new(false));
        let asks = is_asking.clone();
        let task = tokio::spawn(async move {
            loop {
                repository.wait().await;
                asks.store(true, Ordering::SeqCst);
                let polled = repository.look().await;
                let is_taken = found.send(polled).await;
                asks.store(false, Ordering::SeqCst);
                if is_taken.is_err() {
                    return;
                }
            }
        });
        Self { results, next: None, task, is_asking }
    }
}

impl PollsOnAnyThread for super::GitRepository {
    fn look(&mut self) -> impl Future<Output = Polled> + Send {
        self.poll()
    }

    fn wait(&mut self) -> impl Future<Output = ()> + Send {
        self.changed()
    }
}

impl PollsOnAnyThread for super::WatchedFolder {
    fn look(&mut self) -> impl Future<Output = Polled> + Send {
        self.poll()
    }

    fn wait(&mut self) -> impl Future<Output = ()> + Send {
        self.changed()
    }
}

impl Repository for Beside {
    /// What was found since; nothing, if there is no result yet.
    async fn poll(&mut self) -> Polled {
        match self.next.take() {
            Some(polled) => polled,
            None => self.results.try_recv().unwrap_or(Ok(None)),
        }
    }

    async fn changed(&mut self) {
        if self.next.is_none() {
            match self.results.recv().await {
                Some(polled) => self.next = Some(polled),
                // Ends only with this value.
                None => std::future::pending().await,
            }
        }
    }

    /// Also while a result lies there that was not taken.
    fn is_asking(&self) -> bool {
        self.is_asking.load(Ordering::SeqCst) || self.next.is_some() || !self.results.is_empty()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.task.abort();
    }
}
