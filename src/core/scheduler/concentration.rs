//! Pods of one workload that share one fate: those on one node, and those on spot nodes of one type in one zone, which EC2
//! takes back together. Beyond a part of its replicas each of them counts as money (`spec.penalties` of `cutlist.yaml`).

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::model::{HourlyPrice, IndexVec};
use crate::snapshot::Workload;
use crate::snapshot::nodes::Machine;
use crate::snapshot::pod::is_of_buffer;
use cutlist_api::keys;
use cutlist_api::settings::{ConcentrationPenalty, Packing};

use super::indices::ClassIndex;
use super::offerings::{OfferingSet, SlotIndex, Slots, TypeIndex, alone, bits};
use super::template::{Template, TemplateIndex};

pub use super::indices::{SpotPool, WorkloadIndex};

/// The penalties for concentration, for the workloads of a snapshot.
#[derive(Debug)]
pub struct ConcentrationPenalties {
    pub on_node: Free,
    pub in_spot_pool: Free,
    workloads: IndexVec<ClassIndex, Option<WorkloadIndex>>,
    zones: BTreeMap<String, usize>,
    instance_types: BTreeMap<String, usize>,
    templates: IndexVec<TemplateIndex, SpotOfTemplate>,
}

/// How many pods of each workload may be together for nothing, and what each further one counts.
#[derive(Debug)]
pub struct Free {
    pub pods: IndexVec<WorkloadIndex, u32>,
    pub per_pod: HourlyPrice,
}

/// Names of a template's types and slots as numbers.
#[derive(Debug)]
struct SpotOfTemplate {
    instance_types: IndexVec<TypeIndex, usize>,
    /// `None` where it is not spot.
    zones: IndexVec<SlotIndex, Option<usize>>,
    /// Slots that are spot.
    slots: Slots,
}

/// Whether pods of different workloads are different classes: only where concentration counts.
pub fn count(inputs: &Inputs<'_>) -> bool {
    let penalties = &inputs.policy.penalties;
    let counts = |penalty: &ConcentrationPenalty| per_pod(penalty) > HourlyPrice::ZERO;
    inputs.policy.packing == Packing::Cheapest
        && (counts(&penalties.blast_radius) || counts(&penalties.spot_concentration))
}

/// What is no price is found by lint; here it counts as nothing.
fn per_pod(penalty: &ConcentrationPenalty) -> HourlyPrice {
    HourlyPrice::from_dollars(penalty.per_pod_per_hour).unwrap_or_default()
}

impl Free {
    fn new(penalty: &ConcentrationPenalty, replicas: &IndexVec<WorkloadIndex, u32>) -> Self {
        let per_pod = per_pod(penalty);
        let free = |replicas: &u32| match per_pod {
            HourlyPrice::ZERO => u32::MAX,
            _ => penalty.free_pods(*replicas),
        };
        Self { pods: replicas.iter().map(free).collect(), per_pod }
    }

    /// How many of so many pods of a workload count.
    pub fn beyond(&self, workload: WorkloadIndex, pods: u32) -> u32 {
        pods.saturating_sub(self.pods[workload])
    }
}

impl ConcentrationPenalties {
    /// `None` where concentration counts nothing. O(pods + templates x types).
    pub fn new(
        inputs: &Inputs<'_>,
        machines: &[Machine<'_>],
        class_of_pod: &[Option<ClassIndex>],
        classes: usize,
        templates: &[Template],
    ) -> Option<Self> {
        if !count(inputs) {
            return None;
        }
        let mut indices: BTreeMap<Workload<'_>, WorkloadIndex> = BTreeMap::new();
        let mut replicas: IndexVec<WorkloadIndex, u32> = IndexVec::new();
        let mut workloads = IndexVec::repeat(None, classes);
        for (pod, class) in inputs.snapshot.pods.iter().zip(class_of_pod) {
            let Some(workload) = pod.workload().filter(|_| !is_of_buffer(pod)) else { continue };
            let workload = *indices.entry(workload).or_insert_with(|| replicas.push(0));
            if !pod.is_terminal() && !pod.is_terminating() {
                replicas[workload] += 1;
            }
            if let Some(class) = class {
                workloads[*class] = Some(workload);
            }
        }
        let penalties = &inputs.policy.penalties;
        let mut concentration = Self {
            on_node: Free::new(&penalties.blast_radius, &replicas),
            in_spot_pool: Free::new(&penalties.spot_concentration, &replicas),
            workloads,
            zones: BTreeMap::new(),
            instance_types: BTreeMap::new(),
            templates: IndexVec::new(),
        };
        for template in templates {
            let of_template = concentration.number(template);
            concentration.templates.push(of_template);
        }
        for machine in machines {
            number(&mut concentration.instance_types, machine.label(keys::INSTANCE_TYPE).unwrap_or_default());
            number(&mut concentration.zones, machine.label(keys::ZONE).unwrap_or_default());
        }
        Some(concentration)
    }

    fn number(&mut self, template: &Template) -> SpotOfTemplate {
        let types = template.offerings.types.iter();
        let instance_types = types.map(|entry| number(&mut self.instance_types, &entry.name)).collect();
        let mut slots = 0;
        let mut zones = IndexVec::new();
        for (position, slot) in template.offerings.slots.enumerated() {
            let is_spot = slot.capacity_type == keys::SPOT;
            slots |= if is_spot { alone(position) } else { 0 };
            zones.push(is_spot.then(|| number(&mut self.zones, &slot.zone)));
        }
        SpotOfTemplate { instance_types, zones, slots }
    }

    pub fn workload_of(&self, class: ClassIndex) -> Option<WorkloadIndex> {
        self.workloads[class]
    }

    /// Whether it matters in which spot pool a node is.
    pub fn looks_at_spot_pools(&self) -> bool {
        self.in_spot_pool.per_pod > HourlyPrice::ZERO
    }

    /// The pool that a type in a slot belongs to; `None` where it is not spot.
    pub fn spot_pool(&self, template: TemplateIndex, instance_type: TypeIndex, slot: SlotIndex) -> Option<SpotPool> {
        let of_template = &self.templates[template];
        let zone = (*of_template.zones.get(slot)?)?;
        Some(self.pool(*of_template.instance_types.get(instance_type)?, zone))
    }

    /// The pool of a node that exists.
    pub fn spot_pool_of_labels(&self, labels: &BTreeMap<String, String>) -> Option<SpotPool> {
        let is_spot = labels.get(keys::CAPACITY_TYPE).is_some_and(|it| it == keys::SPOT);
        if !is_spot || !self.looks_at_spot_pools() {
            return None;
        }
        let instance_type = self.instance_types.get(labels.get(keys::INSTANCE_TYPE)?)?;
        Some(self.pool(*instance_type, *self.zones.get(labels.get(keys::ZONE)?)?))
    }

    fn pool(&self, instance_type: usize, zone: usize) -> SpotPool {
        SpotPool::from(instance_type * self.zones.len().max(1) + zone)
    }

    /// The pool that an open node has settled on.
    pub fn settled(&self, template: TemplateIndex, set: &OfferingSet) -> Option<SpotPool> {
        if !self.looks_at_spot_pools() {
            return None;
        }
        let (mut types, mut slots) = (set.each_type(), bits(set.slots));
        match (types.next(), types.next(), slots.next(), slots.next()) {
            (Some(instance_type), None, Some(slot), None) => self.spot_pool(template, instance_type, slot),
            _ => None,
        }
    }

    /// Whether nothing but spot is left of a set.
    pub fn is_spot_only(&self, template: TemplateIndex, set: &OfferingSet) -> bool {
        set.slots & !self.templates[template].slots == 0
    }
}

fn number(numbers: &mut BTreeMap<String, usize>, name: &str) -> usize {
    let next = numbers.len();
    *numbers.entry(name.to_owned()).or_insert(next)
}
