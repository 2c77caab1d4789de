//! EC2 of the embedded world.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::ec2_node_class::{EC2NodeClass, EC2NodeClassStatus};
use crate::api::node_claim::NodeClaim;
use crate::core::catalog::Catalog;
use crate::core::plan::EndCause;
use crate::ports::{
    ClassCondition, ClassFacts, Cloud, Instance, InstanceEnd, LaunchFailure, LaunchRequest, Message, Offering,
    PortError, PortErrorKind,
};

use super::EmbeddedWorld;
use super::machines::{MachineRefusal, security_groups};
use super::names::name_of;
use super::state::World;

/// As SQS gives them.
const MESSAGES_AT_ONCE: usize = 10;

#[derive(Clone)]
pub struct EmbeddedCloud {
    world: EmbeddedWorld,
}

impl EmbeddedCloud {
    pub(super) fn new(world: EmbeddedWorld) -> Self {
        Self { world }
    }

    /// What the status of a class says, by what is there now; `None` where that is nothing which changes.
    fn found(&self, class: &EC2NodeClass) -> Option<EC2NodeClassStatus> {
        let mut found = class.status.clone()?;
        if found.security_groups.is_empty() && found.capacity_reservations.is_empty() {
            return None;
        }
        if !found.security_groups.is_empty() {
            found.security_groups = security_groups(class);
        }
        self.world.with(|world| world.count_reserved(&mut found.capacity_reservations));
        Some(EC2NodeClassStatus { conditions: Vec::new(), ..found })
    }
}

impl Cloud for EmbeddedCloud {
    /// Offerings that ran out lately are shown as unavailable.
    async fn catalog(&self) -> Result<Arc<Catalog>, PortError> {
        Ok(self.world.with(|world| {
            let now = world.now;
            world.unavailable_until.retain(|_, until| *until > now);
            if world.unavailable_until.is_empty() {
                return world.catalog.clone();
            }
            let mut catalog = world.catalog.as_ref().clone();
            for instance_type in &mut catalog.instance_types {
                for offering in &mut instance_type.offerings {
                    let key = Offering {
                        instance_type: instance_type.name.clone(),
                        zone: offering.zone.clone(),
                        capacity_type: offering.capacity_type.clone(),
                    };
                    offering.available &= !world.unavailable_until.contains_key(&key);
                }
            }
            Arc::new(catalog)
        }))
    }

    /// What the status of the class says, also where that is that something was not found. Where it says nothing of subnets, every zone of
    /// the region, since the embedded account has a tagged subnet in each. Security groups that the class names are found.
    async fn describe(&self, class: &EC2NodeClass) -> Result<ClassFacts, PortError> {
        let subnets = class.status.iter().flat_map(|status| &status.subnets);
        let mut zones: BTreeSet<String> = subnets.map(|subnet| subnet.zone.clone()).collect();
        let said = class.status_now().into_iter().flat_map(|status| &status.conditions);
        let failed: Vec<&Condition> = said.filter(|it| it.status == "False" && it.type_ != "Ready").collect();
        let has_no_subnet = failed.iter().any(|it| it.type_ == "SubnetsReady");
        if zones.is_empty() && !has_no_subnet {
            let types = self.world.with(|world| world.catalog.clone());
            let offerings = types.instance_types.iter().flat_map(|instance_type| &instance_type.offerings);
            zones = offerings.map(|offering| offering.zone.clone()).collect();
        }
        let (status, reason, message) = match zones.is_empty() {
            true => (false, "SubnetsNotFound", "subnetSelectorTerms found no subnet"),
            false => (true, "SubnetsReady", ""),
        };
        let condition = ClassCondition {
            type_: "SubnetsReady".to_owned(),
            status: Some(status),
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        let found = self.found(class);
        let others = failed.into_iter().filter(|it| it.type_ != condition.type_).map(|it| ClassCondition {
            type_: it.type_.clone(),
            status: Some(false),
            reason: it.reason.clone(),
            message: it.message.clone(),
        });
        let conditions = others.chain([condition.clone()]).collect();
        let zones = zones.into_iter().collect();
        Ok(ClassFacts { zones, found, conditions, ..ClassFacts::default() })
    }

    async fn launch(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        let launch = |claim: &&NodeClaim| {
            self.world.act(|world| world.launch(request, claim)).map_err(|refusal| failure(refusal, request, claim))
        };
        request.claims.iter().map(launch).collect()
    }

    async fn terminate(&self, provider_id: &str) -> Result<(), PortError> {
        if self.world.act(|world| world.terminate(provider_id)) {
            return Ok(());
        }
        Err(PortError { operation: format!("terminate {provider_id}"), kind: PortErrorKind::NotFound, source: None })
    }

    async fn instances(&self) -> Result<Vec<Instance>, PortError> {
        Ok(self.world.with(|world| world.instances_told()))
    }

    async fn ended(&self, provider_ids: &[&str]) -> Result<Vec<InstanceEnd>, PortError> {
        const CODE: &str = "Embedded";
        let end = |id: &&str, cause: EndCause| InstanceEnd {
            provider_id: (*id).to_owned(),
            cause,
            code: CODE.to_owned(),
            text: format!("the embedded cloud ended it, as for {cause:?} ({CODE})"),
        };
        let ended = |world: &World| {
            let known = provider_ids.iter().filter_map(|id| Some((id, world.ended.get(*id)?.0)));
            known.map(|(id, cause)| end(id, cause)).collect()
        };
        Ok(self.world.with(|world| ended(world)))
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        Ok(self.world.with(|world| world.messages.values().take(MESSAGES_AT_ONCE).cloned().collect()))
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        self.world.with(|world| world.messages.remove(receipt));
        Ok(())
    }
}

fn failure(refusal: MachineRefusal, request: &LaunchRequest<'_>, claim: &NodeClaim) -> LaunchFailure {
    let tried = request.alternatives;
    let (kind, why) = match &refusal {
        MachineRefusal::NoCapacity => {
            let why = format!("EC2 has no capacity in any of {} offerings", tried.len());
            (PortErrorKind::InsufficientCapacity, why)
        }
        MachineRefusal::UnknownInstanceType(name) => {
            (PortErrorKind::Permanent, format!("EC2 does not offer {name} there"))
        }
        MachineRefusal::NoImage => {
            let class = &claim.spec.node_class_ref.name;
            (PortErrorKind::Permanent, format!("EC2NodeClass {class} has no image for any type that was asked for"))
        }
        MachineRefusal::NoAlternatives => (PortErrorKind::Permanent, "no instance type was asked for".to_owned()),
    };
    // It was asked for any of them, so it has none.
    let exhausted = match refusal {
        MachineRefusal::NoCapacity => tried.iter().map(Offering::from).collect(),
        _ => Vec::new(),
    };
    let operation = format!("launch {}: {why}", name_of(&claim.metadata));
    LaunchFailure { error: PortError { operation, kind, source: None }, exhausted }
}
