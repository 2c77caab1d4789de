//! Polls that nobody waits for: they run beside the controller, which has pods to care for while a server is silent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::ports::{PollsOnAnyThread, PortError, Repository, RevisionContent};

type Polled = Result<Option<RevisionContent>, PortError>;

/// What waits for the answer of a server, such as an approval, waits no longer: most fetches take a second or two, and a server that is silent
/// would hold it up again at each of them.
const WAITED_FOR: Duration = Duration::from_secs(10);

/// When the poll that is under way began.
#[derive(Clone, Default)]
struct AsksSince(Arc<Mutex<Option<Instant>>>);

impl AsksSince {
    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands over what another repository found, one result after the other. While one is not taken, the next is not asked for.
pub struct Beside {
    results: mpsc::Receiver<Polled>,
    /// Taken off the channel by [`Repository::changed`], for [`Repository::poll`].
    next: Option<Polled>,
    task: JoinHandle<()>,
    asks_since: AsksSince,
}

impl Beside {
    /// Begins with waiting for a change: the first look was taken already. Needs a runtime.
    pub fn start<R: PollsOnAnyThread + Send + 'static>(mut repository: R) -> Self {
        let (found, results) = mpsc::channel(1);
        let asks_since = AsksSince::default();
        let asks = asks_since.clone();
        let task = tokio::spawn(async move {
            loop {
                repository.wait().await;
                asks.set(Some(Instant::now()));
                let polled = repository.look().await;
                let is_taken = found.send(polled).await;
                asks.set(None);
                if is_taken.is_err() {
                    return;
                }
            }
        });
        Self { results, next: None, task, asks_since }
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
        let is_waited_for = |since: Instant| Instant::now().duration_since(since) < WAITED_FOR;
        self.asks_since.get().is_some_and(is_waited_for) || self.next.is_some() || !self.results.is_empty()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::Revision;

    /// Takes two minutes for an answer, which is a revision.
    struct Slow;

    impl PollsOnAnyThread for Slow {
        async fn look(&mut self) -> Polled {
            tokio::time::sleep(Duration::from_secs(120)).await;
            let revision = Revision { id: "abc".to_owned(), reference: "main".to_owned() };
            Ok(Some(RevisionContent::without_history(revision, "", Vec::new(), Vec::new())))
        }

        async fn wait(&mut self) {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_long_for_a_server_that_is_slow() {
        let mut beside = Beside::start(Slow);
        let after = async |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds)).await;
        after(29).await;
        assert!(!beside.is_asking());
        after(2).await;
        assert!(beside.is_asking(), "an answer may come at once");
        after(10).await;
        assert!(!beside.is_asking(), "at 41 seconds nobody waits for it any more");
        assert!(beside.poll().await.unwrap().is_none());
        beside.changed().await;
        assert!(beside.is_asking(), "it came, and is taken next");
        assert_eq!(beside.poll().await.unwrap().unwrap().revision.id, "abc");
    }
}
