//! Everything in a cluster once, without watching: for `plan`, `why` and `snapshot`.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::ListParams;

use crate::api::node_plan::NodePlan;
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::{ForEachKind, Stored, for_each_kind, is_in_every_cluster, place};
use crate::ports::{PortError, PortErrorKind};

use super::failure::port_error;
use super::watched::{PAGE, SAME_PAGE, all};

/// The labels of every node.
pub async fn node_labels(client: &Client) -> Result<Vec<BTreeMap<String, String>>, PortError> {
    let mut snapshot = Snapshot::default();
    read_kind::<Node>(client.clone()).await?(&mut snapshot);
    Ok(snapshot.nodes.iter().filter_map(|node| node.metadata.labels.clone()).collect())
}

/// The plans that were posted, by name.
pub async fn node_plans(client: &Client) -> Result<Vec<NodePlan>, PortError> {
    let mut snapshot = Snapshot::default();
    read_kind::<NodePlan>(client.clone()).await?(&mut snapshot);
    Ok(snapshot.node_plans.iter().cloned().collect())
}

/// What came of one kind: how to put it into a snapshot.
type Put = Box<dyn FnOnce(&mut Snapshot)>;
type Reading = Pin<Box<dyn Future<Output = Result<Put, PortError>>>>;

/// The cluster as a snapshot, and what the reader of a plan should know of it. Needs `list` on every kind that is installed.
/// The order is that of names, as in a snapshot file.
pub async fn read_once(client: &Client) -> Result<(Snapshot, Vec<String>), PortError> {
    struct Readings<'a>(&'a Client, Vec<(&'static str, &'static str, Reading)>);
    impl ForEachKind for Readings<'_> {
        fn kind<T: Stored>(&mut self) {
            self.1.push((T::API_VERSION, T::RESOURCE, Box::pin(read_kind::<T>(self.0.clone()))));
        }
    }
    let mut readings = Readings(client, Vec::new());
    for_each_kind(&mut readings);
    let (names, readings): (Vec<_>, Vec<_>) =
        readings.1.into_iter().map(|(version, resource, reading)| ((version, resource), reading)).unzip();
    let mut snapshot = Snapshot::default();
    let mut notes = Vec::new();
    for ((api_version, resource), outcome) in names.into_iter().zip(join_all(readings).await) {
        match outcome {
            Ok(put) => put(&mut snapshot),
            // A cluster without Karpenter or Cutlist lacks their kinds; an older one lacks some of Kubernetes.
            Err(error) if error.kind == PortErrorKind::NotFound && !is_in_every_cluster(api_version) => {
                if api_version == "karpenter.sh/v1" {
                    notes
                        .push(format!("the cluster has no {resource}.karpenter.sh: their definition is not installed"));
                }
            }
            Err(error) => return Err(error),
        }
    }
    snapshot.doubts.unreadable.sort();
    Ok((snapshot, notes))
}

async fn read_kind<T: Stored>(client: Client) -> Result<Put, PortError> {
    let api = all::<T>(&client);
    let mut objects: Vec<T> = Vec::new();
    let mut unreadable: Vec<Unreadable> = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&parameters).await.map_err(|error| port_error(format!("list {}", T::RESOURCE), error))?;
        for watched in page.items {
            match watched.object {
                Ok(object) => objects.push(object),
                Err(set_aside) => unreadable.push(*set_aside),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if parameters.continue_token.as_ref() == Some(&token) => {
                let operation = format!("list {}", T::RESOURCE);
                return Err(PortError { operation, kind: PortErrorKind::Temporary, source: Some(SAME_PAGE.into()) });
            }
            Some(token) => parameters.continue_token = Some(token),
            None => break,
        }
    }
    objects.sort_by(|one, two| place(one).cmp(&place(two)));
    Ok(Box::new(move |snapshot| {
        *T::all_mut(snapshot) = objects.into();
        snapshot.doubts.unreadable.extend(unreadable);
    }))
}
