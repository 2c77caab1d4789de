//! Who leads: one of several replicas acts, and knows when it no longer may.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use kube_lease_manager::{LeaseCreateMode, LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::api::keys::FIELD_MANAGER;
use crate::ports::{PortError, PortErrorKind};

use super::connection::Connection;
use super::failure::port_error;
use super::whole_call::LastWrite;

/// The name of our lease.
pub(super) const LEASE: &str = "cutlist-leader-election";
/// A leader that has not renewed for so long has lost; it renews `GRACE_SECONDS` before. Together below the 20 seconds within
/// which another one should have taken over.
const LEASE_SECONDS: u64 = 12;
const GRACE_SECONDS: u64 = 4;
/// One that has not renewed for so many times its duration does not hold the lease any more, whatever its times say.
const DEAD_AFTER: u32 = 3;
/// How often one who waits looks who holds the lease, and one who holds it whether that stands, where no answer came.
const LOOK: Duration = Duration::from_secs(2);
/// How long giving the lease back may take.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Whether this process leads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    leads: watch::Receiver<bool>,
    transitions: Arc<AtomicI64>,
    /// Of one who stands for election: ends that, and tells when it has ended.
    standing: Option<Arc<Standing>>,
    /// When the lease was renewed last; `None` where there is none to hold.
    renewed: Option<LastWrite>,
}

#[derive(Debug, Default)]
pub(super) struct Standing {
    pub stop: Notify,
    manager: Mutex<Option<JoinHandle<()>>>,
}

impl Standing {
    /// The task that gives the lease back when it is told to stop.
    pub fn wait_for(&self, task: JoinHandle<()>) {
        *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }
}

impl Leadership {
    /// For a process that asked nobody.
    pub fn alone() -> Self {
        let (_, leads) = watch::channel(true);
        Self { leads, transitions: Arc::new(AtomicI64::new(0)), standing: None, renewed: None }
    }

    /// Of one who holds the lease.
    pub(super) fn of(leads: watch::Receiver<bool>, standing: Arc<Standing>, renewed: LastWrite) -> Self {
        let transitions = Arc::new(AtomicI64::new(0));
        Self { leads, transitions, standing: Some(standing), renewed: Some(renewed) }
    }

    /// Stands for election, and goes on to do so. `identity` must be another one in each process.
    pub async fn stand(connection: &Connection, namespace: &str, identity: &str) -> Result<Self, PortError> {
        let operation = format!("stand for election with lease {namespace}/{LEASE}");
        let failure = |error: LeaseManagerError| match error {
            LeaseManagerError::KubeError(error) => {
                PortError { kind: PortErrorKind::Denied, ..port_error(operation, error) }
            }
            error => PortError { operation, kind: PortErrorKind::Denied, source: Some(Box::new(error)) },
        };
        let api: Api<Lease> = Api::namespaced(connection.electing.clone(), namespace);
        let mut seen = Seen::default();
        seen.look(&api, identity).await;
        let manager = manager(connection.electing.clone(), namespace, identity).await.map_err(failure)?;
        let (elected, task) = manager.watch().await;
        let task = tokio::spawn(async move { drop(task.await) });
        let standing = Arc::new(Standing::default());
        standing.wait_for(task);
        let transitions = Arc::new(AtomicI64::new(0));
        let (tell, leads) = watch::channel(false);
        let (client, stopped) = (connection.electing.clone(), Arc::clone(&standing));
        let (namespace, identity) = (namespace.to_owned(), identity.to_owned());
        let candidate = Candidate {
            client,
            api,
            namespace,
            identity,
            seen,
            elected,
            tell,
            stopped,
            transitions: Arc::clone(&transitions),
            written: connection.lease_written.clone(),
        };
        tokio::spawn(candidate.stand());
        let renewed = Some(connection.lease_written.clone());
        Ok(Self { leads, transitions, standing: Some(standing), renewed })
    }

    /// Gives the lease back, so that another one need not wait until it has expired. Ends in any case.
    pub async fn give_back(&self) {
        let Some(standing) = &self.standing else { return };
        standing.stop.notify_one();
        let manager = standing.manager.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(manager) = manager
            && timeout(GIVE_BACK, manager).await.is_err()
        {
            tracing::warn!("the lease could not be given back: it expires");
        }
    }

    /// Whether this process leads, and nobody else can by now: where it was frozen, it may act before it hears that it has lost.
    pub fn leads(&self) -> bool {
        *self.leads.borrow() && self.holds(now())
    }

    /// Whether the lease was renewed so lately that nobody else may have it.
    fn holds(&self, at: Instant) -> bool {
        self.renewed.as_ref().is_none_or(|renewed| !held_for(renewed, at).is_zero())
    }

    /// How often the lease had changed hands when this process got it: grows with every leader.
    pub fn transitions(&self) -> i64 {
        self.transitions.load(Ordering::SeqCst)
    }

    /// Waits until this process leads (`true`) or no longer does (`false`).
    pub async fn becomes(&mut self, leads: bool) {
        // The sender ends with the runtime, when nobody waits any more; one that led alone leads for ever.
        if self.leads.wait_for(|now| *now == leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What stands for election, and renews.
async fn manager(client: Client, namespace: &str, identity: &str) -> Result<LeaseManager, LeaseManagerError> {
    LeaseManagerBuilder::new(client, LEASE)
        .with_namespace(namespace)
        .with_identity(identity)
        .with_field_manager(FIELD_MANAGER)
        .with_duration(LEASE_SECONDS)
        .with_grace(GRACE_SECONDS)
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .build()
        .await
}

/// Who else holds the lease, and since when it has not changed: as it was seen, by the clock of this machine alone. The times in it are by the
/// clock of another one.
#[derive(Debug, Default)]
struct Seen {
    other: Option<Other>,
    changed_at: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Other {
    holder: String,
    renewed: Option<MicroTime>,
    /// For how long it is held without being renewed.
    duration: Duration,
}

impl Seen {
    /// Whether there is a lease. Where it can not be asked, what was seen last counts.
    async fn look(&mut self, api: &Api<Lease>, identity: &str) -> bool {
        let Ok(lease) = api.get_opt(LEASE).await else { return true };
        let is_there = lease.is_some();
        self.see(lease.and_then(|lease| lease.spec).unwrap_or_default(), identity, now());
        is_there
    }

    fn see(&mut self, lease: LeaseSpec, identity: &str, at: Instant) {
        let seconds = lease.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = Duration::from_secs(seconds.unwrap_or(LEASE_SECONDS));
        // One that is free was given back, or taken from somebody who does not know it yet.
        let holder = lease.holder_identity.filter(|holder| !holder.is_empty() && holder != identity);
        let other = holder.map(|holder| Other { holder, renewed: lease.renew_time, duration });
        if other.is_some() && self.other != other {
            (self.other, self.changed_at) = (other, Some(at));
        }
    }

    /// How long whoever was seen to hold it may go on without having looked at it again.
    fn may_act_for(&self, at: Instant) -> Duration {
        let Some((other, since)) = self.other.as_ref().zip(self.changed_at) else { return Duration::ZERO };
        other.duration.saturating_sub(at.saturating_duration_since(since))
    }

    /// Who has not renewed it for so long that it should be over.
    fn dead(&self, at: Instant) -> Option<&str> {
        let (other, since) = self.other.as_ref().zip(self.changed_at)?;
        let is_dead = at.saturating_duration_since(since) >= other.duration.saturating_mul(DEAD_AFTER);
        is_dead.then_some(other.holder.as_str())
    }
}

#[expect(clippy::disallowed_methods, reason = "the clocks of two machines differ: how long is waited is measured here")]
fn now() -> Instant {
    Instant::now()
}

/// How long nobody else may have a lease, by when it was renewed last.
fn held_for(renewed: &LastWrite, at: Instant) -> Duration {
    let Some(began_at) = renewed.began_at() else { return Duration::ZERO };
    Duration::from_secs(LEASE_SECONDS).saturating_sub(at.saturating_duration_since(began_at))
}

/// Who stands for election.
struct Candidate {
    client: Client,
    api: Api<Lease>,
    namespace: String,
    identity: String,
    seen: Seen,
    elected: watch::Receiver<bool>,
    tell: watch::Sender<bool>,
    stopped: Arc<Standing>,
    transitions: Arc<AtomicI64>,
    /// When the lease was renewed last.
    written: LastWrite,
}

impl Candidate {
    /// Until it is told to stop, or can not renew any more: tells who waits for it whether this process leads.
    async fn stand(mut self) {
        let mut leads = false;
        loop {
            let is_elected = *self.elected.borrow_and_update();
            // A clock that is ahead takes the lease of one who still acts.
            let mut rest = if is_elected { self.seen.may_act_for(now()) } else { LOOK };
            leads &= is_elected;
            if !leads && rest.is_zero() {
                let confirmed = self.confirm().await;
                rest = if confirmed.is_none() { LOOK } else { Duration::ZERO };
                leads = confirmed.unwrap_or(false);
            }
            if leads {
                rest = self.holds_for(now());
                if rest.is_zero() {
                    tracing::warn!("the lease was not renewed for {LEASE_SECONDS} seconds: another one may lead");
                    break;
                }
            }
            let goes_on = self.tell.send(leads).is_ok()
                && tokio::select! {
                    changed = self.elected.changed() => changed.is_ok(),
                    () = self.stopped.stop.notified() => false,
                    () = sleep(rest), if !rest.is_zero() => true,
                };
            if !goes_on {
                break;
            }
            if !is_elected {
                if self.seen.look(&self.api, &self.identity).await {
                    self.outlive_the_dead().await;
                } else if let Err(error) = self.stand_anew().await {
                    tracing::warn!(error = %error, "the lease is gone, and can not be made again");
                }
            }
        }
        // The manager gives the lease back when nobody listens to it any more.
        drop(self.elected);
        let _nobody_listens = self.tell.send(false);
    }

    /// How long nobody else may have the lease.
    fn holds_for(&self, at: Instant) -> Duration {
        held_for(&self.written, at)
    }

    /// Whoever stands for election makes the lease where there is none; the manager before goes by one that is gone.
    async fn stand_anew(&mut self) -> Result<(), LeaseManagerError> {
        let manager = manager(self.client.clone(), &self.namespace, &self.identity).await?;
        self.go_by(manager).await;
        Ok(())
    }

    async fn go_by(&mut self, manager: LeaseManager) {
        let (elected, task) = manager.watch().await;
        self.stopped.wait_for(tokio::spawn(async move { drop(task.await) }));
        self.elected = elected;
    }

    /// Whose clock was ahead, and who ended without giving the lease back, would be waited for until the moment that it wrote. Somebody who
    /// does renew it is faster than this write, which is refused then.
    async fn outlive_the_dead(&mut self) {
        let Some(holder) = self.seen.dead(now()).map(str::to_owned) else { return };
        match self.take_over(&holder).await {
            Ok(true) => {
                tracing::warn!(holder, "the lease is free: it was not renewed for long, whatever its times say");
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(holder, error = %error, "a lease that nobody renews can not be freed"),
        }
    }

    /// Frees the lease, and begins to stand for it anew: the manager before goes by what the lease said. `false`: it was renewed.
    async fn take_over(&mut self, holder: &str) -> Result<bool, LeaseManagerError> {
        let manager = manager(self.client.clone(), &self.namespace, &self.identity).await?;
        let mut lease = self.api.get(LEASE).await.map_err(LeaseManagerError::KubeError)?;
        let spec = lease.spec.take().unwrap_or_default();
        lease.spec = Some(LeaseSpec { lease_transitions: spec.lease_transitions, ..LeaseSpec::default() });
        let is_held = spec.holder_identity.as_deref() == Some(holder);
        self.seen.see(spec, &self.identity, now());
        if !is_held || self.seen.dead(now()).is_none() {
            return Ok(false);
        }
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.api.replace(LEASE, &parameters, &lease).await.map_err(LeaseManagerError::KubeError)?;
        self.go_by(manager).await;
        self.seen = Seen::default();
        Ok(true)
    }

    /// Whether the lease is this process's. The number of changes of hands orders the leaders: it is known before anything is done as one.
    /// `None`: it can not be read.
    async fn confirm(&self) -> Option<bool> {
        match self.api.get(LEASE).await {
            Ok(lease) => {
                let spec = lease.spec.unwrap_or_default();
                self.transitions.store(i64::from(spec.lease_transitions.unwrap_or_default()), Ordering::SeqCst);
                Some(spec.holder_identity.as_ref() == Some(&self.identity))
            }
            Err(error) => {
                tracing::warn!(error = %error, "the lease can not be read back");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::AtomicBool;

    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::adapters::kubernetes::tests::connection_of;

    /// An API server with nothing but the lease, if it is there. Writes have no answer while it is stuck.
    #[derive(Clone, Default)]
    struct Server {
        lease: Arc<Mutex<Option<Value>>>,
        is_stuck: Arc<AtomicBool>,
    }

    impl Server {
        fn with(spec: &Value) -> Self {
            let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": LEASE, "namespace": "default", "resourceVersion": "1" }, "spec": spec });
            Self { lease: Arc::new(Mutex::new(Some(lease))), ..Self::default() }
        }

        fn connection(&self) -> Connection {
            let server = self.clone();
            let service = tower::service_fn(move |request: http::Request<Body>| {
                let server = server.clone();
                async move {
                    let method = request.method().clone();
                    if method != http::Method::GET && server.is_stuck.load(Ordering::SeqCst) {
                        std::future::pending::<()>().await;
                    }
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let (status, answer) = server.answer(&method, &body);
                    let response = http::Response::builder().status(status).header("content-type", "application/json");
                    Ok::<_, Infallible>(response.body(Body::from(answer.to_string().into_bytes())).unwrap())
                }
            });
            connection_of(Client::new(service, "default"))
        }

        fn answer(&self, method: &http::Method, body: &[u8]) -> (u16, Value) {
            let mut lease = self.lease.lock().unwrap();
            if [http::Method::PUT, http::Method::POST].contains(method) {
                *lease = Some(serde_json::from_slice(body).unwrap());
            }
            let Some(lease) = lease.as_mut() else {
                let message = "leases.coordination.k8s.io not found";
                return (
                    404,
                    json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": message }),
                );
            };
            if *method == http::Method::PATCH {
                let patch: Value = serde_json::from_slice(body).unwrap();
                for (field, value) in patch["spec"].as_object().unwrap() {
                    lease["spec"][field] = value.clone();
                }
            }
            (200, lease.clone())
        }
    }

    /// The lease as another one holds it.
    fn held(renewed: &str) -> Value {
        json!({ "holderIdentity": "other", "renewTime": renewed, "acquireTime": renewed,
            "leaseDurationSeconds": LEASE_SECONDS, "leaseTransitions": 3 })
    }

    /// How long it takes to lead where this is the lease.
    async fn seconds_to_lead(spec: Value) -> u64 {
        let began = now();
        let mut leadership = Leadership::stand(&Server::with(&spec).connection(), "default", "this").await.unwrap();
        leadership.becomes(true).await;
        began.elapsed().as_secs()
    }

    /// Its holder's clock is far behind, so that it looks as if it were over.
    #[tokio::test(start_paused = true)]
    async fn who_was_seen_to_hold_the_lease_may_still_act() {
        let seconds = seconds_to_lead(held("2026-01-01T00:00:00.000000Z")).await;
        assert!((LEASE_SECONDS..LEASE_SECONDS + 3).contains(&seconds), "{seconds}");
        let seconds = seconds_to_lead(json!({ "leaseTransitions": 3 })).await;
        assert!(seconds < 3, "nobody held it: {seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_ended_while_its_clock_was_ahead_is_not_waited_for() {
        let seconds = seconds_to_lead(held("2100-01-01T00:00:00.000000Z")).await;
        let dead = LEASE_SECONDS * u64::from(DEAD_AFTER);
        assert!((dead..dead + 5).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_can_not_renew_leads_no_longer_than_the_lease_says() {
        let server = Server::with(&json!({ "leaseTransitions": 3 }));
        let mut leadership = Leadership::stand(&server.connection(), "default", "this").await.unwrap();
        leadership.becomes(true).await;
        sleep(Duration::from_secs(60)).await;
        assert!(leadership.leads(), "it is renewed");
        // A process that was frozen for as long has heard nothing when it thaws.
        let thaws_at = now() + Duration::from_secs(LEASE_SECONDS);
        assert!(leadership.holds(now()) && !leadership.holds(thaws_at), "another one may have it by then");
        server.is_stuck.store(true, Ordering::SeqCst);
        let began = now();
        leadership.becomes(false).await;
        assert!(began.elapsed() <= Duration::from_secs(LEASE_SECONDS), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_somebody_deleted_is_made_again() {
        let server = Server::with(&held("2026-01-01T00:00:00.000000Z"));
        let mut leadership = Leadership::stand(&server.connection(), "default", "this").await.unwrap();
        *server.lease.lock().unwrap() = None;
        leadership.becomes(true).await;
        let lease = server.lease.lock().unwrap().clone().unwrap();
        assert_eq!(lease["spec"]["holderIdentity"], "this");
        // Of one who leads: nobody else can have it before that has ended.
        *server.lease.lock().unwrap() = None;
        let began = now();
        leadership.becomes(false).await;
        assert!(began.elapsed() <= Duration::from_secs(LEASE_SECONDS), "{:?}", began.elapsed());
    }

    #[test]
    fn what_was_seen_counts_and_not_what_the_lease_says() {
        let (mut seen, began) = (Seen::default(), now());
        let after = |seconds: u64| began + Duration::from_secs(seconds);
        let lease = |holder: &str, renewed: &str| {
            serde_json::from_value::<LeaseSpec>(json!({ "holderIdentity": holder, "renewTime": renewed })).unwrap()
        };
        let rest = |seen: &Seen, at: u64| seen.may_act_for(after(at)).as_secs();
        assert_eq!(rest(&seen, 0), 0);
        seen.see(lease("other", "2026-11-20T09:00:00.000000Z"), "this", after(0));
        assert_eq!((rest(&seen, 2), rest(&seen, 12), rest(&seen, 60)), (10, 0, 0));
        seen.see(lease("other", "2026-11-20T09:00:08.000000Z"), "this", after(8));
        seen.see(lease("other", "2026-11-20T09:00:08.000000Z"), "this", after(10));
        assert_eq!((rest(&seen, 10), rest(&seen, 20)), (10, 0));
        assert_eq!((seen.dead(after(43)), seen.dead(after(44))), (None, Some("other")));
        seen.see(LeaseSpec::default(), "this", after(11));
        assert_eq!((rest(&seen, 11), rest(&seen, 20)), (9, 0), "it may have been taken from them");
        seen.see(lease("this", "2026-11-20T09:00:12.000000Z"), "this", after(12));
        assert_eq!((rest(&seen, 12), rest(&seen, 20)), (8, 0));
    }
}
