//! Everything that does not change while a plan is made, compiled once.

mod compile;
mod devices;
mod divided;
mod fits;
mod groups;
mod meetings;
mod nodes;
mod profiles;
mod quotas;
mod reached;
mod spreads;
mod templates;

use std::collections::BTreeMap;

use crate::devices::Device;
use crate::model::{HourlyPrice, IndexVec, Requirements};
use crate::offer::Offer;
use crate::snapshot::nodes::Machine;
use crate::snapshot::{PodIndex, Snapshot};

use super::class::{ClassIndex, PodClass, Variant, VariantIndex};
use super::concentration::ConcentrationPenalties;
use super::daemons::{Daemon, DaemonIndex};
use super::host::{ExistingNode, HostIndex};
use super::meeting::Meetings;
use super::offerings::{OfferingSet, Slots};
use super::quota::{Limited, Quota, QuotaIndex};
use super::refusal::Refusal;
use super::spreading::Spreading;
use super::taints::{EffectiveTaint, repelling};
use super::template::{Template, TemplateIndex};
use super::topology::{Domain, Domains, Group, GroupIndex};
use super::vectors::Dimensions;
use super::volumes::Disk;

use fits::offering_set;
use templates::CompiledTypes;

/// The cluster, the offer and the pods, compiled.
pub struct Problem<'a> {
    pub snapshot: &'a Snapshot,
    pub offer: Offer,
    /// Of the offer, and of a problem that this one was compiled beside.
    compiled_types: Vec<CompiledTypes>,
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
    pub class_of_pod: IndexVec<PodIndex, Option<ClassIndex>>,
    /// Pods that can not be planned for, with the reason.
    pub invalid_pods: BTreeMap<PodIndex, String>,
    /// Pods that say more than is planned for, with what they have too much of.
    pub too_large_pods: BTreeMap<PodIndex, String>,
    /// Pods that ask for something that is not planned for, with what it is.
    pub not_supported_pods: BTreeMap<PodIndex, String>,
    /// By position of the pod, the volume that is gone with its node.
    pub disks: BTreeMap<PodIndex, Disk>,
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
    /// Those of them that have none, and in which static pools alone may have one.
    static_alone: IndexVec<GroupIndex, Vec<bool>>,
    pub spreading: Spreading,
    pub meetings: Meetings,
    /// Whether pods on nodes of a template are counted.
    counts_template: IndexVec<GroupIndex, IndexVec<TemplateIndex, bool>>,
    /// The same by group of nodes.
    counts_node_group: IndexVec<GroupIndex, Vec<bool>>,
}

impl Problem<'_> {
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
            // A pool that has nothing says so of each.
            obstacles.extend(offering_set(&alone, template).err().filter(|refusal| !obstacles.contains(refusal)));
        }
        if variant.needs_existing {
            obstacles.push(Refusal::Devices);
        }
        obstacles
    }

    pub fn is_eligible(&self, group: GroupIndex, domain: Domain) -> bool {
        self.eligible[group].get(domain.position()).copied().unwrap_or(false)
    }

    /// Domains that a spread is over.
    pub fn eligible_domains(&self, group: GroupIndex) -> impl Iterator<Item = Domain> {
        let flags = self.eligible[group].iter().enumerate();
        flags.filter(|(_, eligible)| **eligible).map(|(domain, _)| Domain::at(domain))
    }

    /// Whether a node is in the domain that the group counts.
    pub fn is_there(&self, group: GroupIndex, domain: Domain) -> bool {
        self.there[group].get(domain.position()).copied().unwrap_or(false)
    }

    /// Whether there is a node in the domain only where a static pool gets one: no pod can make it have one.
    pub fn is_of_static_pools_alone(&self, group: GroupIndex, domain: Domain) -> bool {
        self.static_alone[group].get(domain.position()).copied().unwrap_or(false)
    }

    pub fn counts_node(&self, group: GroupIndex, node: HostIndex) -> bool {
        self.counts_node_group[group][self.nodes[node].group]
    }

    pub fn counts_template(&self, group: GroupIndex, template: TemplateIndex) -> bool {
        self.counts_template[group][template]
    }

    /// Of new nodes together, one of each template that is named.
    pub fn cost_beside_new(&self, templates: impl Iterator<Item = TemplateIndex>) -> HourlyPrice {
        templates.map(|template| self.templates[template].cost_beside).sum()
    }

    /// The same problem where nothing counts but the prices of instances.
    pub fn at_prices_of_instances(mut self) -> Self {
        self.templates.iter_mut().for_each(|template| template.cost_beside = HourlyPrice::ZERO);
        self.nodes.iter_mut().for_each(|node| node.cost_beside = HourlyPrice::ZERO);
        self
    }
}
