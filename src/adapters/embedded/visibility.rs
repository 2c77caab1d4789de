//! Observations that do not show what is: a watch that broke, with or without anybody knowing, and objects that can not be read.

use serde_json::Value;

use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubts::{KindInDoubt, Unreadable};
use crate::core::snapshot::kinds::{ForEachKind, Stored, for_each_kind};

use crate::ports::{Instance, PortError, PortErrorKind};

use super::state::{Frozen, Visibility, World};

impl World {
    /// From now on observations show these kinds (such as `pods`) as they are now, whatever becomes of them. `why`: what is known of
    /// the reason; `None`: nobody knows that anything is wrong.
    pub fn freeze(&mut self, resources: &[&str], why: Option<&str>) {
        let resources = resources.iter().map(|resource| (*resource).to_owned()).collect();
        let (seen, at, why) = (self.snapshot(), self.now, why.map(str::to_owned));
        self.visibility.frozen = Some(Frozen { resources, seen, at, why });
        self.touch();
    }

    /// From now on observations show nothing of these kinds, and nobody knows that there is something.
    pub fn lose(&mut self, resources: &[&str]) {
        let resources = resources.iter().map(|resource| (*resource).to_owned()).collect();
        self.visibility.frozen = Some(Frozen { resources, seen: Snapshot::default(), at: self.now, why: None });
        self.touch();
    }

    /// All is seen as it is again.
    pub fn see_all(&mut self) {
        self.visibility = Visibility::default();
        self.touch();
    }

    /// From now on there is an object that can not be read, beside those that can.
    pub fn set_aside(&mut self, object: Unreadable) {
        self.visibility.unreadable.push(object);
        self.touch();
    }

    /// What is written of a plan that can not be read: its phase.
    pub(super) fn enter_unreadable(&mut self, name: &str, patch: &Value) -> Result<(), PortError> {
        let mut unreadable = self.visibility.unreadable.iter_mut();
        let Some(plan) = unreadable.find(|object| object.is_plan() && object.name == name) else {
            let operation = format!("write the status of NodePlan {name}");
            return Err(PortError { operation, kind: PortErrorKind::NotFound, source: None });
        };
        patch.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default().clone_into(&mut plan.phase);
        self.touch();
        Ok(())
    }
}

impl World {
    /// The NodeClaims are gone from the API, as after a backup from before them was restored; nodes, pods and instances live on.
    pub fn forget_node_claims(&mut self) {
        for name in self.node_claims.shared().iter().filter_map(|claim| claim.metadata.name.clone()).collect::<Vec<_>>()
        {
            self.node_claims.remove(&name);
        }
        self.touch();
    }

    /// One of them is gone from the API.
    pub fn forget_node_claim(&mut self, name: &str) {
        self.node_claims.remove(name);
        self.touch();
    }

    /// The nodes are gone from the API, too, with their pods.
    pub fn forget_nodes(&mut self) {
        for name in self.nodes.shared().iter().filter_map(|node| node.metadata.name.clone()).collect::<Vec<_>>() {
            self.nodes.remove(&name);
        }
        self.touch_nodes();
    }

    /// The NodePools are gone from the API.
    pub fn forget_node_pools(&mut self) {
        self.node_pools.clear();
        self.touch();
    }

    /// The cloud says of no instance that it is there, although they run; `false`: it does again.
    pub fn hide_instances(&mut self, are_hidden: bool) {
        self.visibility.instances_hidden = are_hidden;
        self.touch();
    }

    /// Instances as the cloud tells of them.
    pub(super) fn instances_told(&self) -> Vec<Instance> {
        if self.visibility.instances_hidden { Vec::new() } else { self.instances() }
    }
}

impl Visibility {
    /// The cluster as it is, made what is seen of it.
    pub(super) fn blur(&self, snapshot: &mut Snapshot) {
        struct Restore<'a>(&'a Frozen, &'a mut Snapshot);
        impl ForEachKind for Restore<'_> {
            fn kind<T: Stored>(&mut self) {
                if self.0.resources.contains(T::RESOURCE) {
                    T::all(&self.0.seen).clone_into(T::all_mut(self.1));
                }
            }
        }
        snapshot.doubts.unreadable.clone_from(&self.unreadable);
        let Some(frozen) = &self.frozen else { return };
        for_each_kind(&mut Restore(frozen, snapshot));
        if let Some(why) = &frozen.why {
            let kind = KindInDoubt { whole_at: frozen.at, why: why.clone() };
            snapshot.doubts.kinds = frozen.resources.iter().map(|resource| (resource.clone(), kind.clone())).collect();
        }
    }
}
