//! Asks EC2 for instances: for all claims of one launch in one call, since EC2 counts calls.
//!
//! What came of it is written claim by claim. A claim whose answer was lost asks again with the same launch, and gets the instance that
//! runs for it.

use std::collections::BTreeMap;

use futures::future::join_all;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_claims;
use crate::controller::events::Event;
use crate::controller::observed::view::{label, name_of, provider_id, uid_of};
use crate::core::catalog::Catalog;
use crate::core::catalog::node_class::for_node_class;
use crate::core::inputs::RefusedOffering;
use crate::core::lifecycle::claims::{LaunchedInstance, launch_failed, launched};
use crate::core::plan::Alternative;
use crate::core::snapshot::Objects;
use crate::ports::{Cloud, Cluster, Instance, LaunchFailure, LaunchRequest, LaunchRules, PortError, PortErrorKind};

use super::adoption;
use super::effects::{Effects, allocatable};
use super::together;

/// Claims that one call asks for. Source: the largest target capacity of an instant fleet that the reference asks for.
const CLAIMS_MAX: usize = 1_000;
/// Calls that are under way at the same time.
const CALLS_TOGETHER_MAX: usize = 8;

/// Launches all of these claims, and writes what came of it. `all`: every claim of the cluster.
pub async fn launch<K: Cluster, E: Cloud>(
    claims: &[&NodeClaim],
    all: &Objects<NodeClaim>,
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    let (to_adopt, others): (Vec<&NodeClaim>, Vec<&NodeClaim>) =
        claims.iter().copied().partition(|claim| adoption::adopts(claim).is_some());
    together(&to_adopt, |claim| unless_overtaken(effects.adopted(claim), claim, effects)).await?;
    let launches = Launch::of(&others);
    let unplanned: Vec<&NodeClaim> =
        others.into_iter().filter(|claim| of_claims::alternatives(claim).is_none()).collect();
    together(&unplanned, |claim| unless_overtaken(effects.not_planned(claim), claim, effects)).await?;
    for at_once in launches.chunks(CALLS_TOGETHER_MAX) {
        let outcomes = join_all(at_once.iter().map(|launch| launch.carry_out(all, effects))).await;
        let are_answered = outcomes.into_iter().collect::<Result<Vec<bool>, PortError>>()?;
        // Each may take as long as a call may: where EC2 is silent, the rest waits for the next look, and nothing else does. Those that go on
        // beside this look keep nobody waiting.
        if !are_answered.contains(&true) && !effects.around.cloud.is_asking() {
            break;
        }
    }
    Ok(())
}

/// Claims that ask for the same in one call.
struct Launch<'c> {
    id: &'c str,
    claims: Vec<&'c NodeClaim>,
    alternatives: Vec<Alternative>,
}

impl<'c> Launch<'c> {
    /// The launches of these claims, in the order of their first claims. O(claims log claims).
    fn of(claims: &[&'c NodeClaim]) -> Vec<Self> {
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        let mut launches: Vec<Self> = Vec::new();
        for claim in claims {
            let Some(alternatives) = of_claims::alternatives(claim) else { continue };
            let id = claim.launch_id();
            let has_room = |launch: &&mut Self| launch.claims.len() < CLAIMS_MAX;
            match open.get(id).and_then(|place| launches.get_mut(*place)).filter(has_room) {
                Some(launch) => launch.claims.push(claim),
                None => {
                    open.insert(id, launches.len());
                    launches.push(Self { id, claims: vec![claim], alternatives });
                }
            }
        }
        launches
    }

    /// Whether EC2 said something of one of them.
    async fn carry_out<K: Cluster, E: Cloud>(
        &self,
        all: &Objects<NodeClaim>,
        effects: &Effects<'_, K, E>,
    ) -> Result<bool, PortError> {
        let around = effects.around;
        let of_launch = all.iter().filter(|claim| claim.launch_id() == self.id);
        let request = LaunchRequest {
            launch_id: self.id,
            installation: around.installation,
            claims: self.claims.clone(),
            assigned: of_launch.filter_map(provider_id).collect(),
            class: self.claims.first().and_then(|claim| class_of(claim, around.node_classes)),
            images: self.claims.first().and_then(|claim| around.images.of_class(&claim.spec.node_class_ref.name)),
            alternatives: &self.alternatives,
            rules: self.rules(around.launch_rules, around.catalog),
        };
        let mut answers: Vec<_> = self.claims.iter().zip(around.cloud.launch(&request).await).collect();
        let has_answer = |answer: &Result<Instance, LaunchFailure>| {
            !answer.as_ref().is_err_and(|failure| failure.error.kind == PortErrorKind::Temporary)
        };
        let is_answered = answers.iter().any(|(_, answer)| has_answer(answer));
        let mut outcome = Ok(());
        // Each answer is written, also after one that failed: an instance that nobody notes would have to be found again.
        while !answers.is_empty() {
            let rest = answers.split_off(answers.len().min(super::CLAIMS_TOGETHER_MAX));
            let at_once = std::mem::replace(&mut answers, rest);
            let written = at_once.into_iter().map(|(claim, answer)| effects.answered(claim, answer));
            let written = join_all(written).await;
            outcome = written.into_iter().fold(outcome, Result::and);
        }
        outcome.map(|()| is_answered)
    }

    /// The plan's order counts only where its prices are others than those by which EC2 chooses. Reserved offerings have a price of their own,
    /// and nothing to choose by.
    fn rules(&self, rules: LaunchRules, catalog: &Catalog) -> LaunchRules {
        let is_priced_otherwise = |alternative: &Alternative| {
            let Alternative { instance_type, zone, capacity_type, price_per_hour } = alternative;
            let sold = catalog.instance_types.iter().find(|it| it.name == *instance_type);
            let mut offerings = sold.into_iter().flat_map(|it| it.offerings.iter());
            let offering = offerings.find(|it| it.zone == *zone && it.capacity_type == *capacity_type);
            capacity_type != keys::RESERVED && offering.is_some_and(|it| it.price != *price_per_hour)
        };
        LaunchRules { keeps_order: rules.keeps_order && self.alternatives.iter().any(is_priced_otherwise), ..rules }
    }
}

fn class_of<'a>(claim: &NodeClaim, classes: &'a [EC2NodeClass]) -> Option<&'a EC2NodeClass> {
    let name = claim.spec.node_class_ref.name.as_str();
    classes.iter().find(|class| class.metadata.name.as_deref() == Some(name))
}

/// A claim that somebody changed meanwhile is looked at again, and so is one to which somebody lets nothing be written.
async fn unless_overtaken<K: Cluster, E: Cloud>(
    call: impl Future<Output = Result<(), PortError>>,
    claim: &NodeClaim,
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    match call.await {
        Err(error) => effects.failed_for(claim, error),
        Ok(()) => Ok(()),
    }
}

impl<K: Cluster, E: Cloud> Effects<'_, K, E> {
    async fn answered(&self, claim: &NodeClaim, answer: Result<Instance, LaunchFailure>) -> Result<(), PortError> {
        let written = async {
            match answer {
                Ok(instance) => self.launched(claim, instance).await,
                Err(failure) => self.not_launched(claim, failure).await,
            }
        };
        unless_overtaken(written, claim, self).await
    }

    async fn not_launched(&self, claim: &NodeClaim, failure: LaunchFailure) -> Result<(), PortError> {
        let LaunchFailure { error, exhausted } = failure;
        if !exhausted.is_empty() {
            self.catalog_changed();
        }
        // For a while nobody asks for them.
        self.memory().refused.extend(exhausted.into_iter().map(|offering| RefusedOffering {
            instance_type: offering.instance_type,
            zone: offering.zone,
            capacity_type: offering.capacity_type,
            at: self.around.now,
        }));
        let node_claim = name_of(claim).to_owned();
        match error.kind {
            PortErrorKind::InsufficientCapacity => {
                self.catalog_changed();
                self.wrote();
                self.around.cluster.delete_node_claim(&node_claim, uid_of(claim)).await?;
                self.say(&Event::InsufficientCapacity { node_claim, error: error.to_string() });
                Ok(())
            }
            PortErrorKind::Permanent => {
                let text = error.to_string();
                if self.note_failure(claim, "LaunchFailed", &text).await? {
                    self.say(&Event::LaunchFailed { node_claim, error: text });
                }
                Ok(())
            }
            // The same is asked again, and whatever else there is to do need not wait for EC2.
            _ => {
                self.trouble(error);
                Ok(())
            }
        }
    }

    /// Nobody planned for it. It stays as it is until its time is over, and says why.
    async fn not_planned(&self, claim: &NodeClaim) -> Result<(), PortError> {
        let message = "the NodeClaim was not made by a plan of Cutlist";
        self.note_failure(claim, "NotPlanned", message).await.map(|_| ())
    }

    /// A claim that was made for an instance that runs.
    async fn adopted(&self, claim: &NodeClaim) -> Result<(), PortError> {
        let Some(provider_id) = adoption::adopts(claim) else { return Ok(()) };
        let instances = match self.around.cloud.instances().await {
            Ok(instances) => instances,
            Err(error) => {
                self.trouble(error);
                return Ok(());
            }
        };
        if let Some(instance) = instances.into_iter().find(|instance| instance.provider_id == provider_id) {
            return self.launched(claim, instance).await;
        }
        let message = "the instance that the NodeClaim was made for is gone";
        self.note_failure(claim, "InstanceGone", message).await.map(|_| ())
    }

    /// `true` when it did not say so before.
    async fn note_failure(&self, claim: &NodeClaim, reason: &str, message: &str) -> Result<bool, PortError> {
        let written = launch_failed(claim, reason, message, self.around.now);
        let is_new = written != *claim;
        if is_new {
            self.write_claim(&written).await?;
        }
        Ok(is_new)
    }

    async fn launched(&self, claim: &NodeClaim, instance: Instance) -> Result<(), PortError> {
        let around = self.around;
        let types = &around.catalog.instance_types;
        let instance_type = types.iter().find(|instance_type| instance_type.name == instance.instance_type);
        let class = class_of(claim, around.node_classes);
        // The class may change what a node of the type can hold: its kubelet settings, its disks. So may overlays.
        let of_class = |instance_type| match class {
            Some(class) => for_node_class(instance_type, &class.spec),
            None => instance_type.clone(),
        };
        let of_pool = |it| around.overlaid.of_pool(label(claim, keys::NODE_POOL), it);
        let instance_type = instance_type.map(of_class).map(of_pool);
        let facts = LaunchedInstance {
            provider_id: instance.provider_id.clone(),
            image_id: instance.image_id,
            instance_type: instance.instance_type.clone(),
            zone: instance.zone.clone(),
            capacity_type: instance.capacity_type.clone(),
            region: around.catalog.region.clone(),
        };
        let written = launched(claim, &facts, instance_type.as_ref(), class, around.now);
        let is_adopted = adoption::adopts(claim).is_some();
        let written = if is_adopted { adoption::with_hashes_of(written, claim) } else { written };
        self.write_claim(&written).await?;
        self.say(&Event::LaunchedNodeClaim {
            node_claim: name_of(claim).to_owned(),
            provider_id: instance.provider_id,
            instance_type: instance.instance_type,
            zone: instance.zone,
            capacity_type: instance.capacity_type,
            allocatable: allocatable(&written),
        });
        if self.awaited.contains(name_of(claim)) {
            self.say(&Event::AwaitingReplacement { node_claim: name_of(claim).to_owned() });
        }
        Ok(())
    }
}
