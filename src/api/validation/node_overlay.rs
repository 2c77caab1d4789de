//! CEL rules of NodeOverlay.

use super::CelRule;
use super::node_pool::{COMPARISON, IN_WITHOUT_VALUES, KEY_CORE_DOMAIN, KEY_HOSTNAME};

/// Source: the provider's copy of the definition, whose list lacks what instances only get when they are launched.
pub static KEY_AWS_DOMAIN: CelRule = CelRule::new(
    "!self.split('/')[0].endsWith('karpenter.k8s.aws') \
     || !(self.split('/')[1] in ['instance-tenancy', 'capacity-reservation-id', 'capacity-reservation-type', \
     'capacity-reservation-interruptible', 'placement-group-id', 'placement-group-partition'])",
    "an overlay can not be for a tenancy, a capacity reservation or a placement group",
);
pub static REQUIREMENT_KEY: [&CelRule; 4] =
    [&KEY_HOSTNAME, &KEY_CORE_DOMAIN, &super::node_pool::KEY_AWS_DOMAIN, &KEY_AWS_DOMAIN];

pub static NOT_IN_WITHOUT_VALUES: CelRule = CelRule::new(
    "self.operator != 'NotIn' || (has(self.values) && self.values.size() > 0)",
    "the operator NotIn needs at least one value",
)
.at(".operator");
pub static REQUIREMENT: [&CelRule; 3] = [&IN_WITHOUT_VALUES, &NOT_IN_WITHOUT_VALUES, &COMPARISON];

pub static ONE_PRICE: CelRule = CelRule::new(
    "!has(self.price) || !has(self.priceAdjustment)",
    "an overlay has a price or an adjustment of the price, not both",
)
.at(".priceAdjustment");
pub static SPEC: [&CelRule; 1] = [&ONE_PRICE];

pub static EXTENDED_RESOURCES: CelRule = CelRule::new(
    "self.all(resource, !(resource in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
    "cpu, memory, ephemeral-storage and pods of a node are those of its instance type",
);
pub static CAPACITY: [&CelRule; 1] = [&EXTENDED_RESOURCES];
