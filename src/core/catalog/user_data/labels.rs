//! Labels that an instance registers with.

use std::collections::BTreeMap;

use cutlist_api::keys;

use super::Bootstrap;

/// The API server lets no kubelet label its node in these domains, or in those below them, and one that tries does not start.
/// The node gets such labels when it is registered. Source: reference, section 6.3; the admission plugin NodeRestriction.
const RESTRICTED_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// Whether an instance may give its node this label itself.
pub fn registers_itself_with(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return true };
    !RESTRICTED_DOMAINS.iter().any(|restricted| {
        domain.strip_suffix(restricted).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// The labels that the kubelet is started with. It starts with its taints too, so that nobody has to put them on the node.
pub(super) fn of_node(bootstrap: &Bootstrap) -> BTreeMap<&str, &str> {
    let own = bootstrap.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut labels: BTreeMap<&str, &str> = own.filter(|(key, _)| registers_itself_with(key)).collect();
    labels.insert(keys::DO_NOT_SYNC_TAINTS, "true");
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_kubernetes_are_for_others_to_put_on() {
        for label in
            ["team", "example.com/team", "karpenter.sh/nodepool", "notkubernetes.io/a", "kubernetes.io.example.com/a"]
        {
            assert!(registers_itself_with(label), "{label}");
        }
        for label in [
            "kubernetes.io/arch",
            "node.kubernetes.io/instance-type",
            "topology.kubernetes.io/zone",
            "node-restriction.kubernetes.io/fips",
            "node-role.kubernetes.io/worker",
            "k8s.io/a",
            "topology.k8s.aws.k8s.io/a",
        ] {
            assert!(!registers_itself_with(label), "{label}");
        }
        assert!(registers_itself_with("topology.k8s.aws/zone-id"), "of AWS, and not of Kubernetes");
    }
}
