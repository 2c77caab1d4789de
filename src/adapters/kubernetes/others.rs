//! Who else creates and removes nodes in this cluster, and which cluster it is.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::ports::{PortError, PortErrorKind};

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

/// One that holds its lease, in whatever namespace.
pub async fn other_leader(client: &Client, own: &Own, now: Timestamp) -> Result<Option<OtherEnforcer>, PortError> {
    if let Some(held) = held(client, KARPENTER_LEASE, now).await?.into_iter().next() {
        return Ok(Some(OtherEnforcer::Karpenter(held.sentence)));
    }
    let is_other = |held: &Held| {
        let began_later = own.since.is_some_and(|since| held.acquired_at.is_some_and(|acquired| acquired > since));
        own.namespace.as_ref() != Some(&held.namespace) && !began_later
    };
    let other = held(client, LEASE, now).await?.into_iter().find(is_other);
    Ok(other.map(|held| OtherEnforcer::Cutlist(held.sentence)))
}

/// The same, or one whose Deployment wants replicas, and so will hold it.
pub async fn other_enforcer(client: &Client, own: &Own, now: Timestamp) -> Result<Option<OtherEnforcer>, PortError> {
    match other_leader(client, own, now).await? {
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
async fn held(client: &Client, name: &str, now: Timestamp) -> Result<Vec<Held>, PortError> {
    let leases: Api<Lease> = Api::all(client.clone());
    let parameters = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = leases.list(&parameters).await.map_err(|error| port_error("list leases", error))?;
    let held =
        found.items.into_iter().filter(|lease| lease.metadata.name.as_deref() == Some(name)).filter_map(|lease| {
            let spec = lease.spec?;
            let seconds = i64::from(spec.lease_duration_seconds.unwrap_or(LEASE_SECONDS));
            let holder = spec.holder_identity.filter(|holder| !holder.is_empty())?;
            let until = spec.renew_time?.0.saturating_add(SignedDuration::from_secs(seconds)).ok()?;
            let namespace = lease.metadata.namespace.unwrap_or_default();
            let sentence = format!("lease {namespace}/{name}, held by {holder}");
            let acquired_at = spec.acquire_time.map(|time| time.0);
            (until > now).then_some(Held { namespace, acquired_at, sentence })
        });
    Ok(held.collect())
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
