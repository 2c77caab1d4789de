//! CEL rules of CapacityBuffer.

use super::CelRule;

pub static TEMPLATE_AMOUNT: CelRule = CelRule::new(
    "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
    "a buffer with podTemplateRef needs replicas or limits",
);
pub static BOTH_REFERENCES: CelRule = CelRule::new(
    "!has(self.podTemplateRef) || !has(self.scalableRef)",
    "the buffer has both podTemplateRef and scalableRef",
);
pub static CAPACITY_BUFFER_SPEC: [&CelRule; 2] = [&TEMPLATE_AMOUNT, &BOTH_REFERENCES];
