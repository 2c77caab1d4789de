//! CEL rules of NodePlan.

use super::CelRule;

/// What was shown is what is approved. Fields that no schema names, as those of `plan`, are not seen by it: the policy in `deploy/` is for
/// them, and the controller compares.
pub static IMMUTABLE: CelRule = CelRule::new("self == oldSelf", "a plan that was posted never changes");
pub static SPEC: [&CelRule; 1] = [&IMMUTABLE];
