//! What a kubelet does with a pod: start it, and end it.

use crate::core::snapshot::Pod;
use crate::core::snapshot::pod::PodCondition;

use super::names::{key_of, written};
use super::state::{Timer, World};

/// How long a container takes to start once its image is there, and an ordinary process to end after it was told to.
const SECONDS_TO_START: (u64, u64) = (1, 3);
const SECONDS_TO_END: (u64, u64) = (1, 3);
/// Grace of a pod that does not say how long it needs.
const DEFAULT_GRACE_SECONDS: i64 = 30;

impl World {
    /// A pod got a node: its containers start, as soon as the node is ready for them.
    pub(super) fn bound(&mut self, key: &str) {
        let now = written(self.now);
        let bound = self.pods.change(key, |pod| {
            pod.status.start_time = Some(now);
            set_condition(pod, "PodScheduled", "True", None);
            pod.metadata.uid.clone()
        });
        let Some(uid) = bound else { return };
        let key = key.to_owned();
        let delay = self.random("start", &uid).between(SECONDS_TO_START.0, SECONDS_TO_START.1);
        self.after_seconds(delay, Timer::PodStarts { key, uid });
        self.touch();
    }

    pub(super) fn pod_starts(&mut self, key: &str, uid: &str) {
        let starts = |pod: &Pod| {
            pod.metadata.uid == uid && !pod.is_terminating() && !pod.is_terminal() && !self.is_in_lost_zone(pod)
        };
        if !self.pods.get(key).is_some_and(starts) {
            return;
        }
        self.pods.change(key, |pod| {
            pod.status.phase = Some("Running".to_owned());
            set_condition(pod, "Ready", "True", None);
        });
        self.touch();
    }

    /// Deletes a pod with its own grace period, or with `grace_seconds` when given. An unbound pod goes at once.
    pub(super) fn delete_pod(&mut self, key: &str, grace_seconds: Option<i64>) {
        let Some(pod) = self.pods.get(key) else { return };
        let own = pod.spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
        let grace = grace_seconds.unwrap_or(own).max(0);
        if grace == 0 || pod.spec.node_name.is_none() || pod.is_terminal() {
            self.remove_pod(key);
            return;
        }
        let uid = pod.metadata.uid.clone();
        let needed = self.random("end", &uid).between(SECONDS_TO_END.0, SECONDS_TO_END.1);
        let delay = needed.min(u64::try_from(grace).unwrap_or(0));
        let now = written(self.now);
        if !pod.is_terminating() {
            self.pods.change(key, |pod| {
                pod.metadata.deletion_timestamp = Some(now);
                set_condition(pod, "Ready", "False", None);
            });
        }
        self.after_seconds(delay, Timer::PodEnds { key: key.to_owned(), uid });
        self.touch();
    }

    pub(super) fn pod_ends(&mut self, key: &str, uid: &str) {
        if self.pods.get(key).is_some_and(|pod| pod.metadata.uid == uid && !self.is_held(pod)) {
            self.remove_pod(key);
        }
    }

    pub(super) fn remove_pod(&mut self, key: &str) {
        let pod = self.pods.remove(key);
        self.nominations.remove(key);
        // The pod owns the claims of its ephemeral volumes.
        let volumes = pod.iter().flat_map(|pod| &pod.spec.volumes).filter(|volume| volume.ephemeral.is_some());
        for claim in volumes.map(|volume| format!("{key}-{}", volume.name)) {
            self.others.persistent_volume_claims.retain(|it| key_of(&it.metadata) != claim);
        }
        self.touch();
    }
}

/// Other schedulers act here as kube-scheduler does, and look at each pod at once.
pub(super) fn seen_by_its_scheduler(pod: &mut Pod) {
    if pod.other_scheduler().is_some() {
        set_condition(pod, "PodScheduled", "False", Some("Unschedulable"));
    }
}

/// Sets a condition of a pod; `true` when it was another one before.
pub(super) fn set_condition(pod: &mut Pod, type_: &str, status: &str, reason: Option<&str>) -> bool {
    let condition = PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        message: None,
    };
    match pod.status.conditions.iter_mut().find(|existing| existing.type_ == type_) {
        Some(existing) if *existing == condition => false,
        Some(existing) => {
            *existing = condition;
            true
        }
        None => {
            pod.status.conditions.push(condition);
            true
        }
    }
}
