//! CL0100 to CL0199: which object a document is.

use super::Rule;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub(super) const OBJECTS: &[Kind] = &[
    Kind::NodePool,
    Kind::EC2NodeClass,
    Kind::NodeOverlay,
    Kind::CapacityBuffer,
    Kind::PodTemplate,
    Kind::DisruptionBudget,
];
const CLUSTER_SCOPED: &[Kind] = &[Kind::NodePool, Kind::EC2NodeClass, Kind::NodeOverlay, Kind::DisruptionBudget];

pub static UNKNOWN_KIND: Rule = Rule::pass(
    "CL0101",
    "unknown-kind",
    Error,
    "Kinds of Karpenter's groups, and of Cutlist's, are kinds that there are.",
);
pub static MISSPELT_KIND: Rule = Rule::pass(
    "CL0102",
    "misspelt-kind",
    Error,
    "A kind or version that is close to one that is read was meant to be it.",
);
pub static OLD_VERSION: Rule = Rule::pass(
    "CL0103",
    "old-version",
    Error,
    "Versions before karpenter.sh/v1 are no longer served by Karpenter 1 and have to be rewritten.",
);
pub static INCOMPLETE: Rule =
    Rule::pass("CL0104", "incomplete-object", Error, "An object has both apiVersion and kind.");
pub static NO_OBJECT: Rule =
    Rule::pass("CL0105", "not-an-object", Note, "A file that holds no Kubernetes object is skipped.");
pub static NAME_MISSING: Rule =
    Rule::document("CL0106", "name-missing", Error, "An object has metadata.name.", OBJECTS, name_missing);
pub static NAME_INVALID: Rule = Rule::document(
    "CL0107",
    "name-invalid",
    Error,
    "A name has at most 253 lower-case letters, digits, `-` and `.`, and starts and ends with a letter or digit.",
    OBJECTS,
    name_invalid,
);
pub static NAMESPACE: Rule = Rule::document(
    "CL0108",
    "namespace-ignored",
    Note,
    "Cluster-scoped objects have no namespace.",
    CLUSTER_SCOPED,
    namespace,
);
pub static MISPLACED_FILE: Rule = Rule::pass(
    "CL0109",
    "misplaced-file",
    Warning,
    "Settings are read from cutlist.yaml, a scenario from scenario.yaml and locked images from cutlist.lock, all at the root.",
);

pub static EMPTY_PATH: Rule =
    Rule::pass("CL0110", "empty-path", Warning, "Each entry of spec.paths names a file or folder that is there.");

pub static NO_SETTINGS: Rule =
    Rule::pass("CL0111", "no-settings", Error, "The file cutlist.yaml at the root holds Settings.");

pub static SET_BY_CLUSTER: Rule = Rule::pass(
    "CL0112",
    "set-by-the-cluster",
    Warning,
    "A definition has none of the fields that a cluster sets, as `kubectl get -o yaml` writes them.",
);

pub static NOT_A_DEFINITION: Rule = Rule::pass(
    "CL0119",
    "not-a-definition",
    Note,
    "Objects that controllers make, and versions that are not read, are skipped.",
);

pub static RULES: &[&Rule] = &[
    &UNKNOWN_KIND,
    &MISSPELT_KIND,
    &OLD_VERSION,
    &INCOMPLETE,
    &NO_OBJECT,
    &NAME_MISSING,
    &NAME_INVALID,
    &NAMESPACE,
    &MISPLACED_FILE,
    &EMPTY_PATH,
    &NO_SETTINGS,
    &SET_BY_CLUSTER,
];

/// By its code, this rule comes behind those about labels.
pub static MORE_RULES: &[&Rule] = &[&NOT_A_DEFINITION];

fn name_missing(document: &Document) -> Vec<Finding> {
    let metadata = document.value.get("metadata");
    // A slip such as `metadate` is reported as such.
    let slip = |name: &String| {
        name != "metadata" && crate::definitions::suggest::nearest(name, ["metadata"].into_iter()).is_some()
    };
    let slipped = metadata.is_none() && document.value.as_object().is_some_and(|map| map.keys().any(slip));
    let name = metadata.and_then(|metadata| metadata.get("name"));
    if slipped || name.is_some() || metadata.is_some_and(|metadata| !metadata.is_object()) {
        return Vec::new();
    }
    let finding =
        Finding::at(&NAME_MISSING, document, "/metadata", FindingPlace::Key, "the object has no metadata.name");
    let generated = metadata.is_some_and(|metadata| metadata.get("generateName").is_some());
    let hint = if generated {
        "a definition needs a fixed name: generateName makes a new one each time"
    } else {
        "add metadata.name"
    };
    vec![finding.hint(hint)]
}

/// RFC 1123 subdomain. Source: k8s.io/apimachinery/pkg/util/validation, `IsDNS1123Subdomain`.
pub(in crate::definitions) fn is_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = [label.bytes().next(), label.bytes().last()].into_iter().all(|end| end.is_some_and(alphanumeric));
        ends && label.bytes().all(|byte| alphanumeric(byte) || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn name_invalid(document: &Document) -> Vec<Finding> {
    let Some(name) = document.str("/metadata/name").filter(|name| !is_subdomain(name)) else { return Vec::new() };
    let message = format!("`{name}` can not be the name of an object");
    let hint = "use lower-case letters, digits, `-` and `.`, with a letter or digit at both ends, 253 at most";
    vec![Finding::at(&NAME_INVALID, document, "/metadata/name", FindingPlace::Value, message).hint(hint)]
}

fn namespace(document: &Document) -> Vec<Finding> {
    if document.str("/metadata/namespace").is_none() {
        return Vec::new();
    }
    let kind = document.str("/kind").unwrap_or("the kind");
    let message = format!("{kind} is cluster-scoped: the namespace is ignored");
    vec![Finding::at(&NAMESPACE, document, "/metadata/namespace", FindingPlace::Key, message).hint("remove it")]
}
