//! Taints that an instance registers with, so that no pod lands on it before it is known.

use serde_json::{Value, json};

use cutlist_api::keys;
use cutlist_api::node_pool::{Taint, TaintEffect};

/// Those of the claim and that of nodes which have not registered, in this order; the latter once.
pub(super) fn at_registration(taints: &[Taint]) -> Vec<Taint> {
    let unregistered = Taint {
        key: keys::UNREGISTERED_TAINT.to_owned(),
        value: None,
        effect: TaintEffect::NoExecute,
        time_added: None,
    };
    let is_it = |taint: &Taint| taint.key == unregistered.key && taint.effect == unregistered.effect;
    let missing = !taints.iter().any(is_it);
    taints.iter().cloned().chain(missing.then_some(unregistered)).collect()
}

/// `key=value:effect`, as the kubelet's flag has it; `key:effect` without a value.
pub(super) fn flag(taint: &Taint) -> String {
    let Taint { key, effect, .. } = taint;
    match value(taint) {
        "" => format!("{key}:{effect:?}"),
        value => format!("{key}={value}:{effect:?}"),
    }
}

/// `value:effect`, as Bottlerocket lists them below the key.
pub(super) fn below_key(taint: &Taint) -> String {
    format!("{}:{:?}", value(taint), taint.effect)
}

/// An entry of `registerWithTaints`.
pub(super) fn object(taint: &Taint) -> Value {
    let mut object = json!({ "key": taint.key, "effect": format!("{:?}", taint.effect) });
    if let (Value::Object(fields), false) = (&mut object, value(taint).is_empty()) {
        fields.insert("value".to_owned(), value(taint).into());
    }
    object
}

fn value(taint: &Taint) -> &str {
    taint.value.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: Option<&str>, effect: TaintEffect) -> Taint {
        Taint { key: key.to_owned(), value: value.map(str::to_owned), effect, time_added: None }
    }

    #[test]
    fn a_node_that_has_not_registered_takes_no_pods() {
        let flags = |taints: &[Taint]| at_registration(taints).iter().map(flag).collect::<Vec<_>>();
        assert_eq!(flags(&[]), ["karpenter.sh/unregistered:NoExecute"]);
        let own = [taint("a", Some("b"), TaintEffect::NoSchedule), taint("c", Some(""), TaintEffect::PreferNoSchedule)];
        assert_eq!(flags(&own), ["a=b:NoSchedule", "c:PreferNoSchedule", "karpenter.sh/unregistered:NoExecute"]);
        let there = [taint(keys::UNREGISTERED_TAINT, None, TaintEffect::NoExecute)];
        assert_eq!(flags(&there), ["karpenter.sh/unregistered:NoExecute"]);
        let other = [taint(keys::UNREGISTERED_TAINT, None, TaintEffect::NoSchedule)];
        assert_eq!(flags(&other).len(), 2, "with another effect it is another taint");
    }
}
