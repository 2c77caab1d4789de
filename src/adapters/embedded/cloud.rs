//! EC2 of the embedded world.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::catalog::Catalog;
use crate::ports::{Cloud, Instance, LaunchRequest, Message, PortError, PortErrorKind};

use super::EmbeddedWorld;
use super::machines::{LaunchRefusal, OfferingKey};

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
                    let key = OfferingKey {
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

    /// Those of the subnets in the status of the class; where it has none, every zone of the region, since the embedded account has a
    /// tagged subnet in each.
    async fn zones_with_subnet(&self, node_class: &str) -> Result<Vec<String>, PortError> {
        Ok(self.world.with(|world| {
            let status = world.node_classes.get(node_class).and_then(|class| class.status.as_ref());
            let found = status.map(|status| status.subnets.as_slice()).unwrap_or_default();
            if !found.is_empty() {
                return found.iter().map(|it| it.zone.clone()).collect::<BTreeSet<_>>().into_iter().collect();
            }
            let offerings = world.catalog.instance_types.iter().flat_map(|instance_type| &instance_type.offerings);
            offerings.map(|offering| offering.zone.clone()).collect::<BTreeSet<_>>().into_iter().collect()
        }))
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Instance, PortError> {
        self.world.act(|world| world.launch(request)).map_err(|refusal| {
            let (kind, why) = match refusal {
                LaunchRefusal::NoCapacity => {
                    let tried = request.alternatives.len();
                    (PortErrorKind::InsufficientCapacity, format!("EC2 has no capacity in any of {tried} offerings"))
                }
                LaunchRefusal::UnknownInstanceType(name) => {
                    (PortErrorKind::Permanent, format!("EC2 does not offer {name} there"))
                }
                LaunchRefusal::NoAlternatives => {
                    (PortErrorKind::Permanent, "no instance type was asked for".to_owned())
                }
            };
            PortError { operation: format!("launch {}: {why}", request.node_claim), kind, source: None }
        })
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

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        Ok(self.world.with(|world| world.messages.values().take(MESSAGES_AT_ONCE).cloned().collect()))
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        self.world.with(|world| world.messages.remove(receipt));
        Ok(())
    }
}
