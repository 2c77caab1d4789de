//! The way from a snapshot and definitions to a problem.

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::model::IndexVec;
use crate::offer::Offer;
use crate::scheduler::attachable::Attachable;
use crate::scheduler::class::ClassBuilder;
use crate::scheduler::concentration::{self, ConcentrationPenalties};
use crate::scheduler::daemons::daemons;
use crate::scheduler::domains::{intern_domains, intern_values_asked_for};
use crate::scheduler::meeting::Meetings;
use crate::scheduler::pod_table::PodTable;
use crate::scheduler::reach::Reach;
use crate::scheduler::spreading::Spreading;
use crate::scheduler::taints::EffectiveTaint;
use crate::scheduler::vectors::Dimensions;
use crate::snapshot::nodes::machines;
use cutlist_api::node_pool::TaintEffect;
use cutlist_api::settings::DEFAULT_SEARCH_WORK;

use super::Problem;
use super::meetings::meetings;
use super::nodes::taints_of;
use super::quotas::quotas;
use super::spreads::spreading;
use super::templates::{CompiledTypes, neighbours, set_daemon_overhead, set_rooms, templates};

impl<'a> Problem<'a> {
    /// Compiles. O(pods + nodes + templates x types + profiles x (templates + node groups)).
    pub fn new(inputs: &Inputs<'a>) -> Self {
        Self::compile(inputs, None)
    }

    /// The same, beside one of the same catalog: instance types are most of the work in small clusters, and are not compiled again where they
    /// are the same.
    pub fn beside(inputs: &Inputs<'a>, other: &Problem<'_>) -> Self {
        Self::compile(inputs, Some(other))
    }

    fn compile(inputs: &Inputs<'a>, other: Option<&Problem<'_>>) -> Self {
        let snapshot = inputs.snapshot;
        let mut machines = machines(snapshot);
        // The order in which nodes are tried, so that their number is their place in it.
        machines.sort_by(|one, two| (!one.is_initialized(), one.name).cmp(&(!two.is_initialized(), two.name)));
        let mut daemons = daemons(snapshot);
        let mut pods = PodTable::new(snapshot, inputs.policy.packing);
        pods.intern_dimensions_of(&daemons, Attachable::new(inputs));
        let offer = Offer::new(inputs, other.map(|other| &other.offer));
        let mut compiled_types = types_compiled_before(other, &pods.dimensions);
        let mut templates = templates(inputs, &offer, &machines, &pods.dimensions, &daemons, &mut compiled_types);
        for template in &mut templates {
            set_daemon_overhead(template, &daemons, &pods.dimensions, inputs.policy.packing);
        }
        set_rooms(&mut templates, pods.dimensions.count());
        let (limited, quotas) = quotas(&mut templates, inputs, &offer, &machines);

        let node_taints: Vec<Vec<EffectiveTaint>> = machines.iter().map(taints_of).collect();
        let soft = |taint: &EffectiveTaint| taint.effect == TaintEffect::PreferNoSchedule;
        let soft_taints_exist =
            node_taints.iter().flatten().any(soft) || templates.iter().flat_map(|template| &template.taints).any(soft);

        let (classes, class_of_pod, builder) = pods.classes(
            snapshot,
            soft_taints_exist,
            &inputs.policy.scheduling,
            concentration::count(inputs),
            &mut daemons,
        );
        for template in &mut templates {
            template.neighbours = neighbours(template, &daemons);
        }
        let concentration = ConcentrationPenalties::new(inputs, &machines, &class_of_pod, classes.len(), &templates);
        let ClassBuilder { groups, mut domains, variants, .. } = builder;
        intern_domains(&mut domains, &machines, &templates);
        intern_values_asked_for(&mut domains, &templates, &variants, &classes);
        for template in &mut templates {
            let reach = |key| Reach::new(&template.offerings, &domains, key);
            template.reach = domains.keys().map(reach).collect();
        }

        let mut problem = Self {
            snapshot,
            offer,
            compiled_types,
            machines: machines.into(),
            dimensions: pods.dimensions,
            classes,
            variants,
            groups,
            domains,
            concentration,
            search_work: inputs.policy.search_work.unwrap_or(DEFAULT_SEARCH_WORK),
            templates,
            quotas,
            limited,
            daemons,
            nodes: IndexVec::new(),
            class_of_pod,
            invalid_pods: pods.invalid,
            too_large_pods: pods.too_large,
            not_supported_pods: pods.not_supported,
            disks: pods.disks,
            devices: IndexVec::new(),
            profile_of_variant: IndexVec::new(),
            names_pool_labels: IndexVec::new(),
            template_fit: Vec::new(),
            named_slots: Vec::new(),
            node_fit: Vec::new(),
            eligible: IndexVec::new(),
            there: IndexVec::new(),
            static_alone: IndexVec::new(),
            spreading: Spreading::default(),
            meetings: Meetings::default(),
            counts_template: IndexVec::new(),
            counts_node_group: IndexVec::new(),
        };
        problem.withhold(&inputs.policy.withheld);
        problem.compile_nodes(inputs, node_taints);
        problem.compile_devices();
        problem.compile_profiles();
        problem.compile_groups();
        problem.spreading = spreading(&problem, inputs.policy.packing);
        problem.meetings = meetings(&problem);
        problem
    }

    /// Leaves pods pending whose places were wrong. O(pods) where there are any.
    fn withhold(&mut self, withheld: &BTreeMap<String, String>) {
        for (position, pod) in self.snapshot.pods.enumerated().filter(|_| !withheld.is_empty()) {
            if let Some(why) = withheld.get(&pod.key()) {
                let text = format!("its place would be wrong ({why}), by a mistake in cutlist");
                self.not_supported_pods.insert(position, text);
            }
        }
    }
}

/// Of a problem that counts the same resources.
fn types_compiled_before(other: Option<&Problem<'_>>, dimensions: &Dimensions) -> Vec<CompiledTypes> {
    other.filter(|other| other.dimensions == *dimensions).map(|other| other.compiled_types.clone()).unwrap_or_default()
}
