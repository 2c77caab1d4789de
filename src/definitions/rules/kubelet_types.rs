//! CL0520: the types of the kubelet's settings. The schema of a class leaves them open, and the controller decodes them strictly: a
//! class with a value of another type never becomes ready.

use serde_json::Value;

use super::Rule;
use crate::api::duration::go_nanoseconds;
use crate::core::model;
use crate::definitions::diagnostic::Severity::Error;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::suggest;

use Type::{Any, Duration, Fields, Flag, List, Map, Number, Quantity, Text, Whole};

pub(super) const CLASSES: &[Kind] = &[Kind::EC2NodeClass];
pub(super) const KUBELET: &str = "/spec/kubelet";

pub static TYPE: Rule = Rule::document(
    "CL0520",
    "kubelet-type",
    Error,
    "Settings of the kubelet have the types of KubeletConfiguration.",
    CLASSES,
    types,
);

pub static RULES: &[&Rule] = &[&TYPE];

/// What a setting holds.
#[derive(Clone, Copy, Debug)]
enum Type {
    Text,
    Flag,
    /// A number without a fraction.
    Whole,
    Number,
    /// As Go writes it: `1m30s`.
    Duration,
    Quantity,
    List(&'static Type),
    /// A mapping from any key to values of this type.
    Map(&'static Type),
    Fields(&'static [(&'static str, Type)]),
    /// A value of several types, or of one that is not known here.
    Any,
}

/// Source: k8s.io/kubelet/config/v1beta1 of Kubernetes 1.35.
const SETTINGS: &[(&str, Type)] = &[
    ("address", Text),
    ("allowedUnsafeSysctls", List(&Text)),
    ("apiVersion", Text),
    (
        "authentication",
        Fields(&[
            ("anonymous", Fields(&[("enabled", Flag)])),
            ("webhook", Fields(&[("cacheTTL", Duration), ("enabled", Flag)])),
            ("x509", Fields(&[("clientCAFile", Text)])),
        ]),
    ),
    (
        "authorization",
        Fields(&[
            ("mode", Text),
            ("webhook", Fields(&[("cacheAuthorizedTTL", Duration), ("cacheUnauthorizedTTL", Duration)])),
        ]),
    ),
    ("cgroupDriver", Text),
    ("cgroupRoot", Text),
    ("cgroupsPerQOS", Flag),
    ("clusterDNS", List(&Text)),
    ("clusterDomain", Text),
    ("configMapAndSecretChangeDetectionStrategy", Text),
    ("containerLogMaxFiles", Whole),
    ("containerLogMaxSize", Text),
    ("containerLogMaxWorkers", Whole),
    ("containerLogMonitorInterval", Duration),
    ("containerRuntimeEndpoint", Text),
    ("contentType", Text),
    ("cpuCFSQuota", Flag),
    ("cpuCFSQuotaPeriod", Duration),
    ("cpuManagerPolicy", Text),
    ("cpuManagerPolicyOptions", Map(&Text)),
    ("cpuManagerReconcilePeriod", Duration),
    ("crashLoopBackOff", Fields(&[("maxContainerRestartPeriod", Duration)])),
    ("enableContentionProfiling", Flag),
    ("enableControllerAttachDetach", Flag),
    ("enableDebugFlagsHandler", Flag),
    ("enableDebuggingHandlers", Flag),
    ("enableProfilingHandler", Flag),
    ("enableServer", Flag),
    ("enableSystemLogHandler", Flag),
    ("enableSystemLogQuery", Flag),
    ("enforceNodeAllocatable", List(&Text)),
    ("eventBurst", Whole),
    ("eventRecordQPS", Whole),
    ("evictionHard", Map(&Text)),
    ("evictionMaxPodGracePeriod", Whole),
    ("evictionMinimumReclaim", Map(&Text)),
    ("evictionPressureTransitionPeriod", Duration),
    ("evictionSoft", Map(&Text)),
    ("evictionSoftGracePeriod", Map(&Duration)),
    ("failCgroupV1", Flag),
    ("failSwapOn", Flag),
    ("featureGates", Map(&Flag)),
    ("fileCheckFrequency", Duration),
    ("hairpinMode", Text),
    ("healthzBindAddress", Text),
    ("healthzPort", Whole),
    ("httpCheckFrequency", Duration),
    ("imageGCHighThresholdPercent", Whole),
    ("imageGCLowThresholdPercent", Whole),
    ("imageMaximumGCAge", Duration),
    ("imageMinimumGCAge", Duration),
    ("imagePullCredentialsVerificationPolicy", Text),
    ("imageServiceEndpoint", Text),
    ("iptablesDropBit", Whole),
    ("iptablesMasqueradeBit", Whole),
    ("kernelMemcgNotification", Flag),
    ("kind", Text),
    ("kubeAPIBurst", Whole),
    ("kubeAPIQPS", Whole),
    ("kubeReserved", Map(&Text)),
    ("kubeReservedCgroup", Text),
    ("kubeletCgroups", Text),
    ("localStorageCapacityIsolation", Flag),
    (
        "logging",
        Fields(&[
            ("flushFrequency", Any),
            ("format", Text),
            ("options", Any),
            ("verbosity", Whole),
            ("vmodule", List(&Fields(&[("filePattern", Text), ("verbosity", Whole)]))),
        ]),
    ),
    ("makeIPTablesUtilChains", Flag),
    ("maxOpenFiles", Whole),
    ("maxParallelImagePulls", Whole),
    ("maxPods", Whole),
    ("memoryManagerPolicy", Text),
    ("memorySwap", Fields(&[("swapBehavior", Text)])),
    ("memoryThrottlingFactor", Number),
    ("mergeDefaultEvictionSettings", Flag),
    ("nodeLeaseDurationSeconds", Whole),
    ("nodeStatusMaxImages", Whole),
    ("nodeStatusReportFrequency", Duration),
    ("nodeStatusUpdateFrequency", Duration),
    ("oomScoreAdj", Whole),
    ("podCIDR", Text),
    ("podLogsDir", Text),
    ("podPidsLimit", Whole),
    ("podsPerCore", Whole),
    ("port", Whole),
    ("preloadedImagesVerificationAllowlist", List(&Text)),
    ("protectKernelDefaults", Flag),
    ("providerID", Text),
    ("qosReserved", Map(&Text)),
    ("readOnlyPort", Whole),
    ("registerNode", Flag),
    ("registryBurst", Whole),
    ("registryPullQPS", Whole),
    ("reservedMemory", List(&Fields(&[("limits", Map(&Quantity)), ("numaNode", Whole)]))),
    ("reservedSystemCPUs", Text),
    ("resolvConf", Text),
    ("rotateCertificates", Flag),
    ("runOnce", Flag),
    ("runtimeRequestTimeout", Duration),
    ("seccompDefault", Flag),
    ("serializeImagePulls", Flag),
    ("serverTLSBootstrap", Flag),
    ("showHiddenMetricsForVersion", Text),
    ("shutdownGracePeriod", Duration),
    ("shutdownGracePeriodByPodPriority", List(&Fields(&[("priority", Whole), ("shutdownGracePeriodSeconds", Whole)]))),
    ("shutdownGracePeriodCriticalPods", Duration),
    ("singleProcessOOMKill", Flag),
    ("staticPodPath", Text),
    ("staticPodURL", Text),
    ("staticPodURLHeader", Map(&List(&Text))),
    ("streamingConnectionIdleTimeout", Duration),
    ("syncFrequency", Duration),
    ("systemCgroups", Text),
    ("systemReserved", Map(&Text)),
    ("systemReservedCgroup", Text),
    ("tlsCertFile", Text),
    ("tlsCipherSuites", List(&Text)),
    ("tlsMinVersion", Text),
    ("tlsPrivateKeyFile", Text),
    ("topologyManagerPolicy", Text),
    ("topologyManagerPolicyOptions", Map(&Text)),
    ("topologyManagerScope", Text),
    ("tracing", Fields(&[("endpoint", Text), ("samplingRatePerMillion", Whole)])),
    ("userNamespaces", Fields(&[("idsPerPod", Whole)])),
    ("volumePluginDir", Text),
    ("volumeStatsAggPeriod", Duration),
];

/// Names of all settings.
pub(in crate::definitions) fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(name, _)| *name)
}

/// Settings of which other rules of the kubelet say more than their type: counts that are at least 0, and thresholds.
const SAID_ELSEWHERE: [&str; 5] = [
    "podsPerCore",
    "evictionMaxPodGracePeriod",
    "maxPods",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
];
const THRESHOLDS: [&str; 2] = ["evictionHard", "evictionSoft"];

fn types(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    match document.value.pointer(KUBELET) {
        // The schema speaks of a value that is no mapping.
        Some(Value::Object(_)) => {}
        _ => return findings,
    }
    for (pointer, name, value) in document.members(KUBELET) {
        let known = SETTINGS.iter().find(|(known, _)| *known == name);
        // Another rule speaks of a name that is not known.
        let Some((_, known)) = known.filter(|_| !SAID_ELSEWHERE.contains(&name)) else { continue };
        if THRESHOLDS.contains(&name) && value.is_object() {
            continue;
        }
        check(document, &pointer, value, known, &mut findings);
    }
    findings
}

fn check(document: &Document, pointer: &str, value: &Value, wanted: &Type, findings: &mut Vec<Finding>) {
    match (wanted, value) {
        // To a decoder a field with null is absent.
        (_, Value::Null) => {}
        (List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check(document, &format!("{pointer}/{index}"), item, of, findings);
            }
        }
        (Map(of), Value::Object(_)) => {
            for (member, _, value) in document.members(pointer) {
                check(document, &member, value, of, findings);
            }
        }
        (Fields(fields), Value::Object(_)) => {
            for (member, name, value) in document.members(pointer) {
                match fields.iter().find(|(field, _)| *field == name) {
                    Some((_, of)) => check(document, &member, value, of, findings),
                    None => findings.push(unknown(document, pointer, &member, name, fields)),
                }
            }
        }
        (wanted, value) if fits(wanted, value) => {}
        (wanted, value) => findings.push(wrong(document, pointer, value, wanted)),
    }
}

fn fits(wanted: &Type, value: &Value) -> bool {
    match (wanted, value) {
        (Any, _) | (Text, Value::String(_)) | (Flag, Value::Bool(_)) | (Number, Value::Number(_)) => true,
        (Whole, Value::Number(number)) => number.is_i64(),
        (Duration, Value::String(text)) => go_nanoseconds(text).is_some(),
        (Quantity, Value::String(text)) => text.parse::<model::Quantity>().is_ok(),
        (Quantity, Value::Number(_)) => true,
        _ => false,
    }
}

fn unknown(
    document: &Document,
    holder: &str,
    member: &str,
    name: &str,
    fields: &'static [(&'static str, Type)],
) -> Finding {
    let holder = spans::last(holder);
    let names = || fields.iter().map(|(field, _)| *field);
    let hint = match suggest::did_you_mean(name, names()) {
        Some(question) => question,
        None => format!("known here: {}", names().collect::<Vec<_>>().join(", ")).into(),
    };
    let message = format!("`{holder}` of the kubelet has no field `{name}`");
    Finding::at(&TYPE, document, member, FindingPlace::Key, message).hint(hint)
}

fn wrong(document: &Document, pointer: &str, value: &Value, wanted: &Type) -> Finding {
    let last = spans::last(pointer);
    let is_item = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let name = if is_item { format!("{}[{last}]", spans::last(spans::parent(pointer))) } else { last };
    let (words, hint) = match (wanted, value) {
        (Text, Value::Number(_) | Value::Bool(_)) => {
            let written = document.written(pointer).unwrap_or_else(|| value.to_string());
            ("text", Some(format!("quote it: \"{written}\"")))
        }
        (Text, _) => ("text", None),
        (Flag, Value::String(text)) if matches!(text.as_str(), "true" | "false") => {
            ("true or false", Some(format!("write it without quotes: {text}")))
        }
        (Flag, _) => ("true or false", None),
        (Whole, Value::String(text)) if text.parse::<i64>().is_ok() => {
            ("a whole number", Some(format!("write it without quotes: {text}")))
        }
        (Whole, _) => ("a whole number", None),
        (Number, _) => ("a number", None),
        (Duration, _) => ("a duration", Some("write a number with a unit, such as `30s`, `5m` or `1h30m`".to_owned())),
        (Quantity, _) => ("a quantity", Some("write it as in `500m`, `2` or `1.5Gi`".to_owned())),
        (List(_), Value::String(text)) => ("a list", Some(format!("write it as a list: [{text}]"))),
        (List(_), _) => ("a list", None),
        (Map(_) | Fields(_) | Any, Value::Array(_)) => {
            ("a mapping", Some("write `key: value` without `- `".to_owned()))
        }
        (Map(_) | Fields(_) | Any, _) => ("a mapping", None),
    };
    let place = if value.is_object() || value.is_array() { FindingPlace::Key } else { FindingPlace::Value };
    Finding::at(&TYPE, document, pointer, place, format!("`{name}` must be {words}")).maybe_hint(hint)
}
