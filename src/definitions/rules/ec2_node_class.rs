//! CL0450 to CL0499: EC2 node classes.

use super::{Rule, no_hint};
use crate::api::validation::ec2_node_class as cel;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::suggest::{self, Hint};

const FAMILIES: [&str; 6] = ["al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025"];
const CLASSES: &[Kind] = &[Kind::EC2NodeClass];

pub static EMPTY_TERM: Rule = Rule::cel(
    "CL0450",
    "empty-term",
    "A selector term selects by something.",
    &[&cel::SUBNET_EMPTY, &cel::SECURITY_GROUP_EMPTY, &cel::RESERVATION_EMPTY, &cel::AMI_EMPTY],
    no_hint,
);
pub static EXCLUSIVE_TERM: Rule = Rule::cel(
    "CL0451",
    "exclusive-term",
    "An id, a name of a security group or an alias stands alone in its term.",
    &[
        &cel::SUBNET_ID_ALONE,
        &cel::SECURITY_GROUP_ID_ALONE,
        &cel::SECURITY_GROUP_NAME_ALONE,
        &cel::RESERVATION_ID_ALONE,
        &cel::AMI_ID_ALONE,
        &cel::AMI_ALIAS_ALONE,
    ],
    |_| Some("split it into two terms: terms are alternatives".into()),
);
pub static SELECTOR_TAGS: Rule =
    Rule::cel("CL0452", "selector-tags", "Tags to select by have keys and values.", &cel::SELECTOR_TAGS, no_hint);
pub static ALIAS_TERM: Rule =
    Rule::cel("CL0453", "alias-term", "A term with an alias is the only term.", &cel::AMI_TERMS, |_| {
        Some("keep the alias alone, or select every image by id, name or tags".into())
    });
pub static ALIAS: Rule = Rule::cel(
    "CL0454",
    "alias",
    "An alias has a family that exists; those of Windows have no version but `latest`.",
    &cel::ALIAS,
    |alias| {
        let (family, version) = alias.split_once('@')?;
        match suggest::nearest(family, FAMILIES.into_iter()) {
            _ if FAMILIES.contains(&family) => Some(format!("write `{family}@latest`").into()),
            Some(nearest) => Some(Hint::question(&[&format!("{nearest}@{version}")])),
            None => None,
        }
    },
);
pub static PLACEMENT_GROUP: Rule = Rule::cel(
    "CL0455",
    "placement-group",
    "A placement group is selected by its name or by its id.",
    &cel::PLACEMENT_GROUP_SELECTOR,
    no_hint,
);
pub static RESTRICTED_TAG: Rule = Rule::cel(
    "CL0456",
    "restricted-tag",
    "Tags by which instances are found again are set by the controller.",
    &cel::TAGS,
    |_| Some("remove it".into()),
);
pub static VOLUME: Rule =
    Rule::cel("CL0457", "volume", "A volume has a size or a snapshot to be made from.", &cel::BLOCK_DEVICE, no_hint);
pub static ROOT_VOLUME: Rule =
    Rule::cel("CL0458", "root-volume", "One volume at most is the root volume.", &cel::BLOCK_DEVICE_MAPPINGS, no_hint);
pub static NETWORK_INTERFACES: Rule = Rule::cel(
    "CL0459",
    "network-interfaces",
    "Network interfaces include the primary one, and none is given twice.",
    &cel::NETWORK_INTERFACES,
    no_hint,
);
pub static CONNECTION_TRACKING: Rule = Rule::cel(
    "CL0460",
    "connection-tracking",
    "Connection tracking has at least one timeout.",
    &cel::CONNECTION_TRACKING,
    no_hint,
);
pub static ROLE_OR_PROFILE: Rule = Rule::cel(
    "CL0461",
    "role-or-profile",
    "A class has a role or an instance profile, and not both.",
    &[&cel::ROLE_OR_PROFILE],
    no_hint,
);
pub static AMI_FAMILY: Rule =
    Rule::cel("CL0462", "ami-family", "amiFamily is that of the alias.", &[&cel::FAMILY_OF_ALIAS], |_| {
        Some("remove amiFamily: the alias says it".into())
    });
pub static AMI_FAMILY_MISSING: Rule = Rule::cel(
    "CL0465",
    "ami-family-missing",
    "amiFamily is there when no term has an alias.",
    &[&cel::FAMILY_WITHOUT_ALIAS],
    |_| Some("add amiFamily, such as AL2023 or Custom".into()),
);
pub static TRACKING_RANGE: Rule = Rule::cel(
    "CL0463",
    "tracking-timeout",
    "Timeouts of connection tracking are within what EC2 takes.",
    &[&cel::TCP_ESTABLISHED_TIMEOUT, &cel::UDP_STREAM_TIMEOUT, &cel::UDP_TIMEOUT],
    no_hint,
);
pub static UNPINNED_ALIAS: Rule = Rule::document(
    "CL0464",
    "unpinned-alias",
    Note,
    "An alias with `@latest` replaces every node when a new image comes out, unless `cutlist.lock` holds it.",
    CLASSES,
    unpinned_alias,
);

pub static RULES: &[&Rule] = &[
    &EMPTY_TERM,
    &EXCLUSIVE_TERM,
    &SELECTOR_TAGS,
    &ALIAS_TERM,
    &ALIAS,
    &PLACEMENT_GROUP,
    &RESTRICTED_TAG,
    &VOLUME,
    &ROOT_VOLUME,
    &NETWORK_INTERFACES,
    &CONNECTION_TRACKING,
    &ROLE_OR_PROFILE,
    &AMI_FAMILY,
    &TRACKING_RANGE,
    &UNPINNED_ALIAS,
    &AMI_FAMILY_MISSING,
];

fn unpinned_alias(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, term) in document.items("/spec/amiSelectorTerms") {
        let alias = term.get("alias").and_then(serde_json::Value::as_str);
        // Windows has no other version.
        let unpinned = |alias: &&str| {
            let family = alias.strip_suffix("@latest").unwrap_or_default();
            FAMILIES.contains(&family) && !family.starts_with("windows")
        };
        let Some(alias) = alias.filter(unpinned) else { continue };
        let message = format!("`{alias}`: a new image drifts every node of the class when it comes out");
        let finding = Finding::at(&UNPINNED_ALIAS, document, &format!("{pointer}/alias"), FindingPlace::Value, message);
        let example = match alias.split('@').next() {
            Some("bottlerocket") => "bottlerocket@v1.44.0",
            Some("al2") => "al2@v20240807",
            _ => "al2023@v20240807",
        };
        findings.push(finding.hint(format!(
            "pin a version to choose the moment yourself, such as `{example}`, or hold the images with `cutlist ami lock`"
        )));
    }
    findings
}
