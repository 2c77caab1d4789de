//! CapacityBuffers: room that is kept free, as pods that nobody runs. Behaviour: reference, section 3.12.
//!
//! The pods are added to those of the snapshot before planning. They get places like all others, but last; they are never
//! bound or evicted, and a node that holds some is not empty.
//!
//! `replicas` and `percentage` together: the larger counts, as for the reference, although the text of its CRD speaks of
//! the smaller; who sets both has got used to the room that the larger one gives.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::inputs::Inputs;
use crate::model::Resources;
use crate::plan::{Note, NoteCode};
use crate::snapshot::pod::BUFFER_POD_PREFIX;
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::capacity_buffer::{ACTIVE_CAPACITY, CapacityBuffer, CapacityBufferSpec, ScalableReference};
use cutlist_api::keys;

use super::limit_range::LimitRanges;
use super::runtime_class::RuntimeClasses;

/// The most pods of one buffer that are planned for: a number with too many digits must not fill memory.
pub const PODS_MAX: usize = 10_000;
/// The most pods of all buffers together: whoever may make one may make hundreds, and each pod takes memory and a place.
pub const PODS_OF_ALL_MAX: usize = 20_000;

/// Why a buffer keeps no room, or less than it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferObstacle {
    Strategy(String),
    NoReference,
    BothReferences,
    NotInSnapshot { kind: String, name: String },
    Kind(ScalableReference),
    NoAmount,
    Template(String),
    TooMany { asked: usize, planned: usize },
}

impl fmt::Display for BufferObstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strategy(strategy) => {
                write!(
                    formatter,
                    "keeps no room: provisioningStrategy {strategy} is not supported, only {ACTIVE_CAPACITY}"
                )
            }
            Self::NoReference => formatter.write_str("keeps no room: it has neither podTemplateRef nor scalableRef"),
            Self::BothReferences => formatter.write_str("keeps no room: it has both podTemplateRef and scalableRef"),
            Self::NotInSnapshot { kind, name } => {
                write!(formatter, "keeps no room: {kind} {name} is not in the snapshot")
            }
            Self::Kind(reference) => write!(
                formatter,
                "keeps no room: scalableRef names a {}, and may name a Deployment, StatefulSet or ReplicaSet of group apps",
                reference.kind
            ),
            Self::NoAmount => formatter
                .write_str("keeps no room: neither replicas nor percentage nor limits on what its pods request"),
            Self::Template(problem) => write!(formatter, "keeps no room: its pods can not be read: {problem}"),
            Self::TooMany { asked, planned } => {
                write!(
                    formatter,
                    "keeps room for {planned} pods of the {asked} it asks for: {PODS_MAX} are the most that is planned for one, and \
                     {PODS_OF_ALL_MAX} for all together"
                )
            }
        }
    }
}

/// The pods of every buffer, in the order of namespace and name.
pub fn pods(inputs: &Inputs<'_>) -> Vec<Pod> {
    let resolved = resolved(inputs).into_iter();
    resolved.filter_map(|(buffer, outcome)| Some(virtual_pods(buffer, &outcome.ok()?))).flatten().collect()
}

/// What a reader should know of buffers that do not keep the room they ask for.
pub fn notes(inputs: &Inputs<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    for (buffer, outcome) in resolved(inputs) {
        let obstacle = match outcome {
            Ok(Resolved { asked, planned, .. }) if asked > planned => BufferObstacle::TooMany { asked, planned },
            Ok(_) => continue,
            Err(obstacle) => obstacle,
        };
        let (namespace, name) = key(buffer);
        let text = format!("CapacityBuffer {namespace}/{name} {obstacle}");
        let note = Note::new(NoteCode::CapacityBufferNotReady, text);
        notes.push(note.about("CapacityBuffer", &format!("{namespace}/{name}")));
    }
    notes
}

struct Resolved {
    pod: Pod,
    asked: usize,
    planned: usize,
}

fn resolved<'a>(inputs: &Inputs<'a>) -> Vec<(&'a CapacityBuffer, Result<Resolved, BufferObstacle>)> {
    if !inputs.policy.feature_gates.capacity_buffer {
        return Vec::new();
    }
    let mut buffers = in_force(inputs);
    buffers.sort_by_key(|buffer| key(buffer));
    let mut resolved: Vec<_> = buffers.into_iter().map(|buffer| (buffer, resolve(buffer, inputs))).collect();
    share_out(resolved.iter_mut().filter_map(|(_, outcome)| outcome.as_mut().ok()).collect());
    resolved
}

/// Where all together ask for too many, each gets as many as the others, as far as it asks for so many.
fn share_out(mut buffers: Vec<&mut Resolved>) {
    buffers.sort_by_key(|buffer| buffer.planned);
    let (mut left, mut to_come) = (PODS_OF_ALL_MAX, buffers.len());
    let mut buffers = buffers.into_iter().peekable();
    while let Some(buffer) = buffers.next_if(|buffer| buffer.planned <= left / to_come) {
        left -= buffer.planned;
        to_come -= 1;
    }
    // Those that are left ask for more than each can have.
    buffers.for_each(|buffer| buffer.planned = left / to_come);
}

/// Buffers of the definitions, and those of the cluster that somebody else applied.
fn in_force<'a>(inputs: &Inputs<'a>) -> Vec<&'a CapacityBuffer> {
    let defined: BTreeSet<(&str, &str)> = inputs.capacity_buffers.iter().map(key).collect();
    let others = inputs.snapshot.capacity_buffers.iter();
    let others = others.filter(|buffer| !defined.contains(&key(buffer)) && !is_applied_by_us(&buffer.metadata));
    inputs.capacity_buffers.iter().chain(others).collect()
}

fn is_applied_by_us(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(keys::MANAGED_BY)).is_some_and(|manager| manager == keys::FIELD_MANAGER)
}

fn key(buffer: &CapacityBuffer) -> (&str, &str) {
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or("default");
    (namespace, buffer.metadata.name.as_deref().unwrap_or_default())
}

fn resolve(buffer: &CapacityBuffer, inputs: &Inputs<'_>) -> Result<Resolved, BufferObstacle> {
    let snapshot = inputs.snapshot;
    let spec = &buffer.spec;
    if let Some(strategy) = spec.provisioning_strategy.as_deref().filter(|it| !it.is_empty() && *it != ACTIVE_CAPACITY)
    {
        return Err(BufferObstacle::Strategy(strategy.to_owned()));
    }
    let (namespace, _) = key(buffer);
    let (template, replicas) = match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(reference), None) => (pod_template(&reference.name, namespace, inputs)?, None),
        (None, Some(reference)) => {
            let (template, replicas) = scalable(reference, namespace, snapshot)?;
            (template, Some(replicas))
        }
        (None, None) => return Err(BufferObstacle::NoReference),
        (Some(_), Some(_)) => return Err(BufferObstacle::BothReferences),
    };
    let unreadable = |problem: String| BufferObstacle::Template(problem);
    let value = serde_json::to_value(template).map_err(|error| unreadable(error.to_string()))?;
    let mut pod: Pod = serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
    pod.metadata.namespace = namespace.to_owned();
    LimitRanges::new(snapshot).complete(&mut pod);
    RuntimeClasses::new(snapshot).complete(&mut pod);
    let requests = effective_requests(&pod).map_err(|error| unreadable(error.to_string()))?;
    let asked = asked(spec, replicas, &requests).ok_or(BufferObstacle::NoAmount)?;
    Ok(Resolved { pod, asked, planned: asked.min(PODS_MAX) })
}

/// That of the definitions goes before the cluster's.
fn pod_template<'a>(name: &str, namespace: &str, inputs: &Inputs<'a>) -> Result<&'a PodTemplateSpec, BufferObstacle> {
    let mut templates = inputs.pod_templates.iter().chain(&inputs.snapshot.pod_templates);
    let found = templates.find(|template| {
        template.metadata.name.as_deref() == Some(name)
            && template.metadata.namespace.as_deref().unwrap_or("default") == namespace
    });
    found
        .and_then(|template| template.template.as_ref())
        .ok_or_else(|| BufferObstacle::NotInSnapshot { kind: "PodTemplate".to_owned(), name: name.to_owned() })
}

/// The template of a workload, and how many replicas it has; one where it does not say.
fn scalable<'a>(
    reference: &ScalableReference,
    namespace: &str,
    snapshot: &'a Snapshot,
) -> Result<(&'a PodTemplateSpec, i32), BufferObstacle> {
    if reference.api_group != "apps" {
        return Err(BufferObstacle::Kind(reference.clone()));
    }
    let is_meant = |metadata: &ObjectMeta| {
        metadata.name.as_deref() == Some(&reference.name)
            && metadata.namespace.as_deref().unwrap_or("default") == namespace
    };
    let found = match reference.kind.as_str() {
        "Deployment" => {
            let found = snapshot.deployments.iter().find(|it| is_meant(&it.metadata));
            found.and_then(|it| it.spec.as_ref()).map(|spec| (&spec.template, spec.replicas))
        }
        "StatefulSet" => {
            let found = snapshot.stateful_sets.iter().find(|it| is_meant(&it.metadata));
            found.and_then(|it| it.spec.as_ref()).map(|spec| (&spec.template, spec.replicas))
        }
        "ReplicaSet" => {
            let found = snapshot.replica_sets.iter().find(|it| is_meant(&it.metadata));
            found.and_then(|it| it.spec.as_ref()).and_then(|spec| Some((spec.template.as_ref()?, spec.replicas)))
        }
        _ => return Err(BufferObstacle::Kind(reference.clone())),
    };
    found
        .map(|(template, replicas)| (template, replicas.unwrap_or(1)))
        .ok_or_else(|| BufferObstacle::NotInSnapshot { kind: reference.kind.clone(), name: reference.name.clone() })
}

/// How many pods the buffer asks for; `None` when nothing bounds their number.
fn asked(spec: &CapacityBufferSpec, replicas: Option<i32>, requests: &Resources) -> Option<usize> {
    let count = |number: i32| usize::try_from(number).unwrap_or(0);
    let share = spec.percentage.zip(replicas).map(|(percentage, replicas)| {
        let pods = (count(percentage) * count(replicas)).div_ceil(100);
        if percentage > 0 { pods.max(1) } else { 0 }
    });
    let wanted = spec.replicas.map(count).into_iter().chain(share).max();
    let limits = spec.limits.iter().flatten().filter_map(|(name, quantity)| {
        let limit = quantity.to_string().parse().map_or(0, |quantity| Resources::amount(name, quantity));
        let request = requests.get(name);
        (request > 0).then(|| usize::try_from(limit.max(0) / request).unwrap_or(usize::MAX))
    });
    match (wanted, limits.min()) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    }
}

fn virtual_pods(buffer: &CapacityBuffer, resolved: &Resolved) -> Vec<Pod> {
    let (_, name) = key(buffer);
    let uid = buffer.metadata.uid.as_deref().unwrap_or_default();
    let pod = |number: usize| {
        let mut pod = resolved.pod.clone();
        pod.metadata.name = format!("{BUFFER_POD_PREFIX}{name}:{number}");
        pod.metadata.uid = format!("{uid}-{number}");
        pod.metadata.owner_references.clear();
        pod.spec.node_name = None;
        pod.spec.volumes = Vec::new();
        pod.spec.scheduling_gates = Vec::new();
        pod.spec.priority = Some(i32::MIN);
        pod.spec.preemption_policy = Some("Never".to_owned());
        pod
    };
    (0..resolved.planned).map(pod).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;

    fn shares(asked: &[usize]) -> Vec<usize> {
        let resolved = |asked: &usize| Resolved { pod: pod("a"), asked: *asked, planned: (*asked).min(PODS_MAX) };
        let mut resolved: Vec<Resolved> = asked.iter().map(resolved).collect();
        share_out(resolved.iter_mut().collect());
        resolved.into_iter().map(|buffer| buffer.planned).collect()
    }

    #[test]
    fn many_buffers_share_what_is_planned_for_all() {
        assert_eq!(shares(&[10, 0, 20]), [10, 0, 20]);
        assert_eq!(shares(&[30_000, 9_000]), [10_000, 9_000]);
        assert_eq!(shares(&[30_000, 5, 10_000]), [9_997, 5, 9_997]);
        assert_eq!(shares(&[usize::MAX; 200]), [100; 200]);
        assert_eq!(shares(&[1; 50_000]), [0; 50_000]);
        assert_eq!(shares(&[]), [0; 0]);
    }
}
