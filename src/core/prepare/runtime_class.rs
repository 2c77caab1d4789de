//! What RuntimeClasses add to pods that are not made yet: room beside the containers, and on which nodes they may run. Pods that exist were
//! completed when they were admitted.
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/runtimeclass`.

use std::collections::BTreeMap;

use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::model::shared::Shared;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::node_pool::IntOrString;

/// By name, the classes; of one that is not in the snapshot, what its pods were admitted with.
pub struct RuntimeClasses<'s> {
    classes: BTreeMap<&'s str, &'s RuntimeClass>,
    overheads: BTreeMap<&'s str, &'s Shared<BTreeMap<String, IntOrString>>>,
}

impl<'s> RuntimeClasses<'s> {
    /// O(classes + pods).
    pub fn new(snapshot: &'s Snapshot) -> Self {
        let classes = snapshot.runtime_classes.iter();
        let admitted = snapshot.pods.iter().filter(|pod| !pod.spec.overhead.is_empty());
        Self {
            classes: classes.filter_map(|class| Some((class.metadata.name.as_deref()?, class))).collect(),
            overheads: admitted
                .filter_map(|pod| Some((pod.spec.runtime_class_name.as_deref()?, &pod.spec.overhead)))
                .collect(),
        }
    }

    /// Whether there is a class by this name.
    pub fn knows(&self, name: &str) -> bool {
        self.classes.contains_key(name)
    }

    /// Gives a pod made from a template what its class gives it.
    pub fn complete(&self, pod: &mut Pod) {
        let Some(name) = pod.spec.runtime_class_name.as_deref() else { return };
        match self.classes.get(name) {
            Some(class) => complete(class, pod),
            None if pod.spec.overhead.is_empty() => {
                pod.spec.overhead = self.overheads.get(name).map(|overhead| (*overhead).clone()).unwrap_or_default();
            }
            None => {}
        }
    }
}

fn complete(class: &RuntimeClass, pod: &mut Pod) {
    let fixed = class.overhead.iter().filter_map(|overhead| overhead.pod_fixed.as_ref()).flatten();
    if pod.spec.overhead.is_empty() {
        let text = |quantity: &Quantity| IntOrString::String(quantity.0.clone());
        let overhead: BTreeMap<String, IntOrString> = fixed.map(|(name, it)| (name.clone(), text(it))).collect();
        pod.spec.overhead = overhead.into();
    }
    let Some(scheduling) = &class.scheduling else { return };
    for (key, value) in scheduling.node_selector.iter().flatten() {
        pod.spec.node_selector.entry(key.clone()).or_insert_with(|| value.clone());
    }
    for toleration in scheduling.tolerations.iter().flatten() {
        if !pod.spec.tolerations.contains(toleration) {
            pod.spec.tolerations.push(toleration.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, Merge, object, pod};

    fn completed(pod: Pod) -> Pod {
        let class = json!({
            "metadata": { "name": "kata" }, "handler": "kata", "overhead": { "podFixed": { "cpu": "500m" } },
            "scheduling": {
                "nodeSelector": { "sandbox": "kata", "team": "a" }, "tolerations": [{ "key": "sandbox", "operator": "Exists" }],
            },
        });
        let admitted = json!({ "spec": { "runtimeClassName": "gvisor", "overhead": { "cpu": "1" } } });
        let snapshot = Snapshot {
            runtime_classes: vec![object(class)].into(),
            pods: vec![crate::testing::pod("admitted").merge(admitted)].into(),
            ..Snapshot::default()
        };
        let mut pod = pod;
        RuntimeClasses::new(&snapshot).complete(&mut pod);
        pod
    }

    fn of_class(name: &str) -> Pod {
        pod("web").node_selector("team", "b").merge(json!({ "spec": { "runtimeClassName": name } }))
    }

    #[test]
    fn a_class_adds_room_and_where_its_pods_may_run() {
        let spec = completed(of_class("kata")).spec;
        assert_eq!(json!(spec.overhead), json!({ "cpu": "500m" }));
        assert_eq!(json!(spec.node_selector), json!({ "sandbox": "kata", "team": "b" }));
        assert_eq!(json!(spec.tolerations), json!([{ "key": "sandbox", "operator": "Exists" }]));
    }

    #[test]
    fn of_a_class_that_is_not_there_its_pods_say_what_it_adds() {
        assert_eq!(json!(completed(of_class("gvisor")).spec.overhead), json!({ "cpu": "1" }));
        assert_eq!(completed(of_class("none")), of_class("none"));
        assert_eq!(completed(pod("web")), pod("web"));
    }
}
