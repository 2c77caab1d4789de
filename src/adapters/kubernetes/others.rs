//! Who else creates and removes nodes in this cluster, and which cluster it is.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::ports::{Clock, PortError, PortErrorKind};

use super::failure::port_error;
use super::leadership::LEASE;

const KARPENTER_LEASE: &str = "karpenter-leader-election";
/// What the charts of Karpenter and of Cutlist call their Deployments by.
const NAME_LABEL: &str = "app.kubernetes.io/name";
/// A lease that does not say for how long it is held.
const LEASE_SECONDS: i32 = 15;
/// There in every cluster, and made with it.
const OLDEST_NAMESPACE: &str = "kube-system";

/// Somebody who acts in this cluster, or is to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherEnforcer {
    Karpenter(String),
    Cutlist(String),
}

impl fmt::Display for OtherEnforcer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Karpenter(how) => write!(formatter, "Karpenter runs in this cluster: {how}"),
            Self::Cutlist(how) => write!(formatter, "another Cutlist acts in this cluster: {how}"),
        }
    }
}

/// Of which leases this process need not be afraid.
#[derive(Clone, Debug)]
pub struct Own {
    /// The namespace whose lease it stands for, where it stands for election: who else holds that is waited for, or followed.
    pub namespace: Option<String>,
    /// Since when it leads: who began later gives way.
    pub since: Option<Timestamp>,
}

/// Who held which lease at the last look, and when it had been renewed, by namespace and name. One that was renewed since is held, whatever
/// its times say: they are by the clock of another machine.
#[derive(Debug, Default)]
pub struct Renewals(BTreeMap<(String, String), (String, Timestamp)>);

impl Renewals {
    /// Whether it is another one than at the last look.
    fn see(&mut self, namespace: &str, name: &str, holder: &str, renewed: Timestamp) -> bool {
        let (key, seen) = ((namespace.to_owned(), name.to_owned()), (holder.to_owned(), renewed));
        let before = self.0.insert(key, seen.clone());
        before.is_some_and(|before| before != seen)
    }
}

/// One that holds its lease, in whatever namespace. `clock`: the API server's, which is nearer to the clocks of others than this machine's.
pub async fn other_leader(
    client: &Client,
    own: &Own,
    clock: &impl Clock,
    renewals: &mut Renewals,
) -> Result<Option<OtherEnforcer>, PortError> {
    let of_karpenter = leases(client, KARPENTER_LEASE).await?;
    if let Some(held) = held(of_karpenter, KARPENTER_LEASE, clock.now(), renewals).into_iter().next() {
        return Ok(Some(OtherEnforcer::Karpenter(held.sentence)));
    }
    let is_other = |held: &Held| {
        let began_later = own.since.is_some_and(|since| held.acquired_at.is_some_and(|acquired| acquired > since));
        own.namespace.as_ref() != Some(&held.namespace) && !began_later
    };
    let of_cutlist = leases(client, LEASE).await?;
    let other = held(of_cutlist, LEASE, clock.now(), renewals).into_iter().find(is_other);
    Ok(other.map(|held| OtherEnforcer::Cutlist(held.sentence)))
}

/// The same, or one whose Deployment wants replicas, and so will hold it.
pub async fn other_enforcer(
    client: &Client,
    own: &Own,
    clock: &impl Clock,
) -> Result<Option<OtherEnforcer>, PortError> {
    match other_leader(client, own, clock, &mut Renewals::default()).await? {
        Some(other) => Ok(Some(other)),
        None => wanted(client, own.namespace.as_deref().unwrap_or_default()).await,
    }
}

/// A lease that somebody holds.
struct Held {
    namespace: String,
    acquired_at: Option<Timestamp>,
    sentence: String,
}

/// Those of this name.
async fn leases(client: &Client, name: &str) -> Result<Vec<Lease>, PortError> {
    let leases: Api<Lease> = Api::all(client.clone());
    let parameters = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = leases.list(&parameters).await.map_err(|error| port_error("list leases", error))?;
    Ok(found.items.into_iter().filter(|lease| lease.metadata.name.as_deref() == Some(name)).collect())
}

fn held(leases: Vec<Lease>, name: &str, now: Timestamp, renewals: &mut Renewals) -> Vec<Held> {
    let held = leases.into_iter().filter_map(|lease| {
        let spec = lease.spec?;
        let seconds = i64::from(spec.lease_duration_seconds.unwrap_or(LEASE_SECONDS));
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty())?;
        let renewed = spec.renew_time?.0;
        let until = renewed.saturating_add(SignedDuration::from_secs(seconds)).ok()?;
        let namespace = lease.metadata.namespace.unwrap_or_default();
        let was_renewed = renewals.see(&namespace, name, &holder, renewed);
        let sentence = format!("lease {namespace}/{name}, held by {holder}");
        let acquired_at = spec.acquire_time.map(|time| time.0);
        (until > now || was_renewed).then_some(Held { namespace, acquired_at, sentence })
    });
    held.collect()
}

/// A Deployment that wants replicas of one who would hold a lease: it may be between two of its processes just now.
async fn wanted(client: &Client, own_namespace: &str) -> Result<Option<OtherEnforcer>, PortError> {
    let deployments: Api<Deployment> = Api::all(client.clone());
    let parameters = ListParams::default().labels(&format!("{NAME_LABEL} in (karpenter, cutlist)"));
    let found = match deployments.list(&parameters).await {
        Ok(found) => found.items,
        // Who may not ask goes by the leases.
        Err(error) => {
            let error = port_error("list deployments", error);
            return if error.kind == PortErrorKind::Denied { Ok(None) } else { Err(error) };
        }
    };
    Ok(found.iter().find_map(|deployment| other_of(deployment, own_namespace)))
}

fn other_of(deployment: &Deployment, own_namespace: &str) -> Option<OtherEnforcer> {
    let spec = deployment.spec.as_ref()?;
    let replicas = spec.replicas.unwrap_or(1);
    if replicas == 0 || deployment.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let how = format!("Deployment {namespace}/{name} wants {replicas} of its pods");
    let containers = spec.template.spec.iter().flat_map(|pod| &pod.containers);
    let mut arguments = containers.flat_map(|it| it.args.iter().flatten());
    match deployment.metadata.labels.as_ref()?.get(NAME_LABEL)?.as_str() {
        "karpenter" => Some(OtherEnforcer::Karpenter(how)),
        // Of one namespace all stand for one lease.
        "cutlist" if namespace != own_namespace && arguments.any(|it| it == "--mode=enforce") => {
            Some(OtherEnforcer::Cutlist(how))
        }
        _ => None,
    }
}

/// What tells one cluster from every other: the UID of its oldest namespace. A cluster that has none is no real one.
pub async fn cluster_identity(client: &Client) -> Result<String, PortError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_opt(OLDEST_NAMESPACE).await;
    let found = found.map_err(|error| port_error(format!("get namespace {OLDEST_NAMESPACE}"), error))?;
    Ok(found.and_then(|namespace| namespace.metadata.uid).unwrap_or_else(|| "default".to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The other machine's clock is an hour behind: its lease looks as if it were over.
    #[test]
    fn a_lease_that_is_renewed_is_held_whatever_its_times_say() {
        let mut renewals = Renewals::default();
        let mut is_held = |holder: &str, renewed: &str, now: &str| {
            let spec = json!({ "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 });
            let lease = json!({ "metadata": { "name": LEASE, "namespace": "elsewhere" }, "spec": spec });
            let leases = vec![serde_json::from_value(lease).unwrap()];
            !held(leases, LEASE, now.parse().unwrap(), &mut renewals).is_empty()
        };
        assert!(is_held("a", "2026-11-20T09:00:00.000000Z", "2026-11-20T09:00:10Z"), "by its times");
        assert!(!is_held("a", "2026-11-20T09:00:00.000000Z", "2026-11-20T10:00:00Z"), "nobody renews it");
        assert!(is_held("a", "2026-11-20T09:00:20.000000Z", "2026-11-20T10:00:20Z"), "somebody does");
        assert!(!is_held("a", "2026-11-20T09:00:20.000000Z", "2026-11-20T10:00:40Z"), "and does no more");
        assert!(!is_held("", "2026-11-20T09:00:40.000000Z", "2026-11-20T10:00:41Z"), "it was given back");
    }

    #[test]
    fn who_will_act_is_known_by_the_deployment() {
        let other = |name: &str, namespace: &str, replicas: u32, arguments: &[&str]| {
            let deployment = json!({
                "metadata": { "name": "it", "namespace": namespace, "labels": { NAME_LABEL: name } },
                "spec": { "replicas": replicas, "selector": {}, "template": { "spec": { "containers": [
                    { "name": "controller", "args": arguments },
                ] } } },
            });
            other_of(&serde_json::from_value(deployment).unwrap(), "cutlist").map(|other| other.to_string())
        };
        assert!(other("karpenter", "kube-system", 2, &[]).unwrap().contains("Deployment kube-system/it wants 2"));
        assert_eq!(other("karpenter", "kube-system", 0, &[]), None);
        assert!(other("cutlist", "elsewhere", 1, &["run", "--mode=enforce"]).unwrap().contains("another Cutlist"));
        assert_eq!(other("cutlist", "elsewhere", 1, &["run", "--mode=observe"]), None);
        assert_eq!(other("cutlist", "cutlist", 1, &["run", "--mode=enforce"]), None, "it stands for the same lease");
        assert_eq!(other("web", "shop", 1, &["--mode=enforce"]), None);
    }
}
