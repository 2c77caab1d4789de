//! Whether nodes of a class could be launched: what can be seen of the class alone, then dry runs of the three calls that launch.
//! Order and reasons: reference, section 1.3. A dry run that was throttled says nothing.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::super::api::launch::{FleetRequest, LaunchTemplateRequest, RunRequest};
use super::super::api::{ApiError, Ec2Api};
use super::super::failures::FailureClass;
use super::super::launch_templates::{TemplateError, tags};
use super::super::refusals;
use super::known::LastAnswer;
use super::{Resolution, cluster};
use crate::api::ec2_node_class::{AmiFamily, EC2NodeClass, EC2NodeClassSpec};
use crate::core::catalog::node_class::problems;
use crate::core::catalog::user_data::UserDataError;

/// What was allowed is asked again so much later.
const LIFETIME: SignedDuration = SignedDuration::from_mins(30);
/// And what was not.
const RETRY: SignedDuration = SignedDuration::from_mins(10);

/// Why a class is not valid, in the order in which it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    ClusterCidrResolutionFailed,
    InvalidKubeletConfiguration,
    KubeletExpressionsDisabled,
    UnsupportedKubeletConfiguration,
    TagValidationFailed,
    /// Of our own: Karpenter meets it at each launch.
    InvalidUserData,
    /// The same.
    InvalidBlockDeviceMappings,
    CreateLaunchTemplateAuthCheckFailed,
    CreateFleetAuthCheckFailed,
    RunInstancesAuthCheckFailed,
    InstanceProfileNotFound,
    UserDataSizeLimitExceeded,
}

impl Reason {
    /// Karpenter's word, where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClusterCidrResolutionFailed => "ClusterCIDRResolutionFailed",
            Self::InvalidKubeletConfiguration => "InvalidKubeletConfiguration",
            Self::KubeletExpressionsDisabled => "KubeletExpressionsDisabled",
            Self::UnsupportedKubeletConfiguration => "UnsupportedKubeletConfiguration",
            Self::TagValidationFailed => "TagValidationFailed",
            Self::InvalidUserData => "InvalidUserData",
            Self::InvalidBlockDeviceMappings => "InvalidBlockDeviceMappings",
            Self::CreateLaunchTemplateAuthCheckFailed => "CreateLaunchTemplateAuthCheckFailed",
            Self::CreateFleetAuthCheckFailed => "CreateFleetAuthCheckFailed",
            Self::RunInstancesAuthCheckFailed => "RunInstancesAuthCheckFailed",
            Self::InstanceProfileNotFound => "InstanceProfileNotFound",
            Self::UserDataSizeLimitExceeded => "UserDataSizeLimitExceeded",
        }
    }

    /// Whether it is said though subnets, images and the like are not found yet.
    pub fn comes_before_dependencies(self) -> bool {
        self < Self::TagValidationFailed
    }
}

/// What came of looking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed {
        reason: Reason,
        message: String,
    },
    /// Nothing was learnt.
    Unknown {
        why: String,
    },
}

impl Verdict {
    fn failed(reason: Reason, message: impl Into<String>) -> Self {
        Self::Failed { reason, message: message.into() }
    }
}

/// What a launch template that can not be made says of its class, before anything is asked of EC2; nothing where something of the class
/// or of the cluster has not been found out yet.
pub fn of_template(error: &TemplateError) -> Option<Verdict> {
    let reason = match error {
        TemplateError::Unresolved { .. } | TemplateError::UserData(UserDataError::Cluster { .. }) => return None,
        TemplateError::Tags(_) => Reason::TagValidationFailed,
        TemplateError::Field { .. } => Reason::InvalidBlockDeviceMappings,
        TemplateError::UserData(UserDataError::TooLarge { .. }) => Reason::UserDataSizeLimitExceeded,
        TemplateError::UserData(UserDataError::Field { field, .. }) if field.starts_with("spec.kubelet") => {
            Reason::InvalidKubeletConfiguration
        }
        TemplateError::UserData(UserDataError::Malformed { .. } | UserDataError::Field { .. }) => {
            Reason::InvalidUserData
        }
    };
    Some(Verdict::failed(reason, error.to_string()))
}

/// What is wrong with a class without any call; nothing where all is well.
pub fn look(class: &EC2NodeClassSpec, facts: &Resolution) -> Option<Verdict> {
    let family = class.resolved_ami_family();
    let cidr = if cluster::needs_service_cidr(family) { service_cidr(facts) } else { None };
    cidr.or_else(|| kubelet(class, family)).or_else(|| tags(class))
}

/// What is wrong with the addresses of Services. An answer that did not come says nothing, unless it never will.
fn service_cidr(facts: &Resolution) -> Option<Verdict> {
    let why = facts.cluster.trouble_text();
    match facts.cluster.value() {
        Some(cluster) if cluster::service_cidr(cluster).is_some() => None,
        Some(_) => {
            let message = "EKS does not say the addresses of Services of this cluster";
            Some(Verdict::failed(Reason::ClusterCidrResolutionFailed, message))
        }
        None if facts.cluster.lacks_permission() => {
            Some(Verdict::failed(Reason::ClusterCidrResolutionFailed, why.unwrap_or_default()))
        }
        None => Some(Verdict::Unknown { why: why.unwrap_or_else(|| "the cluster was not asked for yet".to_owned()) }),
    }
}

fn kubelet(class: &EC2NodeClassSpec, family: AmiFamily) -> Option<Verdict> {
    let kubelet = class.kubelet.as_ref()?;
    if kubelet.contains_key("registerWithTaints") {
        let message = "spec.kubelet.registerWithTaints is set by the controller: give taints in the NodePool";
        return Some(Verdict::failed(Reason::InvalidKubeletConfiguration, message));
    }
    if kubelet.get("maxPods").is_some_and(serde_json::Value::is_string) {
        let message = "spec.kubelet.maxPods is an expression, and the feature gate NodeClassCEL is off";
        return Some(Verdict::failed(Reason::KubeletExpressionsDisabled, message));
    }
    if let Some(problem) = problems(class).into_iter().find(|problem| problem.field.starts_with("spec.kubelet")) {
        let message = format!("{}: {}", problem.field, problem.message);
        return Some(Verdict::failed(Reason::InvalidKubeletConfiguration, message));
    }
    if matches!(family, AmiFamily::AL2023 | AmiFamily::Custom) {
        return None;
    }
    let unsupported: Vec<&str> =
        kubelet.keys().map(String::as_str).filter(|field| !family.takes_kubelet_field(field)).collect();
    if !unsupported.is_empty() {
        let message = format!("spec.kubelet: images of family {family:?} can not be told {}", unsupported.join(", "));
        return Some(Verdict::failed(Reason::UnsupportedKubeletConfiguration, message));
    }
    let servers = kubelet.get("clusterDNS").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    (servers > 1).then(|| {
        let message = format!("spec.kubelet.clusterDNS: images of family {family:?} take one address");
        Verdict::failed(Reason::UnsupportedKubeletConfiguration, message)
    })
}

fn tags(class: &EC2NodeClassSpec) -> Option<Verdict> {
    let refused = class.tags.iter().find_map(|(key, value)| tags::check(key, value).err());
    refused.map(|error| Verdict::failed(Reason::TagValidationFailed, error.to_string()))
}

/// What would be launched, to be tried without launching it.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRuns {
    /// It is made: a launch needs it anyway, templates of equal content are one, and what nothing uses is swept.
    pub template: LaunchTemplateRequest,
    pub fleet: FleetRequest,
    /// One for each subnet: one that is allowed is enough.
    pub runs: Vec<RunRequest>,
}

/// Remembers what dry runs said, by class.
#[derive(Debug, Default)]
pub struct Validator {
    by_class: BTreeMap<String, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    tried: DryRuns,
    known: LastAnswer<Result<(), (Reason, String)>>,
}

#[derive(Clone, Copy)]
enum Step {
    LaunchTemplate,
    Fleet,
    Run,
}

impl Validator {
    /// Looks at the class, then tries. `runs`: `None` while it is not known what would be launched.
    pub async fn validate(
        &mut self,
        api: &impl Ec2Api,
        class: &EC2NodeClass,
        facts: &Resolution,
        runs: Option<&DryRuns>,
        now: Timestamp,
    ) -> Verdict {
        if let Some(fault) = look(&class.spec, facts) {
            return fault;
        }
        let Some(runs) = runs else {
            return Verdict::Unknown { why: "what would be launched is not known yet".to_owned() };
        };
        let remembered = self
            .by_class
            .entry(facts.class.clone())
            .and_modify(|it| {
                if it.tried != *runs {
                    *it = Remembered { tried: runs.clone(), known: LastAnswer::default() };
                }
            })
            .or_insert_with(|| Remembered { tried: runs.clone(), known: LastAnswer::default() });
        let lifetime = if matches!(remembered.known.value(), Some(Err(_))) { RETRY } else { LIFETIME };
        if remembered.known.is_due(lifetime, now) {
            remembered.known.record(tried(api, runs, now).await, now);
        }
        // It may be new, and then passes by itself: it is tried again sooner than what somebody has to mend.
        let not_yet = remembered.known.trouble.as_ref().map(|trouble| &trouble.error);
        if let Some(error) = not_yet.filter(|error| error.class == FailureClass::NotYetKnown) {
            return Verdict::failed(Reason::InstanceProfileNotFound, error.text());
        }
        match (remembered.known.value(), remembered.known.trouble_text()) {
            (Some(Ok(())), _) => Verdict::Passed,
            (Some(Err((reason, message))), _) => Verdict::failed(*reason, message.clone()),
            (None, why) => Verdict::Unknown { why: why.unwrap_or_default() },
        }
    }

    /// Forgets classes that are gone.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.by_class.retain(|class, _| is_there(class));
    }
}

/// What the dry runs say; an error where they say nothing.
async fn tried(api: &impl Ec2Api, runs: &DryRuns, now: Timestamp) -> Result<Result<(), (Reason, String)>, ApiError> {
    let template = runs.template.clone().dated(now);
    if let Err(error) = api.create_launch_template(&template, true).await {
        return judged(api, Step::LaunchTemplate, error).await.map(Err);
    }
    match api.create_launch_template(&template, false).await {
        Err(error) if error.class != FailureClass::Conflict => {
            return judged(api, Step::LaunchTemplate, error).await.map(Err);
        }
        Ok(()) | Err(_) => {}
    }
    if let Err(error) = api.create_fleet(&runs.fleet, true).await {
        return judged(api, Step::Fleet, error).await.map(Err);
    }
    let mut first = None;
    for run in &runs.runs {
        match api.run_instances_dry_run(run).await {
            Ok(()) => return Ok(Ok(())),
            Err(error) => first = first.or(Some(error)),
        }
    }
    match first {
        Some(error) => judged(api, Step::Run, error).await.map(Err),
        None => Ok(Ok(())),
    }
}

/// What a failed dry run says of the class; the error itself where it says nothing.
async fn judged(api: &impl Ec2Api, step: Step, error: ApiError) -> Result<(Reason, String), ApiError> {
    // Credentials that are not good are nothing of the class.
    if error.class.is_passing() || error.class == FailureClass::NotYetKnown || error.is_of_credentials() {
        return Err(error);
    }
    if error.message.contains("IAM Instance Profile") {
        return Ok((Reason::InstanceProfileNotFound, error.text()));
    }
    if error.message.to_lowercase().contains("user data is limited") {
        return Ok((Reason::UserDataSizeLimitExceeded, error.text()));
    }
    let reason = match step {
        Step::LaunchTemplate => Reason::CreateLaunchTemplateAuthCheckFailed,
        Step::Fleet => Reason::CreateFleetAuthCheckFailed,
        Step::Run => Reason::RunInstancesAuthCheckFailed,
    };
    Ok((reason, refusals::explain(api, &error).await))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(fields: serde_json::Value) -> EC2NodeClassSpec {
        let mut spec = json!({ "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [{ "alias": "bottlerocket@latest" }] });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn said(fields: serde_json::Value) -> Option<(Reason, String)> {
        let spec = class(fields);
        let found = kubelet(&spec, spec.resolved_ami_family()).or_else(|| tags(&spec))?;
        match found {
            Verdict::Failed { reason, message } => Some((reason, message)),
            other => panic!("{other:?}"),
        }
    }

    fn reason(fields: serde_json::Value) -> Option<Reason> {
        said(fields).map(|(reason, _)| reason)
    }

    #[test]
    fn what_the_kubelet_of_a_family_can_not_be_told() {
        assert_eq!(reason(json!({ "kubelet": { "maxPods": 50, "systemReserved": { "cpu": "100m" } } })), None);
        let podspercore = reason(json!({ "kubelet": { "podsPerCore": 2 } }));
        assert_eq!(podspercore, Some(Reason::UnsupportedKubeletConfiguration));
        let servers = json!({ "kubelet": { "clusterDNS": ["10.0.0.10", "10.0.0.11"] } });
        assert_eq!(reason(servers), Some(Reason::UnsupportedKubeletConfiguration));
        let swap = json!({ "kubelet": { "failSwapOn": false } });
        assert!(said(swap).unwrap().1.contains("failSwapOn"));
        let on_al2023 =
            json!({ "kubelet": { "failSwapOn": false }, "amiSelectorTerms": [{ "alias": "al2023@latest" }] });
        assert_eq!(reason(on_al2023), None);
        assert_eq!(reason(json!({ "kubelet": { "maxPods": "vcpus * 8" } })), Some(Reason::KubeletExpressionsDisabled));
        assert_eq!(reason(json!({ "kubelet": { "maxPods": -1 } })), Some(Reason::InvalidKubeletConfiguration));
        let taints = json!({ "kubelet": { "registerWithTaints": [] } });
        assert_eq!(reason(taints), Some(Reason::InvalidKubeletConfiguration));
    }

    #[test]
    fn tags_that_ec2_or_the_controller_refuses() {
        for (key, value, refused) in [
            ("team", "shop", false),
            ("karpenter.sh/nodepool", "a", true),
            ("kubernetes.io/cluster/other", "owned", true),
            ("AWS:x", "a", true),
            (&*"k".repeat(128), "a", false),
            (&*"k".repeat(129), "a", true),
            ("a", &*"v".repeat(257), true),
        ] {
            let found = reason(json!({ "tags": { key: value } }));
            assert_eq!(found, refused.then_some(Reason::TagValidationFailed), "{key}");
        }
    }

    #[test]
    fn reasons_have_karpenters_names_and_order() {
        assert!(Reason::UnsupportedKubeletConfiguration.comes_before_dependencies());
        assert!(!Reason::TagValidationFailed.comes_before_dependencies());
        assert_eq!(Reason::ClusterCidrResolutionFailed.name(), "ClusterCIDRResolutionFailed");
    }
}
