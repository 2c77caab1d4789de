//! Everything that does not change while a plan is made, compiled once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::devices::Device;
use crate::inputs::Inputs;
use crate::kube_scheduler::void_nominations;
use crate::model::requirements::normalized;
use crate::model::{HourlyPrice, IndexVec, Requirement, Requirements, Resources};
use crate::offer::{NothingOffered, Offer, Types};
use crate::snapshot::Snapshot;
use crate::snapshot::nodes::{Machine, machines};
use cutlist_api::keys;
use cutlist_api::settings::DEFAULT_SEARCH_WORK;

use super::beside::cost_beside;
use super::class::{ClassBuilder, ClassIndex, HostPort, PodClass, Variant, VariantIndex};
use super::concentration::{self, ConcentrationPenalties};
use super::daemons::{Daemon, DaemonIndex, daemons};
use super::domains::{intern_domains, intern_values_asked_for, template_values};
use super::host::{ExistingNode, HostIndex};
use super::meeting::Meetings;
use super::offerings::{OfferingSet, Offerings, Slots, is_slot_label};
use super::pod_table::PodTable;
use super::quota::{Limited, Quota, QuotaIndex, quotas};
use super::reach::Reach;
use super::refusal::Refusal;
use super::rooms::Rooms;
use super::spreading::Spreading;
use super::taints::{EffectiveTaint, repelling};
use super::template::{Neighbour, Replicas, Template, TemplateIndex};
use super::topology::{Domain, Domains, Group, GroupIndex, GroupKind, KeyIndex, Spread};
use super::vectors::{self, Dimensions};
use super::volumes::NODE_NAME;

/// Position of a pod in the snapshot, and its class.
type PodOfClass = (usize, ClassIndex);

/// By domain, whether a spread is over it.
#[derive(Default)]
struct Eligible {
    all: Vec<bool>,
    /// Those of nodes that exist.
    there: Vec<bool>,
}

/// Labels that some requirement looks at, by key.
type Labels = Vec<(String, String)>;

/// The cluster, the offer and the pods, compiled.
pub struct Problem<'a> {
    pub snapshot: &'a Snapshot,
    pub offer: Offer,
    pub machines: IndexVec<HostIndex, Machine<'a>>,
    pub dimensions: Dimensions,
    pub classes: IndexVec<ClassIndex, PodClass>,
    pub variants: IndexVec<VariantIndex, Variant>,
    pub groups: IndexVec<GroupIndex, Group>,
    pub domains: Domains,
    /// What concentration of pods count; `None`: nothing.
    pub concentration: Option<ConcentrationPenalties>,
    /// How much is searched, counted in looks.
    pub search_work: u64,
    /// In the order in which pools are tried.
    pub templates: IndexVec<TemplateIndex, Template>,
    /// What templates draw on.
    pub quotas: IndexVec<QuotaIndex, Quota>,
    pub limited: Limited,
    pub daemons: IndexVec<DaemonIndex, Daemon>,
    pub nodes: IndexVec<HostIndex, ExistingNode>,
    /// By position of the pod in the snapshot.
    pub class_of_pod: Vec<Option<ClassIndex>>,
    /// Pods that can not be planned for, with the reason.
    pub invalid_pods: BTreeMap<usize, String>,
    /// Pods that say more than is planned for, with what they have too much of.
    pub too_large_pods: BTreeMap<usize, String>,
    /// Pods that ask for something that is not planned for, with what it is.
    pub not_supported_pods: BTreeMap<usize, String>,
    /// By position of the pod, the volume that is gone with its node.
    pub disks: BTreeMap<usize, super::volumes::Disk>,
    /// By node; empty where no pod asks for any.
    pub devices: IndexVec<HostIndex, Vec<Device>>,
    /// By variant: a number that variants with the same requirements and tolerations share.
    profile_of_variant: IndexVec<VariantIndex, usize>,
    /// By variant: whether a requirement is on a label that only pools define.
    names_pool_labels: IndexVec<VariantIndex, bool>,
    /// By profile and template: what is left of the template's offerings.
    template_fit: Vec<IndexVec<TemplateIndex, Result<OfferingSet, Refusal>>>,
    /// By profile and template: the slots that requirements leave, also where no type is offered that they leave too.
    named_slots: Vec<IndexVec<TemplateIndex, Slots>>,
    /// By profile and group of nodes.
    node_fit: Vec<Vec<bool>>,
    /// Which domains a group may be spread over.
    eligible: IndexVec<GroupIndex, Vec<bool>>,
    /// Those of them that have a node.
    there: IndexVec<GroupIndex, Vec<bool>>,
    pub spreading: Spreading,
    pub meetings: Meetings,
    /// Whether pods on nodes of a template are counted.
    counts_template: IndexVec<GroupIndex, IndexVec<TemplateIndex, bool>>,
    /// The same by group of nodes.
    counts_node_group: IndexVec<GroupIndex, Vec<bool>>,
}

fn taints_of(machine: &Machine<'_>) -> Vec<EffectiveTaint> {
    let ephemeral = |key: &str, value: &str, effect| {
        EffectiveTaint { key: key.to_owned(), value: value.to_owned(), effect }.is_ephemeral()
    };
    let taints = machine.effective_taints(ephemeral).into_iter();
    taints.map(|(key, value, effect)| EffectiveTaint { key, value, effect }).collect()
}

impl<'a> Problem<'a> {
    /// Compiles. O(pods + nodes + templates x types + profiles x (templates + node groups)).
    pub fn new(inputs: &Inputs<'a>) -> Self {
        let snapshot = inputs.snapshot;
        let mut machines = machines(snapshot);
        // The order in which nodes are tried, so that their number is their place in it.
        machines.sort_by(|one, two| (!one.is_initialized(), one.name).cmp(&(!two.is_initialized(), two.name)));
        let mut daemons = daemons(snapshot);
        let mut pods = PodTable::new(snapshot);
        for daemon in &daemons {
            pods.intern_dimensions(&daemon.requests);
        }
        let offer = Offer::new(inputs);
        let mut templates = templates(inputs, &offer, &machines, &pods.dimensions);
        for template in &mut templates {
            set_daemon_overhead(template, &daemons, &pods.dimensions);
        }
        set_rooms(&mut templates, pods.dimensions.count());
        let (limited, quotas) = quotas(&mut templates, inputs, &offer, &machines);

        let node_taints: Vec<Vec<EffectiveTaint>> = machines.iter().map(taints_of).collect();
        let soft = |taint: &EffectiveTaint| taint.effect == cutlist_api::node_pool::TaintEffect::PreferNoSchedule;
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
        problem.spreading = Spreading::new(&problem);
        problem.meetings = Meetings::new(&problem);
        problem
    }

    /// Leaves pods pending whose places were wrong. O(pods) where there are any.
    fn withhold(&mut self, withheld: &BTreeMap<String, String>) {
        for (position, pod) in self.snapshot.pods.iter().enumerate().filter(|_| !withheld.is_empty()) {
            if let Some(why) = withheld.get(&pod.key()) {
                let text = format!("its place would be wrong ({why}), by a mistake in cutlist");
                self.not_supported_pods.insert(position, text);
            }
        }
    }

    fn compile_nodes(&mut self, inputs: &Inputs<'_>, node_taints: Vec<Vec<EffectiveTaint>>) {
        let looked_at = self.labels_looked_at();
        let attachment_limits = attachment_limits(self.snapshot);
        let position_by_name: BTreeMap<&str, HostIndex> =
            self.machines.enumerated().map(|(position, machine)| (machine.name, position)).collect();
        let mut pods_by_machine: IndexVec<HostIndex, Vec<(usize, ClassIndex)>> =
            IndexVec::repeat(Vec::new(), self.machines.len());
        let mut nominated_by_machine: BTreeMap<HostIndex, Vec<(usize, ClassIndex)>> = BTreeMap::new();
        let void = void_nominations(self.snapshot, inputs.now);
        for (pod_position, pod) in self.snapshot.pods.iter().enumerate() {
            let node = pod.spec.node_name.as_deref().filter(|_| !pod.is_terminal());
            let machine = node.and_then(|name| position_by_name.get(name));
            if let (Some(machine), Some(class)) = (machine, self.class_of_pod[pod_position]) {
                pods_by_machine[*machine].push((pod_position, class));
            }
            let nominated = pod.preempting_on().filter(|_| !void.contains(&pod_position));
            let nominated = nominated.and_then(|name| position_by_name.get(name));
            if let (Some(machine), Some(class)) = (nominated, self.class_of_pod[pod_position]) {
                nominated_by_machine.entry(*machine).or_default().push((pod_position, class));
            }
        }
        if looked_at.contains(NODE_NAME) {
            for machine in &mut self.machines {
                machine.labels.insert(NODE_NAME.to_owned(), machine.name.to_owned());
            }
        }
        let mut groups: BTreeMap<(Labels, Vec<EffectiveTaint>), usize> = BTreeMap::new();
        for (position, (taints, pods)) in self.machines.indices().zip(node_taints.into_iter().zip(pods_by_machine)) {
            let machine = &self.machines[position];
            let labels: Labels = machine
                .labels
                .iter()
                .map(|(key, value)| (normalized(key).to_owned(), value.clone()))
                .filter(|(key, _)| looked_at.contains(key))
                .collect();
            let next = groups.len();
            let group = *groups.entry((labels, taints.clone())).or_insert(next);
            let nominated = nominated_by_machine.remove(&position).unwrap_or_default();
            let mut node = self.compile_node(position, taints, (pods, nominated), group, &attachment_limits);
            let machine = &self.machines[position];
            node.cost_beside = cost_beside(inputs, self.offer.costs_of_machine(inputs, machine));
            self.nodes.push(node);
        }
    }

    fn compile_node(
        &self,
        position: HostIndex,
        taints: Vec<EffectiveTaint>,
        (pods, mut nominated): (Vec<PodOfClass>, Vec<PodOfClass>),
        group: usize,
        attachment_limits: &BTreeMap<&str, BTreeMap<String, usize>>,
    ) -> ExistingNode {
        let machine = &self.machines[position];
        let mut free = self.dimensions.vector(&self.allocatable_of(machine));
        let mut host_ports = Vec::new();
        let mut daemons_present: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (pod, class) in &pods {
            vectors::add(&mut free, &self.classes[*class].request, -1);
            host_ports.extend(self.classes[*class].host_ports.iter().cloned());
            let pod = &self.snapshot.pods[*pod];
            let owners = pod.metadata.owner_references.iter().filter(|owner| owner.kind == "DaemonSet");
            daemons_present.extend(owners.map(|owner| (pod.metadata.namespace.as_str(), owner.name.as_str())));
        }
        // Of a node that goes, nobody holds the room.
        nominated.retain(|_| !machine.is_being_removed());
        for (_, class) in &nominated {
            vectors::add(&mut free, &self.classes[*class].request, -1);
            host_ports.extend(self.classes[*class].host_ports.iter().cloned());
        }
        let node_requirements = Requirements::from_labels(&machine.labels);
        let mut neighbours = Vec::new();
        for (number, daemon) in self
            .daemons
            .enumerated()
            .filter(|(_, daemon)| !daemons_present.contains(&(daemon.namespace.as_str(), daemon.name.as_str())))
        {
            let defined = |key: &str, requirement: &Requirement| {
                node_requirements.get(key).is_some() || requirement.allows_absence()
            };
            if daemon.runs_on(&node_requirements, &taints, &defined) {
                let requested = self.dimensions.vector(&daemon.requests);
                let has_port = |port: &HostPort| !host_ports.iter().any(|taken| taken.conflicts_with(port));
                let has_place = vectors::fits(&requested, &free) && daemon.host_ports.iter().all(has_port);
                vectors::add(&mut free, &requested, -1);
                host_ports.extend(daemon.host_ports.iter().cloned());
                // On a node that has been up for a while it comes at once, or waits for a place, nobody knows how long.
                if daemon.is_looked_at() && (has_place || !machine.is_initialized()) {
                    neighbours.push(number);
                }
            }
        }
        ExistingNode {
            machine: position,
            labels: machine.labels.clone(),
            taints,
            free,
            group,
            pods,
            nominated,
            neighbours,
            host_ports,
            attachment_limits: attachment_limits.get(machine.name).cloned().unwrap_or_default(),
            being_removed: machine.is_being_removed(),
            cost_beside: HourlyPrice::ZERO,
        }
    }

    /// Allocatable of a machine; of its instance type in the catalog while neither Node nor claim say.
    fn allocatable_of(&self, machine: &Machine<'_>) -> Resources {
        let stated = machine.allocatable();
        if !stated.is_empty() {
            return stated;
        }
        let mut templates = self.templates.iter().filter(|template| !template.is_reserved());
        let template = templates.find(|template| Some(template.name.as_str()) == machine.node_pool());
        let instance_type = machine.label(keys::INSTANCE_TYPE);
        template
            .zip(instance_type)
            .and_then(|(template, name)| {
                Some(template.offerings.types[template.offerings.position(name)?].allocatable_resources.clone())
            })
            .unwrap_or_default()
    }

    /// Label keys that requirements or node filters name; nodes that agree on these are alike.
    fn labels_looked_at(&self) -> BTreeSet<String> {
        let mut looked_at: BTreeSet<String> = BTreeSet::new();
        let mut look_at =
            |requirements: &Requirements| looked_at.extend(requirements.iter().map(|(key, _)| key.to_owned()));
        self.variants.iter().for_each(|variant| look_at(&variant.requirements));
        for group in &self.groups {
            if let GroupKind::Spread(spread) = &group.kind {
                spread.node_filter.iter().for_each(&mut look_at);
            }
        }
        looked_at
    }

    fn compile_profiles(&mut self) {
        let mut profiles: HashMap<(&Requirements, String, bool, bool), usize> = HashMap::new();
        let group_count = self.nodes.iter().map(|node| node.group + 1).max().unwrap_or(0);
        let mut representative: Vec<HostIndex> = vec![HostIndex::default(); group_count];
        for (position, node) in self.nodes.enumerated() {
            representative[node.group] = position;
        }
        for variant in &self.variants {
            let tolerations =
                if variant.tolerations.is_empty() { String::new() } else { format!("{:?}", variant.tolerations) };
            let identity = (&variant.requirements, tolerations, variant.soft_taints_repel, variant.needs_existing);
            let next = profiles.len();
            let profile = *profiles.entry(identity).or_insert(next);
            self.profile_of_variant.push(profile);
            let of_pools = |key: &str| self.templates.iter().any(|template| template.chooses(key));
            self.names_pool_labels.push(variant.requirements.iter().any(|(key, _)| of_pools(key)));
            if profile == next {
                self.template_fit.push(self.templates.iter().map(|template| template_fit(variant, template)).collect());
                let named = |template| named_slots(&variant.requirements, template);
                self.named_slots.push(self.templates.iter().map(named).collect());
                let fits_node = |position: &HostIndex| {
                    let node = &self.nodes[*position];
                    repelling(&node.taints, &variant.tolerations, variant.soft_taints_repel).is_none()
                        && variant.requirements.allow_labels(&node.labels)
                };
                self.node_fit.push(representative.iter().map(fits_node).collect());
            }
        }
    }

    fn compile_groups(&mut self) {
        let group_count = self.nodes.iter().map(|node| node.group + 1).max().unwrap_or(0);
        // The domains of each key in which each group of nodes has some.
        let mut domains: IndexVec<KeyIndex, BTreeSet<(usize, Domain)>> =
            IndexVec::repeat(BTreeSet::new(), self.domains.key_count());
        for (key, domains) in domains.enumerated_mut().filter(|(key, _)| !self.domains.is_hostname(*key)) {
            let domain_of = |(host, node): (HostIndex, &ExistingNode)| {
                (node.group, self.domains.of_labels(key, &node.labels, host))
            };
            domains.extend(self.nodes.enumerated().map(domain_of));
        }
        let mut representative: Vec<HostIndex> = vec![HostIndex::default(); group_count];
        for (position, node) in self.nodes.enumerated() {
            representative[node.group] = position;
        }
        for group in &self.groups {
            let (counts_template, counts_node_group, eligible) = match &group.kind {
                GroupKind::Spread(spread) => self.spread_scope(group, spread, &representative, &domains[group.key]),
                GroupKind::Affinity | GroupKind::AntiAffinity => {
                    (IndexVec::repeat(true, self.templates.len()), vec![true; group_count], Eligible::default())
                }
            };
            self.counts_template.push(counts_template);
            self.counts_node_group.push(counts_node_group);
            self.eligible.push(eligible.all);
            self.there.push(eligible.there);
        }
    }

    /// Which templates and nodes a spread counts, and the domains that they span.
    /// `representative` is a node of each group of nodes, which agree on all that a filter looks at.
    fn spread_scope(
        &self,
        group: &Group,
        spread: &Spread,
        representative: &[HostIndex],
        domains: &BTreeSet<(usize, Domain)>,
    ) -> (IndexVec<TemplateIndex, bool>, Vec<bool>, Eligible) {
        let mut eligible = vec![false; self.domains.count(group.key)];
        let counts =
            |position: &HostIndex| spread.counts_node(&self.nodes[*position].labels, &self.nodes[*position].taints);
        let counts_node_group: Vec<bool> = representative.iter().map(counts).collect();
        for (_, domain) in domains.iter().filter(|(node_group, _)| counts_node_group[*node_group]) {
            if let Some(flag) = eligible.get_mut(*domain as usize) {
                *flag = true;
            }
        }
        let there = eligible.clone();
        let no_filter = [Requirements::new()];
        let filters = if spread.node_filter.is_empty() { &no_filter[..] } else { &spread.node_filter };
        let mut counts_template = IndexVec::new();
        for template in &self.templates {
            let tolerated = spread
                .tolerations
                .as_ref()
                .is_none_or(|tolerations| repelling(&template.taints, tolerations, false).is_none());
            let sets: Vec<OfferingSet> =
                filters.iter().filter(|_| tolerated).filter_map(|filter| offering_set(filter, template).ok()).collect();
            counts_template.push(!sets.is_empty());
            // Where a static pool has no node, no pod can make it have one.
            for (set, filter) in sets.iter().zip(filters).filter(|_| !template.is_static()) {
                for value in template_values(template, set, filter, self.domains.name(group.key)) {
                    if let Some(flag) =
                        self.domains.get(group.key, &value).and_then(|domain| eligible.get_mut(domain as usize))
                    {
                        *flag = true;
                    }
                }
            }
        }
        (counts_template, counts_node_group, Eligible { all: eligible, there })
    }

    /// What a template leaves for a variant, or why nothing.
    pub fn fit_of_template(&self, variant: VariantIndex, template: TemplateIndex) -> &Result<OfferingSet, Refusal> {
        &self.template_fit[self.profile_of_variant[variant]][template]
    }

    /// The slots that the requirements of a variant and of a template leave, whatever is offered there.
    pub fn named_slots(&self, variant: VariantIndex, template: TemplateIndex) -> Slots {
        self.named_slots[self.profile_of_variant[variant]][template]
    }

    /// The same for a node that is yet to be bought for it: nothing of a static pool, whose nodes are there for their own sake.
    pub fn purchasable(&self, variant: VariantIndex, template: TemplateIndex) -> Result<&OfferingSet, &Refusal> {
        match self.templates[template].is_static() {
            true => Err(&Refusal::EmptyPool),
            false => self.fit_of_template(variant, template).as_ref(),
        }
    }

    /// A number that variants with the same requirements and tolerations share.
    pub fn profile(&self, variant: VariantIndex) -> usize {
        self.profile_of_variant[variant]
    }

    /// Whether a variant asks for labels that pools define and offerings do not.
    pub fn names_pool_labels(&self, variant: VariantIndex) -> bool {
        self.names_pool_labels[variant]
    }

    /// Whether requirements and taints of a node that exists allow a variant.
    pub fn fits_node(&self, variant: VariantIndex, node: HostIndex) -> bool {
        self.node_fit[self.profile_of_variant[variant]][self.nodes[node].group]
    }

    /// Everything about taints and labels that keeps a variant from a template, not only the first thing.
    pub fn obstacles(&self, variant: VariantIndex, template: TemplateIndex) -> Vec<Refusal> {
        let (variant, template) = (&self.variants[variant], &self.templates[template]);
        let repels = |taint: &&EffectiveTaint| {
            repelling(std::slice::from_ref(*taint), &variant.tolerations, variant.soft_taints_repel).is_some()
        };
        let mut obstacles: Vec<Refusal> =
            template.taints.iter().filter(repels).map(|taint| Refusal::Taint(taint.to_string())).collect();
        for (key, requirement) in variant.requirements.iter() {
            let mut alone = Requirements::new();
            alone.add(key, requirement.clone());
            if let Err(refusal) = offering_set(&alone, template) {
                obstacles.push(refusal);
            }
        }
        if variant.needs_existing {
            obstacles.push(Refusal::Devices);
        }
        obstacles
    }

    pub fn is_eligible(&self, group: GroupIndex, domain: Domain) -> bool {
        self.eligible[group].get(domain as usize).copied().unwrap_or(false)
    }

    /// Domains that a spread is over.
    pub fn eligible_domains(&self, group: GroupIndex) -> impl Iterator<Item = Domain> {
        let flags = self.eligible[group].iter().enumerate();
        flags.filter(|(_, eligible)| **eligible).filter_map(|(domain, _)| Domain::try_from(domain).ok())
    }

    /// Whether a node is in the domain that the group counts.
    pub fn is_there(&self, group: GroupIndex, domain: Domain) -> bool {
        self.there[group].get(domain as usize).copied().unwrap_or(false)
    }

    pub fn counts_node(&self, group: GroupIndex, node: HostIndex) -> bool {
        self.counts_node_group[group][self.nodes[node].group]
    }

    pub fn counts_template(&self, group: GroupIndex, template: TemplateIndex) -> bool {
        self.counts_template[group][template]
    }
}

/// By node, the most volumes that each driver may attach.
fn attachment_limits(snapshot: &Snapshot) -> BTreeMap<&str, BTreeMap<String, usize>> {
    let limits = snapshot.csi_nodes.iter().filter_map(|csi_node| {
        let drivers = csi_node.spec.drivers.iter().filter_map(|driver| {
            let count = driver.allocatable.as_ref()?.count?;
            Some((driver.name.clone(), usize::try_from(count).ok()?))
        });
        Some((csi_node.metadata.name.as_deref()?, drivers.collect()))
    });
    limits.collect()
}

/// Requirements of a variant against a template: taints first, then labels, then what is offered.
fn template_fit(variant: &Variant, template: &Template) -> Result<OfferingSet, Refusal> {
    if let Some(taint) = repelling(&template.taints, &variant.tolerations, variant.soft_taints_repel) {
        return Err(Refusal::Taint(taint.to_string()));
    }
    if variant.needs_existing {
        return Err(Refusal::Devices);
    }
    offering_set(&variant.requirements, template)
}

/// What of a template's offerings satisfies requirements.
fn offering_set(requirements: &Requirements, template: &Template) -> Result<OfferingSet, Refusal> {
    if template.set.types().is_clear() {
        return Err(Refusal::EmptyPool);
    }
    if let Some(key) = template.requirements.refusal(requirements) {
        return Err(Refusal::Requirement { key: key.to_owned() });
    }
    let mut set = template.set.clone();
    for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
        template.offerings.restrict(&mut set, key, requirement);
        if !template.offerings.prune(&mut set) {
            return Err(Refusal::Requirement { key: key.to_owned() });
        }
    }
    Ok(set)
}

/// The slots that requirements leave of a template's; of a reservation those that it is in.
fn named_slots(requirements: &Requirements, template: &Template) -> Slots {
    let mut set = match template.is_reserved() {
        true => template.set.clone(),
        false => template.offerings.compile(&template.requirements),
    };
    for (key, requirement) in requirements.iter().filter(|(key, _)| is_slot_label(normalized(key))) {
        template.offerings.restrict(&mut set, key, requirement);
    }
    set.slots
}

/// Pools that can be planned with, highest weight first, then by name descending as the reference does; static ones last.
/// Before each its capacity reservations, cheapest type first.
fn templates(
    inputs: &Inputs<'_>,
    offer: &Offer,
    machines: &[Machine<'_>],
    dimensions: &Dimensions,
) -> IndexVec<TemplateIndex, Template> {
    let mut compiled: Vec<(Types, Rc<Offerings>)> = Vec::new();
    let mut templates: IndexVec<TemplateIndex, Template> = IndexVec::new();
    for (position, pool) in inputs.node_pools.iter().enumerate() {
        let replicas = Replicas::of(pool, machines);
        let is_planned = replicas.is_none() || inputs.policy.feature_gates.static_capacity;
        let Some(types) = offer.of_pool(position).filter(|_| is_planned) else { continue };
        let zones = offer.zones_of_pool(position);
        let known = compiled.iter().find(|(of, _)| Rc::ptr_eq(of, types)).map(|(_, offerings)| Rc::clone(offerings));
        let offerings = known.unwrap_or_else(|| {
            let offerings = Rc::new(Offerings::new(types, &inputs.catalog.region, zones, dimensions));
            compiled.push((Rc::clone(types), Rc::clone(&offerings)));
            offerings
        });
        let cost_beside = cost_beside(inputs, offer.costs_of_pool(pool));
        let mut template = Template { replicas, cost_beside, ..Template::new(position, pool, offerings) };
        if template.set.types().is_clear() {
            template.nothing_offered = Some(Rc::new(NothingOffered::of(inputs, pool, types)));
        }
        templates.push(template);
        // Nodes of a static pool are there whether or not anything is reserved.
        for reserved in offer.reserved_of_pool(position).iter().filter(|_| replicas.is_none()) {
            let offerings = Rc::new(Offerings::new(&reserved.types, &inputs.catalog.region, zones, dimensions));
            let mut template = Template { cost_beside, ..Template::new(position, pool, offerings) };
            if !template.set.types().is_clear() {
                template.reservation = Some(Rc::clone(&reserved.reservation));
                templates.push(template);
            }
        }
    }
    templates.sort_by(|one, two| {
        let order = |it: &Template| (it.is_static(), std::cmp::Reverse(it.weight));
        let within = |it: &Template| it.reservation.as_ref().map(|it| (it.price, it.id.clone()));
        let reserved_first = || (!one.is_reserved(), within(one)).cmp(&(!two.is_reserved(), within(two)));
        order(one).cmp(&order(two)).then_with(|| two.name.cmp(&one.name)).then_with(reserved_first)
    });
    templates
}

fn set_daemon_overhead(template: &mut Template, daemons: &[Daemon], dimensions: &Dimensions) {
    let offerings = Rc::clone(&template.offerings);
    template.daemon_overhead = vec![dimensions.vector(&Resources::new()); offerings.types.len()];
    for position in template.set.types().ones() {
        let entry = &offerings.types[position];
        for daemon in daemons {
            let defined = |key: &str, requirement: &Requirement| match entry.requirements.get(key) {
                Some(values) => values.iter().any(|value| requirement.allows(value)),
                None => template.requirements.get(key).is_some() || requirement.allows_absence() || is_of_slot(key),
            };
            if daemon.runs_on(&template.requirements, &template.taints, &defined) {
                vectors::add(&mut template.daemon_overhead[position], &dimensions.vector(&daemon.requests), 1);
            }
        }
    }
    let allocatable = offerings.types.iter().map(|entry| entry.allocatable.clone());
    template.room = allocatable.collect();
    for (room, overhead) in template.room.iter_mut().zip(&template.daemon_overhead) {
        vectors::add(room, overhead, -1);
    }
    let any = |_: &str, _: &Requirement| true;
    let running = daemons.iter().filter(|daemon| daemon.runs_on(&template.requirements, &template.taints, &any));
    template.daemon_ports = running.flat_map(|daemon| daemon.host_ports.iter().cloned()).collect();
}

/// The DaemonSets that others look at, with the nodes of the template that they run on.
fn neighbours(template: &Template, daemons: &IndexVec<DaemonIndex, Daemon>) -> Vec<Neighbour> {
    let looked_at = daemons.enumerated().filter(|(_, daemon)| daemon.is_looked_at());
    let tolerating = looked_at.filter(|(_, daemon)| repelling(&template.taints, &daemon.tolerations, false).is_none());
    let on = |daemon: &Daemon| -> Vec<OfferingSet> {
        daemon.requirements.iter().filter_map(|term| offering_set(term, template).ok()).collect()
    };
    let neighbours = tolerating.map(|(number, daemon)| Neighbour { daemon: number, on: on(daemon) });
    neighbours.filter(|neighbour| !neighbour.on.is_empty()).collect()
}

/// Indexes the room of each template; templates with the same types and DaemonSets share one index.
fn set_rooms(templates: &mut [Template], dimensions: usize) {
    for position in 0..templates.len() {
        let (before, rest) = templates.split_at_mut(position);
        let Some(template) = rest.first_mut() else { continue };
        let alike = before.iter().find(|other| other.room == template.room);
        template.rooms =
            alike.map_or_else(|| Rc::new(Rooms::new(&template.room, dimensions)), |other| Rc::clone(&other.rooms));
        template.room_most = template.rooms.most(template.set.types());
    }
}

/// Labels of slots, and the host name: a node of any type may have them.
fn is_of_slot(key: &str) -> bool {
    matches!(key, keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::REGION | keys::HOSTNAME)
}
