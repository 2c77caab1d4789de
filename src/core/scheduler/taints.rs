//! Taints and tolerations. Source: `k8s.io/api/core/v1` (Toleration.ToleratesTaint).

use k8s_openapi::api::core::v1::{Taint as NodeTaint, Toleration};

use cutlist_api::keys;
use cutlist_api::node_pool::{Taint, TaintEffect};

/// A taint of a NodePool or a Node, in the form the scheduler compares.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectiveTaint {
    pub key: String,
    pub value: String,
    pub effect: TaintEffect,
}

impl From<&Taint> for EffectiveTaint {
    fn from(taint: &Taint) -> Self {
        Self { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect: taint.effect }
    }
}

impl EffectiveTaint {
    /// `None` when the effect is not one Kubernetes knows.
    pub fn from_node(taint: &NodeTaint) -> Option<Self> {
        let effect = TaintEffect::of_name(&taint.effect)?;
        Some(Self { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect })
    }

    /// Taints that a node carries only while it starts; on a managed node that has not initialized they repel nobody.
    pub fn is_ephemeral(&self) -> bool {
        matches!(
            (self.key.as_str(), self.effect),
            ("node.kubernetes.io/not-ready" | keys::UNREGISTERED_TAINT, TaintEffect::NoExecute)
                | ("node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable", TaintEffect::NoSchedule)
        ) || (self.key == "node.cloudprovider.kubernetes.io/uninitialized" && self.effect == TaintEffect::NoSchedule)
            || self.key.starts_with("readiness.k8s.io/")
    }
}

impl std::fmt::Display for EffectiveTaint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(formatter, "{}{equals}{}:{:?}", self.key, self.value, self.effect)
    }
}

/// The first taint that keeps the pod away. `PreferNoSchedule` does so only while `soft_repels` is set: the reference
/// first treats it as a taint like any other, and tolerates it when nothing else is found.
pub fn repelling<'a>(
    taints: &'a [EffectiveTaint],
    tolerations: &[Toleration],
    soft_repels: bool,
) -> Option<&'a EffectiveTaint> {
    taints.iter().find(|taint| {
        (soft_repels || taint.effect != TaintEffect::PreferNoSchedule)
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint))
    })
}

fn tolerates(toleration: &Toleration, taint: &EffectiveTaint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != format!("{:?}", taint.effect) {
        return false;
    }
    if !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => !key.is_empty() && toleration.value.as_deref().unwrap_or_default() == taint.value,
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: Option<&str>, operator: Option<&str>, value: Option<&str>, effect: Option<&str>) -> Toleration {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Toleration {
            key: owned(key),
            operator: owned(operator),
            value: owned(value),
            effect: owned(effect),
            toleration_seconds: None,
        }
    }

    #[test]
    fn tolerations_follow_kubernetes() {
        let taint = EffectiveTaint { key: "gpu".into(), value: "true".into(), effect: TaintEffect::NoSchedule };
        let tolerated = |toleration: Toleration| repelling(std::slice::from_ref(&taint), &[toleration], true).is_none();
        assert!(tolerated(toleration(Some("gpu"), None, Some("true"), Some("NoSchedule"))));
        assert!(tolerated(toleration(Some("gpu"), Some("Exists"), None, None)));
        assert!(tolerated(toleration(None, Some("Exists"), None, None)));
        assert!(!tolerated(toleration(None, None, Some("true"), None)), "an empty key needs Exists");
        assert!(!tolerated(toleration(Some("gpu"), Some("Equal"), Some("false"), None)));
        assert!(!tolerated(toleration(Some("gpu"), Some("Exists"), None, Some("NoExecute"))));
    }

    #[test]
    fn soft_taints_repel_only_at_first() {
        let taint = EffectiveTaint { key: "soft".into(), value: String::new(), effect: TaintEffect::PreferNoSchedule };
        assert!(repelling(std::slice::from_ref(&taint), &[], true).is_some());
        assert!(repelling(std::slice::from_ref(&taint), &[], false).is_none());
    }
}
