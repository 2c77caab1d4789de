//! CL0484: a NodeConfig in user data that nodeadm does not take as it is meant.
//! Source: nodeadm's API, `nodeadm/api/v1alpha1/nodeconfig_types.go` of github.com/awslabs/amazon-eks-ami.

use serde_json::Value;

use super::Rule;
use super::kubelet_types::{self, CLASSES};
use super::launching::{USER_DATA_AT, line_of_block, with_user_data};
use super::user_data_parts::is_mime;
use crate::api::ec2_node_class::AmiFamily;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::{Document, read_value};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::suggest;

pub static FIELD: Rule = Rule::document(
    "CL0484",
    "node-config-field",
    Warning,
    "A NodeConfig in user data is of a version that nodeadm reads, and its fields are spelt as they are documented.",
    CLASSES,
    node_config,
);

pub static RULES: &[&Rule] = &[&FIELD];

const API_VERSION: &str = "node.eks.aws/v1alpha1";

/// The known fields, by the path of the mapping that has them. There may be newer ones, so only what looks like a slip
/// is said.
const FIELDS: [(&str, &[&str]); 7] = [
    ("", &["apiVersion", "kind", "metadata", "spec"]),
    ("/spec", &["cluster", "containerd", "featureGates", "instance", "kubelet"]),
    ("/spec/cluster", &["apiServerEndpoint", "certificateAuthority", "cidr", "enableOutpost", "id", "name"]),
    ("/spec/containerd", &["baseRuntimeSpec", "config"]),
    ("/spec/instance", &["localStorage"]),
    ("/spec/instance/localStorage", &["disabledMounts", "mountPath", "strategy"]),
    ("/spec/kubelet", &["config", "flags"]),
];

const KUBELET_CONFIG: &str = "/spec/kubelet/config";

/// A part of the user data: the lines before it, and its text.
type Part<'t> = (usize, &'t str);

fn node_config(document: &Document) -> Vec<Finding> {
    let Some((AmiFamily::AL2023, text)) = with_user_data(document) else { return Vec::new() };
    let mut findings = Vec::new();
    for (before, part) in parts(text) {
        let Ok(value) = read_value(part) else { continue };
        let of_it = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        // A document of another group is no NodeConfig, and another rule says so.
        if of_it("kind") != "NodeConfig" || !of_it("apiVersion").starts_with("node.eks.aws/") {
            continue;
        }
        for (key, message, hint) in version(of_it("apiVersion")).into_iter().chain(slips(&value)) {
            let mut finding = Finding::at(&FIELD, document, USER_DATA_AT, FindingPlace::Key, message);
            let line = line_of_key(part, &key).and_then(|line| line_of_block(document, before + line));
            finding.span = line.unwrap_or(finding.span);
            // `--fix` would write what was meant in the place of the whole text.
            finding.hint = hint;
            findings.push(finding);
        }
    }
    findings
}

/// What may be a NodeConfig: the text, or parts of an archive that say so and are not encoded.
fn parts(text: &str) -> Vec<Part<'_>> {
    if !is_mime(text) {
        return vec![(0, text)];
    }
    let mut parts = Vec::new();
    let mut before = 0;
    let mut rest = text;
    while let Some((head, body)) = rest.split_once("\n\n") {
        before += head.lines().count() + 1;
        let end = body.find("\n--").map_or(body.len(), |end| end + 1);
        let (part, behind) = body.split_at(end);
        let headers = head.rsplit("\n--").next().unwrap_or_default().to_ascii_lowercase();
        if headers.contains("application/node.eks.aws") && !headers.contains("base64") {
            parts.push((before, part));
        }
        before += part.lines().count();
        rest = behind;
    }
    parts
}

/// The key, the message and the hint of a slip.
type Slip = (String, String, Option<String>);

fn version(version: &str) -> Option<Slip> {
    let message = format!("nodeadm reads no NodeConfig of `{version}`: nodes do not join");
    (version != API_VERSION).then(|| ("apiVersion".to_owned(), message, Some(format!("write `{API_VERSION}`"))))
}

fn slips(config: &Value) -> Vec<Slip> {
    let members = |path: &str| config.pointer(path).and_then(Value::as_object).into_iter().flatten();
    let mut slips = Vec::new();
    for (path, known) in FIELDS {
        for (field, _) in members(path).filter(|(field, _)| !known.contains(&field.as_str())) {
            let is_of_config = path == "/spec/kubelet" && kubelet_types::names().any(|name| name == field);
            let hint = match is_of_config {
                true => Some("settings of the kubelet stand under `spec.kubelet.config`".to_owned()),
                false => suggest::did_you_mean(field, known.iter().copied()).map(|hint| hint.text),
            };
            let place = if path.is_empty() {
                "it".to_owned()
            } else {
                format!("`{}`", path.trim_start_matches('/').replace('/', "."))
            };
            slips.extend(hint.map(|hint| {
                (field.clone(), format!("a NodeConfig has no field `{field}` in {place}: it has no effect"), Some(hint))
            }));
        }
    }
    for (field, _) in members(KUBELET_CONFIG).filter(|(field, _)| !kubelet_types::names().any(|name| name == *field)) {
        let hint = suggest::did_you_mean(field, kubelet_types::names()).map(|hint| hint.text);
        slips.push((field.clone(), format!("the kubelet has no setting `{field}`"), hint));
    }
    slips
}

/// The first line of a text that has the key, from 1.
fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let is_whole = |line: &str, at: usize| {
        let (before, behind) = (line.get(..at), line.get(at + key.len()..));
        before.is_some_and(|before| before.is_empty() || before.ends_with([' ', '{', ',', '"', '\'']))
            && behind.is_some_and(|behind| behind.starts_with([':', '"', '\'']))
    };
    let has_key = |line: &str| line.match_indices(key).any(|(at, _)| is_whole(line, at));
    text.lines().position(has_key).map(|line| line + 1)
}
