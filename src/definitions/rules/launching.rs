//! CL0466 to CL0499: what the API server takes of a class, and Karpenter, EC2 or the image does not.
//! Sources: Karpenter's AWS provider 1.14, `pkg/providers/amifamily`; EC2's CreateLaunchTemplate and CreateTags.

use serde_json::Value;

use super::Rule;
use super::kubelet_types::{CLASSES, KUBELET};
use super::user_data_parts::{self, is_mime};
use crate::api::ec2_node_class::{AmiFamily, EC2NodeClassSpec};
use crate::core::catalog::user_data::{self, BYTES_MAX, FindingCode, UserDataError};
use crate::definitions::diagnostic::Severity::{Error, Warning};
use crate::definitions::diagnostic::Span;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::suggest::Hint;

pub(super) const USER_DATA_AT: &str = "/spec/userData";

pub static ALIAS_VERSION: Rule = Rule::document(
    "CL0466",
    "alias-version",
    Warning,
    "The version of an alias has the form that images of its family are published by.",
    CLASSES,
    alias_version,
);
pub static ALIAS_FORM: Rule = Rule::document(
    "CL0467",
    "alias-form",
    Error,
    "An alias has one `@`: Karpenter's controller ends at another form.",
    CLASSES,
    alias_form,
);
pub static USER_DATA: Rule = Rule::document(
    "CL0468",
    "user-data",
    Error,
    "User data is in a form that can be merged with what joins the node: whole MIME, TOML for Bottlerocket; and small enough for EC2.",
    CLASSES,
    mergeable,
);
pub static OF_ANOTHER_FAMILY: Rule = Rule::document(
    "CL0469",
    "user-data-of-another-family",
    Warning,
    "User data is for images of the class's family.",
    CLASSES,
    of_another_family,
);
pub static VOLUME_SETTINGS: Rule = Rule::document(
    "CL0470",
    "volume-settings",
    Warning,
    "IOPS and throughput of a volume are those that EC2 takes for its type.",
    CLASSES,
    volume_settings,
);
pub static RESERVED_TAG: Rule = Rule::document(
    "CL0471",
    "reserved-tag",
    Warning,
    "Tags that begin with `aws:` are AWS's own, and those with `cutlist.dev/` Cutlist's.",
    CLASSES,
    reserved_tag,
);
pub static PROFILE_NAME: Rule = Rule::document(
    "CL0472",
    "instance-profile-name",
    Warning,
    "instanceProfile is a name, not an ARN.",
    CLASSES,
    profile_name,
);
pub static CLUSTER_DNS: Rule =
    Rule::document("CL0473", "cluster-dns", Warning, "Entries of clusterDNS are IP addresses.", CLASSES, cluster_dns);

pub static USER_DATA_LOST: Rule = Rule::document(
    "CL0483",
    "user-data-lost",
    Warning,
    "All of the user data takes effect: none of it is replaced, unknown, in no part, or no script that can start.",
    CLASSES,
    lost,
);

pub static RULES: &[&Rule] = &[
    &ALIAS_VERSION,
    &ALIAS_FORM,
    &USER_DATA,
    &OF_ANOTHER_FAMILY,
    &VOLUME_SETTINGS,
    &RESERVED_TAG,
    &PROFILE_NAME,
    &CLUSTER_DNS,
];

/// By its code, this rule comes behind those of other files.
pub static MORE_RULES: &[&Rule] = &[&USER_DATA_LOST];

fn aliases(document: &Document) -> Vec<(String, &str)> {
    let terms = document.items("/spec/amiSelectorTerms");
    terms.filter_map(|(pointer, term)| Some((format!("{pointer}/alias"), term.get("alias")?.as_str()?))).collect()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn alias_version(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, alias) in aliases(document) {
        let Some((family, version)) = alias.split_once('@').filter(|(_, version)| !version.contains('@')) else {
            continue;
        };
        if version == "latest" || version.contains("${") {
            continue;
        }
        let number = version.strip_prefix('v');
        let (is_well_formed, form) = match family {
            "al2" | "al2023" => {
                (number.is_some_and(|date| date.len() == 8 && is_digits(date)), "`v` and a date, such as `v20250920`")
            }
            "bottlerocket" => {
                let parts: Vec<&str> = number.unwrap_or(version).split('.').collect();
                (parts.len() == 3 && parts.iter().all(|part| is_digits(part)), "three numbers, such as `v1.44.0`")
            }
            _ => continue,
        };
        if !is_well_formed {
            let message = format!("no image of {family} has the version `{version}`");
            let finding = Finding::at(&ALIAS_VERSION, document, &pointer, FindingPlace::Value, message);
            let is_date = matches!(family, "al2" | "al2023") && version.len() == 8 && is_digits(version);
            findings.push(finding.hint(match is_date {
                true => Hint::question(&[&format!("{family}@v{version}")]),
                false => format!("write {form}, or `latest`: without an image the class makes no nodes").into(),
            }));
        }
    }
    findings
}

fn alias_form(document: &Document) -> Vec<Finding> {
    let wrong = aliases(document).into_iter().filter(|(_, alias)| alias.matches('@').count() > 1);
    let finding = |(pointer, alias): (String, &str)| {
        let message =
            format!("`{alias}` has more than one `@`: the API server takes it, and Karpenter's controller ends");
        Finding::at(&ALIAS_FORM, document, &pointer, FindingPlace::Value, message).hint("write `FAMILY@VERSION`")
    };
    wrong.map(finding).collect()
}

/// The family of the images, where it is known, and the user data.
pub(super) fn with_user_data(document: &Document) -> Option<(AmiFamily, &str)> {
    let text = document.str(USER_DATA_AT).filter(|text| !text.trim().is_empty())?;
    let spec: EC2NodeClassSpec = serde_json::from_value(document.value.get("spec")?.clone()).ok()?;
    Some((spec.resolved_ami_family(), text))
}

/// The first line that is neither empty nor a comment.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default()
}

fn has_boundary(text: &str) -> bool {
    let header = text.trim_start().split("\n\n").next().unwrap_or_default();
    header.to_ascii_lowercase().replace(' ', "").contains("boundary=")
}

fn is_toml(text: &str) -> bool {
    let first = first_line(text);
    first.is_empty() || first.starts_with('[') || first.contains('=')
}

fn mergeable(document: &Document) -> Vec<Finding> {
    let Some((family, text)) = with_user_data(document) else { return Vec::new() };
    let (message, hint) = match family {
        // Not a byte of this user data is changed.
        AmiFamily::Custom => return too_large(document, text).into_iter().collect(),
        AmiFamily::AL2 | AmiFamily::AL2023 if is_mime(text) && !has_boundary(text) => (
            "the user data is MIME without a boundary: Karpenter can not merge it, and launches nothing",
            "write `Content-Type: multipart/mixed; boundary=\"BOUNDARY\"`, and an empty line after the headers",
        ),
        AmiFamily::Bottlerocket if !is_toml(text) => (
            "user data of Bottlerocket is TOML, and this is not: Karpenter launches nothing",
            "write settings, such as `[settings.kernel]` with `lockdown = \"integrity\"`; scripts run in a bootstrap container",
        ),
        _ => return unmerged(document, family, text).into_iter().collect(),
    };
    vec![Finding::at(&USER_DATA, document, USER_DATA_AT, FindingPlace::Key, message).hint(hint)]
}

fn too_large(document: &Document, text: &str) -> Option<Finding> {
    let bytes = text.len();
    let message = format!("the user data has {bytes} bytes, and EC2 takes {BYTES_MAX} before they are encoded");
    let finding = Finding::at(&USER_DATA, document, USER_DATA_AT, FindingPlace::Key, message);
    (bytes > BYTES_MAX).then(|| finding.hint("shorten it, or let it fetch the rest"))
}

/// What a launch says of the user data, at the line that the launch names.
fn unmerged(document: &Document, family: AmiFamily, text: &str) -> Option<Finding> {
    match user_data::check(family, text).err()? {
        UserDataError::Malformed { line, message } => {
            // Nobody knows what a variable in this line will be.
            let is_open =
                text.lines().nth(line.saturating_sub(1)).is_some_and(|it| it.contains("${") || it.contains("{{"));
            let message = format!("the user data can not be merged, and nothing is launched: {message}");
            let mut finding = Finding::at(&USER_DATA, document, USER_DATA_AT, FindingPlace::Key, message);
            finding.span = line_of_block(document, line).unwrap_or(finding.span);
            (!is_open).then_some(finding)
        }
        UserDataError::TooLarge { .. } => too_large(document, text).or_else(|| {
            let message =
                format!("with what joins the node the user data is longer than the {BYTES_MAX} bytes that EC2 takes");
            let finding = Finding::at(&USER_DATA, document, USER_DATA_AT, FindingPlace::Key, message);
            Some(finding.hint("shorten it, or let it fetch the rest"))
        }),
        UserDataError::Field { .. } | UserDataError::Cluster { .. } => None,
    }
}

/// What in the user data may not do what was meant, at the line where it stands.
fn lost(document: &Document) -> Vec<Finding> {
    // Text that is for another family is lost as a whole, and another rule says so.
    let Some((family, text)) = with_user_data(document).filter(|_| of_another_family(document).is_empty()) else {
        return Vec::new();
    };
    let spec = document.value.get("spec").cloned().unwrap_or_default();
    let class: Result<EC2NodeClassSpec, _> = serde_json::from_value(spec);
    let findings = class.map(|class| user_data::without_effect(&class)).unwrap_or_default();
    let is_open = |line: usize| text.lines().nth(line.saturating_sub(1)).is_some_and(|it| it.contains("${"));
    let findings = findings.into_iter().filter(|finding| !finding.line.is_some_and(is_open));
    let at_its_line = |found: user_data::Finding| {
        let mut finding = Finding::at(&USER_DATA_LOST, document, USER_DATA_AT, FindingPlace::Key, found.text);
        finding.span = found.line.and_then(|line| line_of_block(document, line)).unwrap_or(finding.span);
        finding.maybe_hint((found.code == FindingCode::Overridden).then(|| {
            "leave it out, or say it in `spec.kubelet` of the class or in labels and taints of the NodePool".to_owned()
        }))
    };
    let mut findings: Vec<Finding> = findings.map(at_its_line).collect();
    for found in user_data_parts::lost(family, text).into_iter().filter(|found| !is_open(found.line)) {
        let mut finding = Finding::at(&USER_DATA_LOST, document, USER_DATA_AT, FindingPlace::Key, found.message);
        finding.span = line_of_block(document, found.line).unwrap_or(finding.span);
        // `--fix` would write what was meant in the place of the whole text.
        finding.hint = found.hint;
        findings.push(finding);
    }
    findings
}

/// Where a line of a literal block stands.
pub(super) fn line_of_block(document: &Document, line: usize) -> Option<Span> {
    let key = document.place(USER_DATA_AT, FindingPlace::Key);
    let wanted = document.str(USER_DATA_AT)?.lines().nth(line.checked_sub(1)?)?.trim();
    let text = document.origin(USER_DATA_AT).text;
    let rest = text.get(key.end_byte..)?;
    let is_literal = rest.lines().next()?.trim_start_matches([':', ' ']).starts_with('|');
    let written = rest.split_inclusive('\n').nth(line)?;
    let before: usize = rest.split_inclusive('\n').take(line).map(str::len).sum();
    let indentation = written.len() - written.trim_start().len();
    let start_byte = key.end_byte + before + indentation;
    let span = Span {
        line: key.line + line,
        column: indentation + 1,
        start_byte,
        end_byte: start_byte + written.trim().len(),
    };
    (is_literal && !wanted.is_empty() && written.trim() == wanted).then_some(span)
}

fn of_another_family(document: &Document) -> Vec<Finding> {
    use AmiFamily::{AL2, AL2023, Windows2019, Windows2022, Windows2025};
    let Some((family, text)) = with_user_data(document) else { return Vec::new() };
    let start = text.trim_start();
    let is_linux = matches!(family, AL2 | AL2023);
    let is_windows = matches!(family, Windows2019 | Windows2022 | Windows2025);
    let (message, hint) = match family {
        AL2023 if first_line(text).starts_with("[settings") => (
            "TOML is for Bottlerocket: AL2023 runs it as a shell script",
            "write a NodeConfig of node.eks.aws/v1alpha1, or a script",
        ),
        AL2 if first_line(text).starts_with("[settings") => {
            ("TOML is for Bottlerocket: AL2 runs it as a shell script", "write a script")
        }
        AL2 if first_line(text).starts_with("apiVersion: node.eks.aws/") => {
            ("a NodeConfig is for AL2023: AL2 runs it as a shell script", "write a script, or use images of AL2023")
        }
        _ if is_linux && start.starts_with("<powershell>") => {
            ("PowerShell is for Windows: a shell is to run it here", "write a shell script")
        }
        _ if is_linux && is_mime(start) && start.starts_with(['m', 'M']) && !start.starts_with("MIME-Version:") => (
            "Karpenter knows MIME by `MIME-Version:`, written so: it runs this as one shell script",
            "write `MIME-Version: 1.0`",
        ),
        _ if is_windows && (start.starts_with("#!") || is_mime(start)) => {
            ("images of Windows run PowerShell, and no shell script or MIME", "write PowerShell")
        }
        AL2023 if text.contains("/etc/eks/bootstrap.sh") => (
            "/etc/eks/bootstrap.sh is a file of AL2: AL2023 has none",
            "nodes join without it; write a NodeConfig of node.eks.aws/v1alpha1 for settings of the kubelet",
        ),
        _ => return Vec::new(),
    };
    vec![Finding::at(&OF_ANOTHER_FAMILY, document, USER_DATA_AT, FindingPlace::Key, message).hint(hint)]
}

fn volume_settings(document: &Document) -> Vec<Finding> {
    /// Least operations a second of a gp3 volume.
    const GP3_IOPS_MIN: i64 = 3_000;
    let mut findings = Vec::new();
    for (mapping, _) in document.items("/spec/blockDeviceMappings") {
        let at = |field: &str| format!("{mapping}/ebs/{field}");
        let number = |field: &str| document.value.pointer(&at(field)).and_then(Value::as_i64);
        let Some(kind) = document.str(&at("volumeType")) else { continue };
        let mut found = |field: &str, message: String, hint: &str| {
            findings.push(Finding::at(&VOLUME_SETTINGS, document, &at(field), FindingPlace::Key, message).hint(hint));
        };
        // Another rule speaks of a text that is no type of volumes.
        if number("throughput").is_some() && ["gp2", "io1", "io2", "st1", "sc1", "standard"].contains(&kind) {
            found(
                "throughput",
                format!("EC2 takes no throughput for a volume of type {kind}"),
                "remove it, or use gp3",
            );
        }
        match (kind, number("iops")) {
            ("io1" | "io2", None) if document.value.pointer(&at("iops")).is_none() => {
                found("volumeType", format!("EC2 wants iops for a volume of type {kind}"), "add `iops`, such as 3000");
            }
            ("gp2" | "st1" | "sc1" | "standard", Some(_)) => {
                found("iops", format!("EC2 takes no iops for a volume of type {kind}"), "remove it, or use gp3");
            }
            ("gp3", Some(iops)) if iops < GP3_IOPS_MIN => {
                found(
                    "iops",
                    format!("a volume of type gp3 has at least {GP3_IOPS_MIN} iops"),
                    "remove it: 3000 is what it has",
                );
            }
            _ => {}
        }
    }
    findings
}

fn reserved_tag(document: &Document) -> Vec<Finding> {
    let finding = |(pointer, key, _): (String, &str, &Value)| {
        let message = if key.to_ascii_lowercase().starts_with("aws:") {
            format!("`{key}`: EC2 takes no tag that begins with `aws:`, and launches nothing")
        } else if key.starts_with("cutlist.dev/") {
            format!(
                "`{key}`: Cutlist finds what it launched by tags that begin with `cutlist.dev/`, and launches nothing"
            )
        } else {
            return None;
        };
        Some(Finding::at(&RESERVED_TAG, document, &pointer, FindingPlace::Key, message).hint("choose another key"))
    };
    document.members("/spec/tags").filter_map(finding).collect()
}

fn profile_name(document: &Document) -> Vec<Finding> {
    let pointer = "/spec/instanceProfile";
    let Some(profile) = document.str(pointer).filter(|profile| profile.starts_with("arn:")) else { return Vec::new() };
    let name = profile.rsplit('/').next().unwrap_or_default();
    let message = "instanceProfile is an ARN: EC2 looks for a profile of this name";
    let finding = Finding::at(&PROFILE_NAME, document, pointer, FindingPlace::Value, message);
    vec![finding.hint(format!("write the name alone: `{name}`"))]
}

/// Whether the text has the form of an address of version 4 or 6.
fn is_address(text: &str) -> bool {
    let is_v4 =
        text.split('.').count() == 4 && text.split('.').all(|part| is_digits(part) && part.parse::<u8>().is_ok());
    is_v4
        || (text.contains("::") || text.matches(':').count() == 7)
            && text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
}

fn cluster_dns(document: &Document) -> Vec<Finding> {
    let list = format!("{KUBELET}/clusterDNS");
    let wrong = document.items(&list).filter_map(|(pointer, address)| {
        let text = address.as_str().filter(|text| !is_address(text) && !text.contains("${"))?;
        let message = format!("`{text}` is no IP address: pods would find no names");
        let finding = Finding::at(&CLUSTER_DNS, document, &pointer, FindingPlace::Value, message);
        Some(finding.hint("write the address of the service kube-dns, such as 10.100.0.10, or leave it to the image"))
    });
    wrong.collect()
}
