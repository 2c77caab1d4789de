//! Nodes and NodeClaims that say of themselves that they are of one instance. An instance has one of each: which of them tells the truth
//! nobody here knows, and whatever ends for one of them would take the pods of the other.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use cutlist_api::keys;

use super::doubts::Doubled;
use super::objects::Snapshot;

/// Those of NodePools, sorted: what is of no pool is not looked after here. O(nodes + claims).
pub fn doubled(snapshot: &Snapshot) -> Vec<Doubled> {
    let nodes = snapshot.nodes.iter();
    let nodes = nodes.filter_map(|node| Some((node.spec.as_ref()?.provider_id.as_deref()?, &node.metadata)));
    let claims = snapshot.node_claims.iter();
    let claims = claims.filter_map(|claim| Some((claim.status.as_ref()?.provider_id.as_deref()?, &claim.metadata)));
    let mut found = BTreeMap::new();
    collect("Node", nodes.clone(), &mut found);
    collect("NodeClaim", claims.clone(), &mut found);
    if found.is_empty() {
        return Vec::new();
    }
    // Whose they are says whatever is of that instance: of two nodes one may have no label.
    let mut of_instance: HashMap<&str, (BTreeSet<String>, BTreeSet<String>)> = HashMap::new();
    for (_, id) in found.keys() {
        of_instance.entry(id).or_default();
    }
    let all = nodes.map(|(id, node)| (id, node, true)).chain(claims.map(|(id, claim)| (id, claim, false)));
    for (id, metadata, is_node) in all {
        let Some((node_pools, nodes)) = of_instance.get_mut(id) else { continue };
        let pool = metadata.labels.as_ref().and_then(|labels| labels.get(keys::NODE_POOL));
        node_pools.extend(pool.cloned());
        nodes.extend(metadata.name.clone().filter(|_| is_node));
    }
    for ((_, id), doubled) in &mut found {
        let (node_pools, nodes) = of_instance.get(id).cloned().unwrap_or_default();
        (doubled.node_pools, doubled.nodes) = (node_pools, nodes);
    }
    found.into_values().filter(|doubled| !doubled.node_pools.is_empty()).collect()
}

fn collect<'s>(
    kind: &'static str,
    objects: impl Iterator<Item = (&'s str, &'s ObjectMeta)>,
    found: &mut BTreeMap<(&'static str, &'s str), Doubled>,
) {
    let mut first: HashMap<&str, &ObjectMeta> = HashMap::new();
    let name = |metadata: &ObjectMeta| metadata.name.clone().unwrap_or_default();
    for (id, metadata) in objects.filter(|(id, _)| !id.is_empty()) {
        let Some(first) = first.insert(id, metadata) else { continue };
        let doubled = match found.entry((kind, id)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Doubled { kind, provider_id: id.to_owned(), ..Doubled::default() }),
        };
        doubled.names.extend([name(first), name(metadata)]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::snapshot::Node;
    use crate::snapshot::doubts::Subject;
    use cutlist_api::node_claim::NodeClaim;

    fn node(name: &str, pool: Option<&str>, id: Option<&str>) -> Node {
        let labels = pool.map_or(Value::Null, |pool| json!({ "karpenter.sh/nodepool": pool }));
        let node = json!({ "metadata": { "name": name, "labels": labels }, "spec": { "providerID": id } });
        serde_json::from_value(node).unwrap()
    }

    fn claim(name: &str, pool: &str, id: &str) -> NodeClaim {
        let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
        let mut claim: NodeClaim = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": pool } },
            "spec": { "nodeClassRef": class, "requirements": [] },
        }))
        .unwrap();
        claim.status.get_or_insert_default().provider_id = Some(id.to_owned());
        claim
    }

    fn found(nodes: Vec<Node>, claims: Vec<NodeClaim>) -> Vec<Doubled> {
        doubled(&Snapshot { nodes: nodes.into(), node_claims: claims.into(), ..Snapshot::default() })
    }

    #[test]
    fn two_of_one_instance_hold_the_pools_of_both_and_nothing_else() {
        let held = |found: &[Doubled]| {
            let subject = |node, node_pool| Subject { node: Some(node), node_pool, node_class: "default" };
            let subjects = [subject("x", "a"), subject("y", "b"), subject("z", "c"), subject("n2", "c")];
            subjects.map(|subject| found.iter().any(|doubled| doubled.concerns(&subject)))
        };
        let two_nodes = found(
            vec![node("n1", Some("a"), Some("i-1")), node("n2", None, Some("i-1")), node("n3", Some("c"), Some("i-3"))],
            vec![claim("c1", "a", "i-1")],
        );
        assert_eq!(
            two_nodes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["Nodes n1, n2 have one provider ID, i-1"]
        );
        assert_eq!(held(&two_nodes), [true, false, false, true]);
        let two_claims =
            found(vec![node("n1", None, Some("i-1"))], vec![claim("c1", "a", "i-1"), claim("c2", "b", "i-1")]);
        assert_eq!(
            two_claims.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["NodeClaims c1, c2 have one provider ID, i-1"]
        );
        assert_eq!(held(&two_claims), [true, true, false, false]);
    }

    #[test]
    fn what_is_of_no_pool_or_of_no_instance_is_nobodys_business() {
        assert_eq!(found(vec![node("n1", None, Some("i-1")), node("n2", None, Some("i-1"))], Vec::new()), []);
        assert_eq!(found(vec![node("n1", Some("a"), Some("")), node("n2", Some("a"), Some(""))], Vec::new()), []);
        assert_eq!(found(vec![node("n1", Some("a"), None), node("n2", Some("a"), None)], Vec::new()), []);
        assert_eq!(found(vec![node("n1", Some("a"), Some("i-1"))], vec![claim("c1", "a", "i-1")]), []);
    }

    #[test]
    fn of_many_some_are_named() {
        let nodes = (0..9).map(|number| node(&format!("n{number}"), Some("a"), Some("i-1"))).collect();
        let text = found(nodes, Vec::new())[0].to_string();
        assert_eq!(text, "Nodes n0, n1, n2, n3, n4 and 4 more have one provider ID, i-1");
    }
}
