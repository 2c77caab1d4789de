//! CEL rules of NodePool, and of DisruptionBudget where it has the same fields.

use serde_json::{Value, json};

use super::CelRule;
use super::forms;

// The list comes second in each rule: most keys are of other domains, and then it is not built.

/// Keys of `karpenter.k8s.aws` that instance types have. Source: the definition that Karpenter 1.14.1 installs.
macro_rules! aws_labels {
    () => {
        "['karpenter.k8s.aws/capacity-reservation-id', 'karpenter.k8s.aws/capacity-reservation-interruptible', \
          'karpenter.k8s.aws/capacity-reservation-type', 'karpenter.k8s.aws/ec2nodeclass', \
          'karpenter.k8s.aws/instance-accelerator-count', 'karpenter.k8s.aws/instance-accelerator-manufacturer', \
          'karpenter.k8s.aws/instance-accelerator-name', 'karpenter.k8s.aws/instance-capability-flex', \
          'karpenter.k8s.aws/instance-category', 'karpenter.k8s.aws/instance-cpu', \
          'karpenter.k8s.aws/instance-cpu-manufacturer', 'karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz', \
          'karpenter.k8s.aws/instance-ebs-bandwidth', 'karpenter.k8s.aws/instance-encryption-in-transit-supported', \
          'karpenter.k8s.aws/instance-family', 'karpenter.k8s.aws/instance-generation', \
          'karpenter.k8s.aws/instance-gpu-count', 'karpenter.k8s.aws/instance-gpu-manufacturer', \
          'karpenter.k8s.aws/instance-gpu-memory', 'karpenter.k8s.aws/instance-gpu-name', \
          'karpenter.k8s.aws/instance-hypervisor', 'karpenter.k8s.aws/instance-local-nvme', \
          'karpenter.k8s.aws/instance-memory', 'karpenter.k8s.aws/instance-network-bandwidth', \
          'karpenter.k8s.aws/instance-size', 'karpenter.k8s.aws/instance-tenancy', \
          'karpenter.k8s.aws/placement-group-id', 'karpenter.k8s.aws/placement-group-partition']"
    };
}

pub static LABEL_NODE_POOL: CelRule =
    CelRule::new("self.all(key, key != 'karpenter.sh/nodepool')", "label karpenter.sh/nodepool is restricted");
pub static LABEL_HOSTNAME: CelRule =
    CelRule::new("self.all(key, key != 'kubernetes.io/hostname')", "label kubernetes.io/hostname is restricted");
pub static LABEL_CORE_DOMAIN: CelRule = CelRule::new(
    "self.all(key, !key.split('/')[0].endsWith('karpenter.sh') \
     || key in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'])",
    "label domain karpenter.sh is restricted",
);
pub static LABEL_AWS_DOMAIN: CelRule = CelRule::new(
    concat!("self.all(key, !key.split('/')[0].endsWith('karpenter.k8s.aws') || key in ", aws_labels!(), ")"),
    "label domain karpenter.k8s.aws is restricted",
);
pub static LABELS: [&CelRule; 4] = [&LABEL_NODE_POOL, &LABEL_HOSTNAME, &LABEL_CORE_DOMAIN, &LABEL_AWS_DOMAIN];

/// The rule is for pools only, since the requirements of a NodeClaim name its pool.
pub static KEY_NODE_POOL: CelRule = CelRule::new(
    "self.all(requirement, requirement.key != 'karpenter.sh/nodepool')",
    "the key karpenter.sh/nodepool can not be required",
);
pub static POOL_REQUIREMENTS: [&CelRule; 1] = [&KEY_NODE_POOL];

pub static KEY_HOSTNAME: CelRule =
    CelRule::new("self != 'kubernetes.io/hostname'", "the key kubernetes.io/hostname can not be required");
pub static KEY_CORE_DOMAIN: CelRule = CelRule::new(
    "!self.split('/')[0].endsWith('karpenter.sh') || self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool']",
    "keys of the domain karpenter.sh can not be required",
);
pub static KEY_AWS_DOMAIN: CelRule = CelRule::new(
    concat!("!self.split('/')[0].endsWith('karpenter.k8s.aws') || self in ", aws_labels!()),
    "no instance type has this key of the domain karpenter.k8s.aws",
);
pub static REQUIREMENT_KEY: [&CelRule; 3] = [&KEY_HOSTNAME, &KEY_CORE_DOMAIN, &KEY_AWS_DOMAIN];

pub static IN_WITHOUT_VALUES: CelRule = CelRule::new(
    "self.operator != 'In' || (has(self.values) && self.values.size() > 0)",
    "the operator In needs at least one value",
)
.at(".operator");
pub static COMPARISON: CelRule = CelRule::new(
    "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && self.values.size() == 1 \
     && self.values[0].matches('^[0-9]+$') && (self.values[0].size() < 19 \
     || (self.values[0].size() == 19 && self.values[0] <= '9223372036854775807')))",
    "Gt, Lt, Gte and Lte need one value, a whole number of at least 0",
)
.at(".operator");
pub static MIN_VALUES: CelRule = CelRule::new(
    "self.operator != 'In' || !has(self.minValues) || !has(self.values) || self.values.size() >= self.minValues",
    "minValues asks for more values than the list has",
)
.at(".minValues");
pub static REQUIREMENT: [&CelRule; 3] = [&IN_WITHOUT_VALUES, &COMPARISON, &MIN_VALUES];

pub static SCHEDULE_WITH_DURATION: CelRule = CelRule::new(
    "has(self.schedule) == has(self.duration)",
    "schedule and duration belong together: a window has a beginning and a length",
);
pub static BUDGET: [&CelRule; 1] = [&SCHEDULE_WITH_DURATION];

pub static WEIGHT_OF_STATIC_POOL: CelRule = CelRule::new(
    "!has(self.replicas) || !has(self.weight)",
    "a pool with replicas has no weight: nothing chooses it, it always has its nodes",
)
.at(".weight");
pub static LIMITS_OF_STATIC_POOL: CelRule = CelRule::new(
    "!has(self.replicas) || !has(self.limits) || self.limits.size() == 0 \
     || (self.limits.size() == 1 && 'nodes' in self.limits)",
    "a pool with replicas can limit only `nodes`",
)
.at(".limits");
pub static STATIC_STAYS_STATIC: CelRule = CelRule::new(
    "has(self.replicas) == has(oldSelf.replicas)",
    "a pool can not change between static (with replicas) and dynamic",
);
pub static NODE_POOL_SPEC: [&CelRule; 3] = [&WEIGHT_OF_STATIC_POOL, &LIMITS_OF_STATIC_POOL, &STATIC_STAYS_STATIC];

pub static IMMUTABLE: CelRule = CelRule::new("self == oldSelf", "the field can not be changed");
pub static UNCHANGING: [&CelRule; 1] = [&IMMUTABLE];

/// Schema of the values of labels.
pub fn label_value() -> Value {
    json!({ "type": "string", "maxLength": 63, "pattern": forms::LABEL_VALUE.pattern })
}
