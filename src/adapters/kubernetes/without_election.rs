//! The lease of one who acts without standing for election: held all the same, so that no two act that cannot see each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::api::keys::FIELD_MANAGER;
use crate::ports::{Clock, PortError, PortErrorKind, chain};

use super::connection::Connection;
use super::failure::port_error;
use super::leadership::{LEASE, Leadership, Standing};
use super::others::OtherEnforcer;
use super::whole_call::LastWrite;

/// Who was killed is waited for so long: as long as one that stands for election.
const HELD_SECONDS: i32 = 12;
/// Twice before it is over, with time for an answer that is late.
const RENEWED_EVERY: Duration = Duration::from_secs(5);
/// After one that failed.
const RENEWED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often it is looked whether another one still renews.
const LOOK: Duration = Duration::from_millis(250);

/// The lease of this process, or who has it.
pub enum Taken {
    Ours(Leadership),
    Held(OtherEnforcer),
}

/// What came of a renewal.
enum Renewal {
    Written(Box<Lease>),
    /// Somebody changed it meanwhile: who has it, is seen at the next look.
    Overtaken,
    Lost,
}

struct Holder<C> {
    api: Api<Lease>,
    namespace: String,
    identity: String,
    clock: C,
}

/// Takes the lease of the namespace. One that another process holds is waited for until it is over, or until that is seen to renew it: then
/// that one acts. From then on it is renewed; the leadership ends when somebody else has it.
pub async fn take<C: Clock + Send + Sync + 'static>(
    connection: &Connection,
    namespace: &str,
    identity: &str,
    clock: C,
) -> Result<Taken, PortError> {
    let api = Api::namespaced(connection.electing.clone(), namespace);
    let holder = Holder { api, namespace: namespace.to_owned(), identity: identity.to_owned(), clock };
    let mut seen: Option<(Lease, Instant)> = None;
    loop {
        let found = holder.found().await?;
        let other = found.as_ref().filter(|lease| !holder.may_have(lease));
        if let Some(other) = other {
            let (first, since) = seen.get_or_insert_with(|| (other.clone(), now()));
            if first.spec != other.spec {
                return Ok(Taken::Held(OtherEnforcer::Cutlist(holder.sentence(other))));
            }
            if now().saturating_duration_since(*since) < duration_of(other) {
                sleep(LOOK).await;
                continue;
            }
        }
        match holder.write(found).await {
            Ok(written) => return Ok(Taken::Ours(hold(holder, written, connection.lease_written.clone()))),
            // Somebody was faster: who, is seen at the next look.
            Err(error) if error.kind == PortErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clocks of two machines differ: how long is waited here is measured here"
)]
fn now() -> Instant {
    Instant::now()
}

/// For how long it was written that it is held.
fn duration_of(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(HELD_SECONDS);
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Renews until it is told to stop, or another one has it, or may have it because that failed for as long as it is held.
fn hold<C: Clock + Send + Sync + 'static>(holder: Holder<C>, written: Lease, renewed: LastWrite) -> Leadership {
    let (tell, leads) = watch::channel(true);
    let standing = Arc::new(Standing::default());
    let stopped = standing.clone();
    let held = duration_of(&written);
    let task = tokio::spawn(async move {
        let (mut known, mut renewed_at, mut pause) = (Some(written), now(), RENEWED_EVERY);
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                () = stopped.stop.notified() => return holder.give_back().await,
            }
            let began_at = now();
            let left = held.saturating_sub(began_at.saturating_duration_since(renewed_at));
            pause = RENEWED_AGAIN_AFTER;
            match timeout(left, holder.renew(known.take())).await {
                Ok(Ok(Renewal::Written(lease))) => {
                    (known, renewed_at, pause) = (Some(*lease), began_at, RENEWED_EVERY);
                }
                Ok(Ok(Renewal::Overtaken)) => {}
                Ok(Ok(Renewal::Lost)) => break,
                Ok(Err(error)) => tracing::warn!(error = %chain(&error), "the lease can not be renewed"),
                Err(_) => {
                    tracing::warn!("the lease was not renewed for {HELD_SECONDS} seconds: another one may have it");
                    break;
                }
            }
        }
        let _nobody_listens = tell.send(false);
    });
    standing.wait_for(task);
    Leadership::of(leads, standing, renewed)
}

impl<C: Clock> Holder<C> {
    async fn found(&self) -> Result<Option<Lease>, PortError> {
        let found = self.api.get_opt(LEASE).await;
        found.map_err(|error| port_error(format!("get lease {}/{LEASE}", self.namespace), error))
    }

    fn sentence(&self, lease: &Lease) -> String {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        format!("lease {}/{LEASE}, held by {holder}", self.namespace)
    }

    /// Whether nobody else holds it, as far as its own times say.
    fn may_have(&self, lease: &Lease) -> bool {
        let Some(spec) = &lease.spec else { return true };
        let is_free = spec.holder_identity.as_ref().is_none_or(|it| it.is_empty() || *it == self.identity);
        let duration = SignedDuration::try_from(duration_of(lease)).unwrap_or_default();
        let until = spec.renew_time.as_ref().and_then(|renewed| renewed.0.checked_add(duration).ok());
        is_free || until.is_none_or(|until| until < self.clock.now())
    }

    /// Writes that it is still ours; what nobody holds is. `known`: as it was written last, which saves asking for it.
    async fn renew(&self, known: Option<Lease>) -> Result<Renewal, PortError> {
        let found = match known {
            Some(known) => Some(known),
            None => self.found().await?,
        };
        if found.as_ref().is_some_and(|lease| !self.may_have(lease)) {
            return Ok(Renewal::Lost);
        }
        match self.write(found).await {
            Err(error) if error.kind == PortErrorKind::Conflict => Ok(Renewal::Overtaken),
            written => written.map(|lease| Renewal::Written(Box::new(lease))),
        }
    }

    /// Writes that this process holds it, unless it changed meanwhile.
    async fn write(&self, found: Option<Lease>) -> Result<Lease, PortError> {
        let operation = || format!("hold lease {}/{LEASE}", self.namespace);
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let now = MicroTime(self.clock.now());
        let is_new = found.is_none();
        let mut lease = found.unwrap_or_else(|| Lease {
            metadata: ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() },
            spec: None,
        });
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            spec.holder_identity = Some(self.identity.clone());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(1));
        }
        spec.renew_time = Some(now);
        spec.lease_duration_seconds = Some(HELD_SECONDS);
        let written = match is_new {
            true => self.api.create(&parameters, &lease).await,
            false => self.api.replace(LEASE, &parameters, &lease).await,
        };
        written.map_err(|error| port_error(operation(), error))
    }

    async fn give_back(&self) {
        let Ok(Some(mut lease)) = self.found().await else { return };
        let Some(spec) = lease.spec.as_mut().filter(|spec| spec.holder_identity.as_ref() == Some(&self.identity))
        else {
            return;
        };
        spec.holder_identity = None;
        if let Err(error) = self.api.replace(LEASE, &PostParams::default(), &lease).await {
            tracing::warn!(error = %error, "the lease could not be given back: it expires");
        }
    }
}
