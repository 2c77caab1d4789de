//! CEL rules of NodePlan.

use super::CelRule;

/// What was shown is what is approved. The rule does not see fields that no schema names, such as those of `plan`. The
/// policy in `deploy/` guards those, and the controller compares them.
pub static IMMUTABLE: CelRule = CelRule::new("self == oldSelf", "a plan that was posted never changes");
pub static SPEC: [&CelRule; 1] = [&IMMUTABLE];
