//! One more look before something ends, at the API server itself: what watches show may be old without anybody knowing.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use tokio::sync::OnceCell;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::core::lifecycle::DeletionCause;
use crate::core::lifecycle::drain;
use crate::core::lifecycle::termination::deadline;
use crate::core::snapshot::Pod;
use crate::ports::{Cluster, PortError, PortErrorKind};

use super::view::{name_of, node_name, provider_id};

/// All nodes as the API server had them in this look: many claims end at a time, and a large cluster is not listed for each of them.
#[derive(Debug, Default)]
pub struct NodesNow(OnceCell<Vec<Node>>);

/// Fails with `Conflict` while pods are on the node that its drain has to wait for, and where it can not be told which node that is. The
/// node is the one that has the provider ID, whatever the claim says of it: anybody who may write a claim's status may write another name.
pub async fn is_drained<K: Cluster>(
    cluster: &K,
    nodes: &NodesNow,
    claim: &NodeClaim,
    node: Option<&Node>,
    now: jiff::Timestamp,
) -> Result<(), PortError> {
    let nodes = nodes.0.get_or_try_init(|| cluster.nodes_now()).await?;
    let names = if nodes.iter().any(|node| is_its(node, claim)) {
        names(nodes, claim, node)?
    } else {
        // It may have joined since.
        names(&cluster.nodes_now().await?, claim, node)?
    };
    for name in names {
        let pods = cluster.pods_on_now(&name).await?;
        let pods: Vec<&Pod> = pods.iter().collect();
        let waiting = drain::next(&pods, deadline(claim), now).waiting;
        if waiting > 0 {
            return Err(overtaken(format!("end the instance of node {name}: {waiting} pods run there")));
        }
    }
    Ok(())
}

/// Where pods of the claim's instance can be: on the node that has its provider ID; and by the name that its node had, while nothing says
/// that another instance has it, as pods may outlast their Node.
fn names(nodes: &[Node], claim: &NodeClaim, seen: Option<&Node>) -> Result<BTreeSet<String>, PortError> {
    let mut its = nodes.iter().filter(|node| is_its(node, claim)).map(node_name);
    let found = its.next();
    if let (Some(one), Some(other)) = (found, its.next()) {
        let because = format!("nodes {one} and {other} have its provider ID");
        return Err(overtaken(format!("end the instance of nodeclaim {}: {because}", name_of(claim))));
    }
    let is_anothers = |name: &str| {
        let named = nodes.iter().find(|node| node_name(node) == name);
        named.is_some_and(|node| !id_of(node).is_empty() && !is_its(node, claim))
    };
    let told = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
    let told = seen.map(node_name).into_iter().chain(told).filter(|name| !name.is_empty() && !is_anothers(name));
    Ok(found.into_iter().chain(told).map(str::to_owned).collect())
}

/// Fails with `Conflict` where a claim is given up for what is not so. Where a watch shows no node, all claims are asked about: as long as
/// the nodes of this look have its, no other list is asked for.
pub async fn is_given_up<K: Cluster>(
    cluster: &K,
    nodes: &NodesNow,
    claim: &NodeClaim,
    node: Option<&Node>,
    cause: DeletionCause,
) -> Result<(), PortError> {
    // One that has none by now gets none any more, if it is asked for the end of it.
    if cause == DeletionCause::LaunchTimeout {
        return Ok(());
    }
    let is_so = |nodes: &[Node]| {
        let mut its = nodes.iter().filter(|node| is_its(node, claim));
        match cause {
            DeletionCause::NodeDeleted => its.all(|node| node.metadata.deletion_timestamp.is_some()),
            _ => node.is_some() || its.next().is_none(),
        }
    };
    let of_this_look = nodes.0.get_or_try_init(|| cluster.nodes_now()).await?;
    if is_so(of_this_look) && is_so(&cluster.nodes_now().await?) {
        return Ok(());
    }
    Err(overtaken(format!("give up nodeclaim {}: its node is there", name_of(claim))))
}

/// What of a claim that is to go is not as it is seen. `may_be_kept`: whether somebody's word keeps it.
pub fn claim_unlike(seen: &NodeClaim, found: Option<&NodeClaim>, may_be_kept: bool) -> Option<&'static str> {
    let Some(found) = found else { return Some("its NodeClaim is gone") };
    if found.metadata.uid != seen.metadata.uid {
        return Some("another NodeClaim has the name of its own");
    }
    if found.metadata.deletion_timestamp.is_some() && seen.metadata.deletion_timestamp.is_none() {
        return Some("its NodeClaim is being removed already");
    }
    if provider_id(found) != provider_id(seen) {
        return Some("its NodeClaim has another instance");
    }
    let is_kept_otherwise = found.annotation(keys::DO_NOT_DISRUPT) != seen.annotation(keys::DO_NOT_DISRUPT);
    (may_be_kept && is_kept_otherwise).then_some("somebody changed whether its NodeClaim may be disrupted")
}

/// The same of a node.
pub fn node_unlike(seen: &Node, found: Option<&Node>, may_be_kept: bool) -> Option<&'static str> {
    let Some(found) = found else { return Some("it is gone") };
    if found.metadata.uid != seen.metadata.uid || id_of(found) != id_of(seen) {
        return Some("another node has its name");
    }
    let kept = |node: &Node| node.metadata.annotations.as_ref()?.get(keys::DO_NOT_DISRUPT).cloned();
    (may_be_kept && kept(found) != kept(seen)).then_some("somebody changed whether it may be disrupted")
}

fn is_its(node: &Node, claim: &NodeClaim) -> bool {
    provider_id(claim).is_some_and(|id| !id.is_empty() && id == id_of(node))
}

/// Empty where it has none.
fn id_of(node: &Node) -> &str {
    node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default()
}

/// What was decided by is not so any more: the next look decides anew.
fn overtaken(operation: String) -> PortError {
    PortError { operation, kind: PortErrorKind::Conflict, source: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, id: &str) -> Node {
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "providerID": id } })).unwrap()
    }

    fn claim(id: &str, node: &str) -> NodeClaim {
        let mut claim: NodeClaim = serde_json::from_value(json!({
            "metadata": { "name": "c" },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [] },
        }))
        .unwrap();
        let status = claim.status.get_or_insert_default();
        status.provider_id = Some(id.to_owned());
        status.node_name = Some(node.to_owned());
        claim
    }

    #[test]
    fn pods_are_looked_for_where_the_instance_is_and_not_only_where_the_claim_says() {
        let nodes = [node("a", "i-a"), node("b", "i-b"), node("c", "i-c"), node("d", "i-c"), node("e", "")];
        let found = |claim: &NodeClaim, seen: Option<&Node>| {
            names(&nodes, claim, seen).map(|names| Vec::from_iter(names).join(" ")).map_err(|error| error.kind)
        };
        assert_eq!(found(&claim("i-a", "a"), None), Ok("a".to_owned()));
        assert_eq!(found(&claim("i-a", "b"), None), Ok("a".to_owned()), "the name of another node");
        assert_eq!(found(&claim("i-a", "gone"), None), Ok("a gone".to_owned()), "the name of none");
        assert_eq!(found(&claim("i-x", "e"), None), Ok("e".to_owned()), "one that does not say whose it is");
        assert_eq!(found(&claim("i-x", "b"), Some(&node("old", "i-x"))), Ok("old".to_owned()));
        assert_eq!(found(&claim("i-c", "c"), None), Err(PortErrorKind::Conflict), "one of two");
        assert_eq!(found(&claim("", ""), None), Ok(String::new()));
    }
}
