//! What a plan is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplate;

use crate::catalog::Catalog;
use crate::catalog::regions::SaidBy;
use crate::model::HourlyPrice;
use crate::plan::{DefinitionPlaces, Note, NoteCode, Revision};
use crate::snapshot::Snapshot;
use cutlist_api::capacity_buffer::CapacityBuffer;
use cutlist_api::cloud_facts::{DeniedPermission, VcpuQuotaUse};
use cutlist_api::disruption_budget::DisruptionBudget;
use cutlist_api::ec2_node_class::{Ami, EC2NodeClass, SecurityGroup};
use cutlist_api::image_lock::ImageLock;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_pool::{IntOrString, NodePool};
use cutlist_api::settings::{DisruptionSettings, FeatureGates, Packing, Penalties, Scheduling, Settings};

/// Everything a plan depends on. The same inputs give the same bytes.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    pub revision: Revision,
    pub cluster: &'a str,
    pub node_pools: &'a [NodePool],
    pub node_classes: &'a [EC2NodeClass],
    /// Those of the definitions; what else the cluster has is in the snapshot.
    pub node_overlays: &'a [NodeOverlay],
    /// Those of the definitions, as above, with the templates they name.
    pub capacity_buffers: &'a [CapacityBuffer],
    pub pod_templates: &'a [PodTemplate],
    pub disruption_budgets: &'a [DisruptionBudget],
    /// Where all these stand.
    pub places: &'a DefinitionPlaces,
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    pub policy: Policy,
    pub seed: u64,
    pub now: Timestamp,
    /// What came up while the inputs were read; the plan passes it on.
    pub notes: Vec<Note>,
}

impl Inputs<'_> {
    /// Definitions of a kind with which no plan is made as they are written, for want of the values of their variables: name, and why.
    pub fn unplanned<'i>(&'i self, kind: &'static str) -> impl Iterator<Item = (&'i str, &'i Note)> {
        let of_variables = self.notes.iter().filter(|note| note.code == NoteCode::Variables);
        let about = of_variables.filter_map(|note| Some((note.about.as_ref()?, note)));
        about.filter(move |(subject, _)| subject.kind == kind).map(|(subject, note)| (subject.name.as_str(), note))
    }

    /// Why no plan is made with this one.
    pub fn why_unplanned(&self, kind: &'static str, name: &str) -> Option<&str> {
        self.unplanned(kind).find(|(of, _)| *of == name).map(|(_, why)| why.text.as_str())
    }

    /// Why an EC2NodeClass that a pool names is not there.
    pub fn why_no_class(&self, name: &str) -> String {
        let unplanned = self.why_unplanned("EC2NodeClass", name).map(str::to_owned);
        unplanned.unwrap_or_else(|| format!("EC2NodeClass {name} is neither in the definitions nor in the cluster"))
    }
}

/// How to plan, as far as it is not in the definitions.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub packing: Packing,
    pub penalties: Penalties,
    /// As in the settings; `None`: the default.
    pub search_work: Option<u64>,
    pub scheduling: Scheduling,
    /// On the nodes of all pools together.
    pub limits: BTreeMap<String, IntOrString>,
    pub feature_gates: FeatureGates,
    pub disruption: DisruptionSettings,
    /// What EC2 lately had no capacity for, as far as the caller remembers; those past
    /// three minutes count as available again.
    pub refused: Vec<RefusedOffering>,
    /// By EC2NodeClass the zones in which it has a subnet, as the cloud said when it was asked. Of others the subnets in their status
    /// count; where there are none either, every zone of the catalog does.
    pub zones_with_subnet: BTreeMap<String, Vec<String>>,
    /// By subnet ID the addresses that are free, as the cloud said; nothing for one of which it did not. `None` where no cloud was asked.
    pub free_addresses: Option<BTreeMap<String, u64>>,
    /// The account's quotas for virtual processors, as far as they are known; empty where no cloud was asked.
    pub vcpu_quotas: Vec<VcpuQuotaUse>,
    /// By id of an image, when it was made, as far as the cloud said.
    pub images_created: BTreeMap<String, String>,
    /// Actions that the account did not allow when they were tried last.
    pub denied: Vec<DeniedPermission>,
    /// Where what is known of classes and subnets comes from a file.
    pub facts: Option<FactsOfFile>,
    /// By provider ID the instances that run, as the cloud said when it was asked. Of one that is not here nothing is known. Shared, since
    /// plans are tried with other policies.
    pub instances: Arc<BTreeMap<String, LiveInstance>>,
    /// The images that were reviewed.
    pub images: LockedImages,
    /// Who says that the region of the catalog is the right one.
    pub region_said_by: SaidBy,
    /// Whether moves of earlier plans are under way: then no node with pods goes to save money before it is known what those moves come
    /// to.
    pub moves_under_way: bool,
    /// Each as in the settings; empty: no removal of a pool asks for a confirmation.
    pub confirm_pool_removal_above: Vec<String>,
    /// Whether the removal of every pool was confirmed.
    pub removal_confirmed: bool,
    /// By `namespace/name`, pods that wait on whatever could be bought, since their places in an earlier attempt at this plan were wrong:
    /// how, in the words of the judge.
    pub withheld: BTreeMap<String, String>,
    /// The id of a capacity reservation that counts as having one instance more left: what is tried as if a node in it were gone already.
    pub instance_back: Option<String>,
    /// Nodes, by name, whose removal was refused a moment ago: others go first, except where a node must go.
    pub removals_refused: BTreeSet<String>,
    /// Pools known to come from the definitions, beside those that carry our label: when one is gone, it was removed.
    pub owned_pools: BTreeSet<String>,
}

impl Policy {
    /// What is counted for every node, whatever it is; nothing under `packing: karpenter`. What is no price is found by lint, and counts
    /// as nothing.
    pub fn price_per_node(&self) -> HourlyPrice {
        match self.packing {
            Packing::Cheapest => HourlyPrice::from_dollars(self.penalties.per_node_per_hour).unwrap_or_default(),
            Packing::Karpenter => HourlyPrice::ZERO,
        }
    }

    /// What `cutlist.yaml` says; the rest is the caller's to fill in.
    pub fn of(settings: &Settings) -> Self {
        Self {
            packing: settings.packing,
            penalties: settings.penalties.clone(),
            search_work: Some(settings.search_work),
            scheduling: settings.scheduling.clone(),
            limits: settings.limits.clone(),
            feature_gates: settings.feature_gates.clone(),
            disruption: settings.disruption.clone(),
            confirm_pool_removal_above: vec![settings.approval.confirm_pool_removal_above.clone()],
            ..Self::default()
        }
    }
}

/// The images that `cutlist.lock` has for EC2NodeClasses, which count instead of those that their terms select.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockedImages {
    /// By name of the class; only of those whose terms are the ones that were locked.
    classes: BTreeMap<String, Vec<Ami>>,
    /// Whether classes that are not locked launch nothing.
    is_required: bool,
}

impl LockedImages {
    /// What the lock has for these classes.
    pub fn of(lock: Option<&ImageLock>, classes: &[EC2NodeClass], is_required: bool) -> Self {
        let of_class = |class: &EC2NodeClass| {
            let name = class.metadata.name.as_ref()?;
            let locked = lock?.node_classes.iter().find(|locked| locked.name == *name)?;
            let counts = !locked.images.is_empty() && locked.is_for(&class.spec.ami_selector_terms);
            counts.then(|| (name.clone(), locked.images.iter().map(Ami::from).collect()))
        };
        Self { classes: classes.iter().filter_map(of_class).collect(), is_required }
    }

    /// Those of a class, the first that fits counts; `None` where the terms of the class decide.
    pub fn of_class(&self, name: &str) -> Option<&[Ami]> {
        self.classes.get(name).map(Vec::as_slice)
    }

    /// Whether the class may launch nothing, since nobody reviewed its images.
    pub fn is_missing(&self, class: &str) -> bool {
        self.is_required && !self.classes.contains_key(class)
    }
}

/// What a file of facts says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsOfFile {
    pub taken_at: Timestamp,
    /// What could not be asked, and why.
    pub not_known: Vec<String>,
}

/// What an instance really has. What the cloud did not say is not known, which is never drift.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveInstance {
    pub image_id: Option<String>,
    pub subnet_id: Option<String>,
    /// Those of its primary interface; empty where that is not known, as of an instance that ends.
    pub security_groups: Vec<SecurityGroup>,
    /// The capacity reservation that it was launched into on purpose.
    pub reservation_id: Option<String>,
}

/// An instance type, zone and capacity type that a launch was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedOffering {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub at: Timestamp,
}
