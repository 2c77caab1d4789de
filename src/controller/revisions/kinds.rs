//! The kinds of definitions that are applied to a cluster. Who does the same with all of them names none.

use k8s_openapi::api::core::v1::PodTemplate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_pool::NodePool;
use crate::core::snapshot::kinds::Stored;
use crate::definitions::{Definition, Definitions};

/// One of them.
pub trait Applied: Stored {
    fn metadata(&self) -> &ObjectMeta;
    fn of(definitions: &Definitions) -> &[Definition<Self>];
    fn of_mut(definitions: &mut Definitions) -> &mut Vec<Definition<Self>>;
}

/// What is done with each of them.
pub trait ForEachKind {
    fn kind<T: Applied>(&mut self);
}

macro_rules! applied {
    ($($kind:ident in $field:ident;)*) => {
        $(impl Applied for $kind {
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn of(definitions: &Definitions) -> &[Definition<Self>] {
                &definitions.$field
            }
            fn of_mut(definitions: &mut Definitions) -> &mut Vec<Definition<Self>> {
                &mut definitions.$field
            }
        })*

        /// In the order in which they go.
        pub fn for_each_kind(work: &mut impl ForEachKind) {
            $(work.kind::<$kind>();)*
        }
    };
}

applied! {
    NodePool in node_pools;
    EC2NodeClass in node_classes;
    NodeOverlay in node_overlays;
    CapacityBuffer in capacity_buffers;
    PodTemplate in pod_templates;
    DisruptionBudget in disruption_budgets;
}
