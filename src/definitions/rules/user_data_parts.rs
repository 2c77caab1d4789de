//! What is lost of user data beside what a launch of Cutlist says (CL0483): text that Karpenter takes for something else, and slips in what
//! cloud-init and Bottlerocket go by.
//! Sources: Karpenter's AWS provider 1.14, `pkg/providers/amifamily/bootstrap`; cloud-init, "User data formats"; the settings of Bottlerocket.

use crate::api::ec2_node_class::AmiFamily;
use crate::definitions::document::read_value;
use crate::definitions::suggest;

/// What of the user data has no effect.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// The line of the user data, from 1.
    pub line: usize,
    pub message: String,
    pub hint: Option<String>,
}

/// How text begins that cloud-init knows and Karpenter does not, with the type of a part for such text. Longer
/// beginnings stand before shorter ones.
const BEGINNINGS: [(&str, &str); 8] = [
    ("#cloud-config-archive", "text/cloud-config-archive"),
    ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
    ("#cloud-config", "text/cloud-config"),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#include-once", "text/x-include-once-url"),
    ("#include", "text/x-include-url"),
    ("#part-handler", PART_HANDLER),
    ("## template: jinja", "text/jinja2"),
];
const PART_HANDLER: &str = "text/part-handler";

/// Types of parts that are read: by cloud-init, or by nodeadm.
const TYPES: [&str; 16] = [
    "application/node.eks.aws",
    "application/octet-stream",
    "text/cloud-boothook",
    "text/cloud-config",
    "text/cloud-config-archive",
    "text/cloud-config-jsonp",
    "text/jinja2",
    PART_HANDLER,
    "text/plain",
    "text/upstart-job",
    "text/x-include-once-url",
    "text/x-include-url",
    "text/x-shellscript",
    "text/x-shellscript-per-boot",
    "text/x-shellscript-per-instance",
    "text/x-shellscript-per-once",
];

/// Names below `settings`. There may be newer ones, so only what looks like a slip is said.
const SETTINGS: [&str; 24] = [
    "autoscaling",
    "aws",
    "boot",
    "bootstrap-commands",
    "bootstrap-containers",
    "cloudformation",
    "container-registry",
    "container-runtime",
    "container-runtime-plugins",
    "dns",
    "ecs",
    "host-containers",
    "kernel",
    "kubelet-device-plugins",
    "kubernetes",
    "metrics",
    "motd",
    "network",
    "ntp",
    "nvidia-container-runtime",
    "oci-defaults",
    "oci-hooks",
    "pki",
    "updates",
];

pub(super) fn is_mime(text: &str) -> bool {
    let first = text.trim_start().to_ascii_lowercase();
    first.starts_with("mime-version:") || first.starts_with("content-type: multipart")
}

pub(super) fn lost(family: AmiFamily, text: &str) -> Vec<Lost> {
    match family {
        AmiFamily::AL2 | AmiFamily::AL2023 if is_mime(text) => parts_of_no_type(text),
        AmiFamily::AL2 | AmiFamily::AL2023 => of_cloud_init(family, text).into_iter().collect(),
        AmiFamily::Bottlerocket => unknown_tables(text),
        _ => Vec::new(),
    }
}

/// Karpenter knows MIME, and on AL2023 a mapping, which it takes for a NodeConfig. All else is a script to it.
fn of_cloud_init(family: AmiFamily, text: &str) -> Option<Lost> {
    let (beginning, content_type) = BEGINNINGS.into_iter().find(|(beginning, _)| text.starts_with(beginning))?;
    let is_mapping = read_value(text).is_ok_and(|value| value.is_object() || value.is_null());
    let message = match family == AmiFamily::AL2023 && is_mapping {
        true => format!(
            "Karpenter takes text that begins with `{beginning}` for a NodeConfig, and nodeadm finds none in it: nodes do not join"
        ),
        false => {
            format!("Karpenter takes text that begins with `{beginning}` for a shell script, which can not be started")
        }
    };
    let hint = format!("write it as a part of a MIME archive, with `Content-Type: {content_type}`");
    Some(Lost { line: 1, message, hint: Some(hint) })
}

fn parts_of_no_type(text: &str) -> Vec<Lost> {
    let types = content_types(text);
    // A part handler may read parts of any type.
    if types.iter().any(|(_, it)| it == PART_HANDLER) {
        return Vec::new();
    }
    let unknown = types.into_iter().filter(|(_, it)| !TYPES.contains(&it.as_str()));
    let lost = |(line, it): (usize, String)| {
        let hint = suggest::did_you_mean(&it, TYPES.into_iter())?.text;
        let message = format!("nobody reads a part of the type `{it}`");
        Some(Lost { line, message, hint: Some(hint) })
    };
    unknown.filter_map(lost).collect()
}

/// The types of the parts, each with its line.
fn content_types(text: &str) -> Vec<(usize, String)> {
    let Some(delimiter) = boundary(text).map(|boundary| format!("--{boundary}")) else { return Vec::new() };
    let mut types = Vec::new();
    let mut is_header = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_end() == delimiter {
            is_header = true;
        } else if line.trim().is_empty() {
            is_header = false;
        }
        let header = line.split_once(':').filter(|(name, _)| is_header && name.eq_ignore_ascii_case("content-type"));
        let value = header.and_then(|(_, value)| value.split(';').next());
        types.extend(value.map(|value| (index + 1, value.trim().to_lowercase())));
    }
    types
}

/// The text between the parts of an archive, as its headers say.
fn boundary(text: &str) -> Option<&str> {
    const PARAMETER: &str = "boundary=";
    let headers = text.trim_start().split("\n\n").next()?;
    let at = headers.to_ascii_lowercase().find(PARAMETER)?;
    let value = headers.get(at + PARAMETER.len()..)?;
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split([';', ' ', '\r', '\n']).next(),
    }
}

/// Tables of settings by a name that is nearly a known one.
fn unknown_tables(text: &str) -> Vec<Lost> {
    let name = |line: &str| {
        let path = line.trim().trim_start_matches('[').trim_start().strip_prefix("settings.")?;
        Some(path.split(['.', ']', ' ']).next()?.to_owned()).filter(|_| line.trim_start().starts_with('['))
    };
    let named = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, name(line)?)));
    let lost = |(line, name): (usize, String)| {
        let hint = suggest::did_you_mean(&name, SETTINGS.into_iter())?.text;
        let message = format!(
            "settings.{name} is kept, and is not known here: a Bottlerocket that does not know it either does not start"
        );
        Some(Lost { line, message, hint: Some(hint) })
    };
    named.filter(|(_, name)| !SETTINGS.contains(&name.as_str())).filter_map(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_cloud_init_alone_is_something_else_to_karpenter() {
        let said = |family, text: &str| {
            let found: Vec<String> = lost(family, text).into_iter().map(|it| it.message).collect();
            found.join("\n")
        };
        let config = "#cloud-config\nruncmd: [[echo, hello]]\n";
        assert!(said(AmiFamily::AL2023, config).contains("for a NodeConfig"));
        assert!(said(AmiFamily::AL2, config).contains("for a shell script"));
        assert!(said(AmiFamily::AL2023, "#include\nhttps://example.com/a\n").contains("`#include` for a shell script"));
        assert!(said(AmiFamily::AL2023, "#cloud-boothook\n#!/bin/bash\necho a\n").contains("for a shell script"));
        for (family, text) in [
            (AmiFamily::Custom, config),
            (AmiFamily::Bottlerocket, config),
            (AmiFamily::AL2023, "#!/bin/bash\n#cloud-config\n"),
            (AmiFamily::AL2023, "# a comment\necho hello\n"),
        ] {
            assert_eq!(lost(family, text), [], "{text}");
        }
    }

    #[test]
    fn types_of_parts_are_those_that_somebody_reads() {
        let archive = |types: [&str; 2]| {
            let parts = types.map(|it| format!("--B\nContent-Type: {it}; charset=\"us-ascii\"\n\nContent-Type: x\n"));
            format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n{}--B--\n", parts.concat())
        };
        let found = lost(AmiFamily::AL2023, &archive(["text/x-shellscript", "text/cloud-confg"]));
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.line, one.message.as_str()), (9, "nobody reads a part of the type `text/cloud-confg`"));
        assert_eq!(one.hint.as_deref(), Some("did you mean `text/cloud-config`?"));
        for types in [
            ["TEXT/X-Shellscript", "application/node.eks.aws"],
            ["text/part-handler", "text/cloud-confg"],
            ["application/x-of-somebody", "text/plain"],
        ] {
            assert_eq!(lost(AmiFamily::AL2, &archive(types)), [], "{types:?}");
        }
    }

    #[test]
    fn tables_are_those_that_bottlerocket_has() {
        let text = "[settings.kernal]\nlockdown = \"integrity\"\n[settings.kubernetes.node-labels]\na = \"b\"\n\
                    [settings.host-containers.admin]\nenabled = true\n[settings.of-tomorrow]\nx = 1\n";
        let found = lost(AmiFamily::Bottlerocket, text);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert!(one.message.starts_with("settings.kernal is kept"), "{one:?}");
        assert_eq!((one.line, one.hint.as_deref()), (1, Some("did you mean `kernel`?")));
    }
}
