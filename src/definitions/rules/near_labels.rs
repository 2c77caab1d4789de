//! CL0322: keys that are nearly well-known ones. Karpenter takes each for a label of one's own, puts it on the nodes, and restricts nothing.

use super::Rule;
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::model::requirements::{AWS_LABELS, is_well_known, normalized};
use crate::definitions::asked::Written;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::kinds::Kind;
use crate::definitions::providers::is_of_another_provider;
use crate::definitions::suggest::{self, Hint};

pub static NEARLY: Rule = Rule::document(
    "CL0322",
    "nearly-well-known",
    Warning,
    "A key that is nearly that of a label of instance types was meant to be it.",
    &[Kind::NodePool, Kind::NodeOverlay],
    nearly,
);

pub static RULES: &[&Rule] = &[&NEARLY];

/// Well-known keys outside of AWS's domain.
const OTHERS: [&str; 8] = [
    keys::CAPACITY_TYPE,
    keys::ZONE,
    keys::REGION,
    keys::ZONE_ID,
    keys::INSTANCE_TYPE,
    keys::ARCHITECTURE,
    keys::OPERATING_SYSTEM,
    keys::WINDOWS_BUILD,
];
/// What people write for well-known keys.
const SYNONYMS: [(&str, &str); 14] = [
    ("kubernetes.io/architecture", keys::ARCHITECTURE),
    ("kubernetes.io/operating-system", keys::OPERATING_SYSTEM),
    ("topology.kubernetes.io/availability-zone", keys::ZONE),
    ("node.kubernetes.io/type", keys::INSTANCE_TYPE),
    // These names are known from other labels. AWS's domain has none of them.
    ("karpenter.k8s.aws/instance-type", keys::INSTANCE_TYPE),
    ("karpenter.k8s.aws/instance-name", keys::INSTANCE_TYPE),
    ("karpenter.k8s.aws/zone", keys::ZONE),
    ("karpenter.k8s.aws/arch", keys::ARCHITECTURE),
    ("karpenter.k8s.aws/os", keys::OPERATING_SYSTEM),
    ("karpenter.k8s.aws/capacity-type", keys::CAPACITY_TYPE),
    ("karpenter.sh/instance-type", keys::INSTANCE_TYPE),
    ("karpenter.sh/zone", keys::ZONE),
    ("karpenter.sh/arch", keys::ARCHITECTURE),
    ("karpenter.sh/os", keys::OPERATING_SYSTEM),
];

/// The key that people mean by a key that does not exist, as everybody who knows both would say.
pub(super) fn synonym(key: &str) -> Option<&'static str> {
    SYNONYMS.iter().find(|(written, _)| *written == key).map(|(_, meant)| *meant)
}

/// Names that are parts of several labels, or words for one, with the labels to ask about.
const WORDS: [(&str, &[&str]); 4] = [
    ("instance-gpu", &["instance-gpu-count", "instance-gpu-name"]),
    ("instance-accelerator", &["instance-accelerator-count", "instance-accelerator-name"]),
    ("instance-vcpu", &["instance-cpu"]),
    ("instance-reservation", &["capacity-reservation-id", "capacity-reservation-type"]),
];

/// The question about a key that no instance type has, in a domain that only the controller may use.
pub(super) fn key_meant(key: &str) -> Option<Hint> {
    let ask = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("{AWS_PREFIX}{name}")).collect();
        Hint::question(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    if let Some(meant) = synonym(key) {
        return Some(Hint::question(&[meant]));
    }
    let (_, name) = key.split_once('/')?;
    if let Some((_, names)) = WORDS.iter().find(|(word, _)| *word == name) {
        return Some(ask(names));
    }
    let of_instance = format!("instance-{name}");
    if let Some(known) = AWS_LABELS.iter().find(|known| **known == name || **known == of_instance) {
        return Some(ask(&[*known]));
    }
    let all: Vec<String> = AWS_LABELS.iter().map(|name| format!("{AWS_PREFIX}{name}")).collect();
    suggest::did_you_mean(&format!("{AWS_PREFIX}{name}"), all.iter().map(String::as_str))
}

fn nearly(document: &Document) -> Vec<Finding> {
    // Nobody here knows which labels nodes of another provider have.
    if is_of_another_provider(document) {
        return Vec::new();
    }
    let of_requirements = ["/spec/template/spec/requirements", "/spec/requirements"].into_iter().flat_map(|list| {
        document.items(list).filter_map(|(pointer, entry)| {
            Some((format!("{pointer}/key"), entry.get("key")?.as_str()?, FindingPlace::Value))
        })
    });
    // People put labels on nodes so that pods can ask for them, and may call one `capacity-type`. Only a domain says
    // that another label was meant.
    let labels = document.members("/spec/template/metadata/labels").filter(|(_, key, _)| key.contains('/'));
    let labels = labels.map(|(pointer, key, _)| (pointer, key, FindingPlace::Key));
    let mut findings = Vec::new();
    for (pointer, key, place) in of_requirements.chain(labels) {
        let Some(meant) = meant_by(key) else { continue };
        // The very name is no guess, whatever stands before it. On a label of the nodes it may be a guess.
        let is_same_name = key.rsplit('/').next() == meant.rsplit('/').next();
        let is_sure = place == FindingPlace::Value && (is_same_name || synonym(key).is_some());
        let message = format!("`{key}` is a label of your own to Karpenter: it restricts no instance type");
        let finding = Finding::at(&NEARLY, document, &pointer, place, message);
        let finding = finding.hint(Hint::question(&[&meant]));
        findings.push(finding.instead(is_sure.then_some(Instead::Text(meant))));
    }
    findings
}

/// The well-known key that is nearly this one.
fn meant_by(key: &str) -> Option<String> {
    // Another rule speaks of the domains that only the controller may use.
    let domain = key.split_once('/').map(|(domain, _)| domain);
    let is_own = domain.is_some_and(|it| it.ends_with("karpenter.sh") || it.ends_with("karpenter.k8s.aws"));
    if is_own || is_well_known(normalized(key)) || key == keys::HOSTNAME {
        return None;
    }
    if let Some(meant) = synonym(key) {
        return Some(meant.to_owned());
    }
    let all = || AWS_LABELS.iter().map(|name| format!("{AWS_PREFIX}{name}")).chain(OTHERS.map(str::to_owned));
    let name_of = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let Some((domain, name)) = key.split_once('/') else {
        // `zone` may be anybody's word, and `instance-category` hardly is.
        return all().find(|known| key.contains('-') && name_of(known) == key);
    };
    let is_name = |known: &str| name == known || suggest::nearest(name, [known].into_iter()).is_some();
    let is_meant = |known: &String| {
        let of = known.split_once('/').map_or("", |(of, _)| of);
        let is_domain =
            domain.to_lowercase().contains("karpenter") && of.contains("karpenter") || suggest::is_like(domain, of);
        is_domain && is_name(&name_of(known))
    };
    // The very name in another domain says more than a name that is like it.
    let candidates: Vec<String> = all().filter(is_meant).collect();
    let names: Vec<String> = candidates.iter().map(|known| name_of(known)).collect();
    let nearest = suggest::nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
    let of_name = |wanted: &str| candidates.iter().find(|known| name_of(known) == wanted).cloned();
    of_name(name).or_else(|| of_name(&nearest?))
}

/// Labels of nodes that Karpenter alone sets, beside those that instance types have.
const OF_KARPENTER: [&str; 5] =
    [keys::NODE_POOL, keys::EC2_NODE_CLASS, keys::REGISTERED, keys::INITIALIZED, keys::DO_NOT_SYNC_TAINTS];
/// The label of a pool before [`keys::NODE_POOL`] took its place.
const OLD_NODE_POOL: &str = "karpenter.sh/provisioner-name";

/// What pods beside the definitions ask for. Their nodes may be others than Karpenter's, and have labels in any domain.
/// So another key is a slip only in the very domain of a well-known label.
pub(super) fn of_pod(document: &Document, written: &Written) -> Option<Finding> {
    let key = written.entry.key.as_str();
    if matches!(written.entry.operator, Operator::NotIn | Operator::DoesNotExist) {
        return None;
    }
    let (place, pointer) = match written.is_label {
        true => (FindingPlace::Key, written.pointer.clone()),
        false => (FindingPlace::Value, format!("{}/key", written.pointer)),
    };
    let hint = key_meant_of_node(key)?;
    let message = format!("no node has the label `{key}`");
    Some(Finding::at(&NEARLY, document, &pointer, place, message).hint(hint))
}

fn key_meant_of_node(key: &str) -> Option<Hint> {
    let (domain, _) = key.split_once('/')?;
    if key == OLD_NODE_POOL {
        return Some(Hint::question(&[keys::NODE_POOL]));
    }
    if !["karpenter.sh", AWS_PREFIX.trim_end_matches('/')].contains(&domain) {
        let meant = meant_by(key).filter(|meant| meant.split_once('/').is_some_and(|(of, _)| of == domain))?;
        return Some(Hint::question(&[&meant]));
    }
    if is_well_known(normalized(key)) || OF_KARPENTER.contains(&key) {
        return None;
    }
    let own = OF_KARPENTER.into_iter().chain([keys::CAPACITY_TYPE]);
    let own = own.filter(|known| known.split_once('/').is_some_and(|(of, _)| of == domain));
    suggest::did_you_mean(key, own).or_else(|| key_meant(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_the_key_that_people_mean() {
        for (key, hint) in [
            ("karpenter.k8s.aws/instance-type", Some("did you mean `node.kubernetes.io/instance-type`?")),
            ("karpenter.k8s.aws/instance-name", Some("did you mean `node.kubernetes.io/instance-type`?")),
            (
                "karpenter.k8s.aws/instance-gpu",
                Some("did you mean `karpenter.k8s.aws/instance-gpu-count` or `karpenter.k8s.aws/instance-gpu-name`?"),
            ),
            ("karpenter.k8s.aws/memory", Some("did you mean `karpenter.k8s.aws/instance-memory`?")),
            ("karpenter.sh/instance-cpu", Some("did you mean `karpenter.k8s.aws/instance-cpu`?")),
            ("karpenter.k8s.aws/instance-catagory", Some("did you mean `karpenter.k8s.aws/instance-category`?")),
            ("karpenter.sh/x", None),
            ("kubernetes.io/hostname", None),
        ] {
            assert_eq!(key_meant(key).map(|hint| hint.text).as_deref(), hint, "{key}");
        }
    }

    #[test]
    fn knows_slips_in_what_pods_ask_for() {
        for (key, meant) in [
            ("karpenter.sh/capacitytype", keys::CAPACITY_TYPE),
            ("karpenter.sh/node-pool", keys::NODE_POOL),
            ("karpenter.sh/provisioner-name", keys::NODE_POOL),
            ("karpenter.k8s.aws/instance-catagory", keys::INSTANCE_CATEGORY),
            ("node.kubernetes.io/instancetype", keys::INSTANCE_TYPE),
            ("kubernetes.io/architecture", keys::ARCHITECTURE),
        ] {
            assert_eq!(key_meant_of_node(key), Some(Hint::question(&[meant])), "{key}");
        }
        for key in [
            keys::NODE_POOL,
            keys::CAPACITY_TYPE,
            keys::INSTANCE_CATEGORY,
            keys::HOSTNAME,
            "beta.kubernetes.io/arch",
            "kubernetes.io/role",
            "cloud.google.com/gke-nodepool",
            "instance-category",
            "karpenter.io/capacity-type",
            "karpenter.sh/team",
            "team",
        ] {
            assert_eq!(key_meant_of_node(key), None, "{key}");
        }
    }

    #[test]
    fn knows_slips_from_labels_of_ones_own() {
        for (key, meant) in [
            ("instance-category", "karpenter.k8s.aws/instance-category"),
            ("karpenter.k8s/instance-category", "karpenter.k8s.aws/instance-category"),
            ("karpenter.aws/instance-category", "karpenter.k8s.aws/instance-category"),
            ("karpenter.aws/instance-categry", "karpenter.k8s.aws/instance-category"),
            ("topology.kubernetes.io/zones", keys::ZONE),
            ("kubernetes.io/architecture", keys::ARCHITECTURE),
            ("node.kubernetes.io/instance-typ", keys::INSTANCE_TYPE),
            ("karpenter.io/capacity-type", keys::CAPACITY_TYPE),
            ("capacity-type", keys::CAPACITY_TYPE),
        ] {
            assert_eq!(meant_by(key).as_deref(), Some(meant), "{key}");
        }
        for key in [
            keys::ZONE,
            keys::HOSTNAME,
            "failure-domain.beta.kubernetes.io/zone",
            "zone",
            "team",
            "node-type",
            "example.com/instance-type",
            "example.com/zone",
            "karpenter.sh/instance-category",
            "node.kubernetes.io/exclude-from-external-load-balancers",
            "node-restriction.kubernetes.io/team",
            "karpenter.example.com/team",
            "kubernetes.io/role",
        ] {
            assert_eq!(meant_by(key), None, "{key}");
        }
    }
}
