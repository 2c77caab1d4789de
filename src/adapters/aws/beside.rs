//! Calls that the controller does not wait for: where EC2 accepts a call and says nothing, pods are evicted, nodes join and approvals are
//! heard all the same.
//!
//! Each call is carried out beside the controller. Its answer is waited for a moment, in which most come. One that has not come by then is
//! left alone: it is handed over when it is asked for again, and until then what was said before counts, or the call failed for now. Nothing is
//! asked for twice meanwhile: no claim is launched while its launch is under way.
//!
//! Everything runs in the task of the controller, so that a cloud need not be one for several threads.

mod asked;
mod launches;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::api::cloud_facts::{DeniedPermission, VcpuQuotaUse};
use crate::api::ec2_node_class::{EC2NodeClass, EC2NodeClassSpec};
use crate::api::node_claim::NodeClaim;
use crate::core::catalog::Catalog;
use crate::core::plan::{Note, NoteCode};
use crate::ports::{
    ClassCondition, ClassFacts, Cloud, Instance, InstanceEnd, LaunchFailure, LaunchRequest, Message, PortError,
    PortErrorKind,
};

use asked::{Asked, Key};

/// Most answers come within a second.
const READ_WAITED_FOR: Duration = Duration::from_secs(3);
/// A fleet takes its time.
const CHANGE_WAITED_FOR: Duration = Duration::from_secs(6);
/// The first time there is nothing to go by yet, and several lists are asked for.
const FIRST_WAITED_FOR: Duration = Duration::from_secs(20);
/// While another question is without an answer: EC2 may be silent as a whole, and a look asks a dozen.
const WAITED_FOR_BESIDE_SILENCE: Duration = Duration::from_millis(250);
/// A list of what runs is of use for so long. Whoever holds something against it waits longer before something ends.
const LIST_KEPT: Duration = Duration::from_secs(30);
/// Calls that are under way at the same time.
const UNDER_WAY_MAX: usize = 2_000;
/// Classes of which it is remembered what was said.
const CLASSES_MAX: usize = 1_000;

type Call = LocalBoxFuture<'static, ()>;

/// What was announced, or why that is not known.
type Told = Result<Vec<Message>, PortError>;

/// A cloud whose calls are carried out beside the controller.
pub struct Beside<E>(Rc<Shared<E>>);

struct Shared<E> {
    cloud: E,
    /// What stands in for the catalog before anything is known of it.
    assumed: Arc<Catalog>,
    /// Whether this process may change anything at this moment.
    may_act: Box<dyn Fn() -> bool>,
    begun: mpsc::Sender<Call>,
    book: RefCell<Book>,
    /// An answer came.
    answered: Notify,
}

/// What was asked, and what was said.
#[derive(Default)]
struct Book {
    catalog: Asked<(), Result<Arc<Catalog>, PortError>>,
    classes: Asked<String, (EC2NodeClassSpec, Result<ClassFacts, PortError>)>,
    quotas: Asked<(), Vec<VcpuQuotaUse>>,
    denied: Asked<(), Vec<DeniedPermission>>,
    notes: Asked<(), Vec<Note>>,
    instances: Asked<(), Result<Vec<Instance>, PortError>>,
    ended: Asked<(), Result<Vec<InstanceEnd>, PortError>>,
    messages: Asked<(), Told>,
    failing: Asked<(), Told>,
    forgotten: Asked<String, Result<(), PortError>>,
    ends: Asked<String, Result<(), PortError>>,
    /// By UID of the claim.
    launches: Asked<String, Result<Instance, LaunchFailure>>,
    last: Last,
    /// An answer came that nobody waited for any more.
    is_news: bool,
}

/// The last answers.
#[derive(Default)]
struct Last {
    catalog: Option<Arc<Catalog>>,
    classes: BTreeMap<String, (EC2NodeClassSpec, ClassFacts)>,
    quotas: Vec<VcpuQuotaUse>,
    denied: Vec<DeniedPermission>,
    notes: Vec<Note>,
}

impl Book {
    /// Whether some question is without an answer, and nobody waits for it any more.
    fn is_silent(&self) -> bool {
        self.catalog.is_left()
            || self.classes.is_left()
            || self.quotas.is_left()
            || self.denied.is_left()
            || self.notes.is_left()
            || self.instances.is_left()
            || self.ended.is_left()
            || self.messages.is_left()
            || self.failing.is_left()
    }

    /// The same, also of what was to be changed.
    fn is_asking(&self) -> bool {
        self.is_silent() || self.ends.is_left() || self.launches.is_left() || self.forgotten.is_left()
    }
}

impl<E: Cloud + 'static> Beside<E> {
    /// The cloud, and what carries its calls out for as long as it is polled. `may_act`: whether this process leads.
    pub fn start(
        cloud: E,
        assumed: Arc<Catalog>,
        may_act: impl Fn() -> bool + 'static,
    ) -> (Self, impl Future<Output = ()>) {
        let (begun, mut calls) = mpsc::channel::<Call>(UNDER_WAY_MAX);
        let (book, answered) = (RefCell::default(), Notify::new());
        let shared = Shared { cloud, assumed, may_act: Box::new(may_act), begun, book, answered };
        let carried_out = async move {
            let mut under_way = FuturesUnordered::new();
            loop {
                tokio::select! {
                    Some(call) = calls.recv(), if under_way.len() < UNDER_WAY_MAX => under_way.push(call),
                    Some(()) = under_way.next() => {}
                    else => std::future::pending::<()>().await,
                }
            }
        };
        (Self(Rc::new(shared)), carried_out)
    }

    /// Asks, unless it is being asked already, and waits a moment for the answer. `None`: there is none yet.
    async fn ask<K: Key, T: 'static>(
        &self,
        of: fn(&mut Book) -> &mut Asked<K, T>,
        key: K,
        patience: Duration,
        call: impl Fn(Rc<Shared<E>>) -> LocalBoxFuture<'static, T>,
    ) -> Option<T> {
        let shared = &self.0;
        let wait = self.patience(of, patience);
        let until = now() + wait;
        loop {
            let answered = shared.answered.notified();
            let is_under_way = {
                let mut book = shared.book.borrow_mut();
                let asked = of(&mut book);
                if let Some(answer) = asked.take(&key) {
                    return Some(answer);
                }
                asked.is_under_way(&key)
            };
            if !is_under_way {
                let (called, noted, of_key) = (call(shared.clone()), shared.clone(), key.clone());
                let carried_out = async move { noted.note(of, of_key, called.await) };
                shared.begun.try_send(Box::pin(carried_out)).ok()?;
                of(&mut shared.book.borrow_mut()).begins(key.clone());
            }
            if timeout_at(until, answered).await.is_err() {
                let mut book = shared.book.borrow_mut();
                let asked = of(&mut book);
                let answer = asked.take(&key);
                if answer.is_none() {
                    asked.leave(&key);
                }
                return answer;
            }
        }
    }

    /// How long an answer is waited for now.
    fn patience<K: Key, T>(&self, of: fn(&mut Book) -> &mut Asked<K, T>, most: Duration) -> Duration {
        let mut book = self.0.book.borrow_mut();
        if of(&mut book).is_left() {
            Duration::ZERO
        } else if book.is_silent() {
            WAITED_FOR_BESIDE_SILENCE
        } else {
            most
        }
    }

    fn last<T>(&self, of: impl FnOnce(&mut Last) -> T) -> T {
        of(&mut self.0.book.borrow_mut().last)
    }

    /// What is said now, or what was said last where there is no answer yet.
    async fn latest<T: Clone + 'static>(
        &self,
        of: fn(&mut Book) -> &mut Asked<(), T>,
        kept: fn(&mut Last) -> &mut T,
        call: impl Fn(Rc<Shared<E>>) -> LocalBoxFuture<'static, T>,
    ) -> T {
        let said = self.ask(of, (), READ_WAITED_FOR, call).await;
        self.last(|last| {
            let kept = kept(last);
            if let Some(said) = said {
                *kept = said;
            }
            kept.clone()
        })
    }

    /// What was announced; nothing where there is no answer yet, which comes with the next ones.
    async fn told(
        &self,
        of: fn(&mut Book) -> &mut Asked<(), Told>,
        call: impl Fn(Rc<Shared<E>>) -> LocalBoxFuture<'static, Told>,
    ) -> Told {
        self.ask(of, (), READ_WAITED_FOR, call).await.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Nobody but the leader changes anything, however late it was woken.
    fn may_act(&self, operation: &str) -> Result<(), PortError> {
        if (self.0.may_act)() {
            return Ok(());
        }
        let operation = format!("{operation}: this process leads no longer");
        Err(PortError { operation, kind: PortErrorKind::Denied, source: None })
    }
}

impl<E> Shared<E> {
    /// An answer came.
    fn note<K: Key, T>(&self, of: fn(&mut Book) -> &mut Asked<K, T>, key: K, answer: T) {
        let mut book = self.book.borrow_mut();
        let was_left = of(&mut book).answered(key, answer, now());
        book.is_news |= was_left;
        drop(book);
        self.answered.notify_waiters();
    }
}

#[expect(clippy::disallowed_methods, reason = "how long an answer is waited for is measured here")]
fn now() -> Instant {
    Instant::now()
}

/// It is asked, and said when it is known.
fn not_yet(operation: impl Into<String>) -> PortError {
    let source = "EC2 has not answered yet; it is not waited for";
    PortError { operation: operation.into(), kind: PortErrorKind::Temporary, source: Some(source.into()) }
}

/// What is known of a class of which EC2 said nothing yet: what its status says.
fn not_described(class: &EC2NodeClass) -> ClassFacts {
    let subnets = class.status_now().into_iter().flat_map(|status| &status.subnets);
    let mut zones: Vec<String> = subnets.map(|subnet| subnet.zone.clone()).collect();
    zones.sort();
    zones.dedup();
    let condition = ClassCondition {
        type_: "SubnetsReady".to_owned(),
        status: None,
        reason: "NotAnswered".to_owned(),
        message: "EC2 has not answered yet".to_owned(),
    };
    ClassFacts { zones, conditions: vec![condition], ..ClassFacts::default() }
}

impl<E: Cloud + 'static> Cloud for Beside<E> {
    async fn catalog(&self) -> Result<Arc<Catalog>, PortError> {
        let is_first = self.last(|last| last.catalog.is_none());
        let patience = if is_first { FIRST_WAITED_FOR } else { READ_WAITED_FOR };
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            Box::pin(async move { shared.cloud.catalog().await })
        };
        match self.ask(|book| &mut book.catalog, (), patience, call).await {
            Some(Ok(catalog)) => Ok(self.last(|last| last.catalog.insert(catalog).clone())),
            Some(Err(error)) => Err(error),
            None => Ok(self.last(|last| last.catalog.clone()).unwrap_or_else(|| self.0.assumed.clone())),
        }
    }

    async fn describe(&self, class: &EC2NodeClass) -> Result<ClassFacts, PortError> {
        let name = class.metadata.name.clone().unwrap_or_default();
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            let class = class.clone();
            Box::pin(async move {
                let facts = shared.cloud.describe(&class).await;
                (class.spec, facts)
            })
        };
        loop {
            match self.ask(|book| &mut book.classes, name.clone(), READ_WAITED_FOR, call).await {
                // It was changed since it was asked about.
                Some((spec, _)) if spec != class.spec => {}
                Some((spec, facts)) => {
                    let facts = facts?;
                    self.last(|last| {
                        if last.classes.len() >= CLASSES_MAX {
                            last.classes.clear();
                        }
                        last.classes.insert(name, (spec, facts.clone()));
                    });
                    return Ok(facts);
                }
                None => {
                    let known = self.last(|last| last.classes.get(&name).cloned());
                    let known = known.filter(|(spec, _)| *spec == class.spec).map(|(_, facts)| facts);
                    return Ok(known.unwrap_or_else(|| not_described(class)));
                }
            }
        }
    }

    async fn launch(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        self.launch_beside(request).await
    }

    async fn terminate(&self, provider_id: &str) -> Result<(), PortError> {
        let operation = format!("terminate {provider_id}");
        self.may_act(&operation)?;
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            let id = provider_id.to_owned();
            Box::pin(async move { shared.cloud.terminate(&id).await })
        };
        let answer = self.ask(|book| &mut book.ends, provider_id.to_owned(), CHANGE_WAITED_FOR, call).await;
        answer.unwrap_or_else(|| Err(not_yet(operation)))
    }

    async fn instances(&self) -> Result<Vec<Instance>, PortError> {
        // Those that run are held against what is in the cluster now.
        self.0.book.borrow_mut().instances.forget_older(now(), LIST_KEPT);
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            Box::pin(async move { shared.cloud.instances().await })
        };
        let answer = self.ask(|book| &mut book.instances, (), READ_WAITED_FOR, call).await;
        answer.unwrap_or_else(|| Err(not_yet("list the instances of the cluster")))
    }

    async fn ended(&self, provider_ids: &[&str]) -> Result<Vec<InstanceEnd>, PortError> {
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            let ids: Vec<String> = provider_ids.iter().map(|id| (*id).to_owned()).collect();
            Box::pin(async move {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                shared.cloud.ended(&ids).await
            })
        };
        let answer = self.ask(|book| &mut book.ended, (), READ_WAITED_FOR, call).await;
        answer.unwrap_or_else(|| Err(not_yet("see how instances are that have not joined")))
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.told(|book| &mut book.messages, |shared| Box::pin(async move { shared.cloud.messages().await })).await
    }

    async fn failing(&self) -> Result<Vec<Message>, PortError> {
        self.told(|book| &mut book.failing, |shared| Box::pin(async move { shared.cloud.failing().await })).await
    }

    async fn notes(&self) -> Vec<Note> {
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            Box::pin(async move { shared.cloud.notes().await })
        };
        let mut notes = self.latest(|book| &mut book.notes, |last| &mut last.notes, call).await;
        if self.0.book.borrow().is_silent() {
            let text = "EC2 has not answered all that it was asked: what is shown of it is what it said before";
            notes.push(Note::new(NoteCode::CloudNotKnown, text));
        }
        notes
    }

    async fn vcpu_quotas(&self) -> Vec<VcpuQuotaUse> {
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            Box::pin(async move { shared.cloud.vcpu_quotas().await })
        };
        self.latest(|book| &mut book.quotas, |last| &mut last.quotas, call).await
    }

    async fn denied(&self) -> Vec<DeniedPermission> {
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            Box::pin(async move { shared.cloud.denied().await })
        };
        self.latest(|book| &mut book.denied, |last| &mut last.denied, call).await
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        let call = |shared: Rc<Shared<E>>| -> LocalBoxFuture<'static, _> {
            let receipt = receipt.to_owned();
            Box::pin(async move { shared.cloud.forget_message(&receipt).await })
        };
        let answer = self.ask(|book| &mut book.forgotten, receipt.to_owned(), READ_WAITED_FOR, call).await;
        answer.unwrap_or_else(|| Err(not_yet("take a message off the queue")))
    }

    async fn changed(&self) {
        loop {
            let answered = self.0.answered.notified();
            if std::mem::take(&mut self.0.book.borrow_mut().is_news) {
                return;
            }
            answered.await;
        }
    }

    fn is_asking(&self) -> bool {
        self.0.book.borrow().is_asking()
    }

    fn is_launching(&self, claim: &NodeClaim) -> bool {
        self.0.book.borrow().launches.knows(&launches::key(claim))
    }
}
