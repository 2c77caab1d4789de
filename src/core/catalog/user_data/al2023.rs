//! Amazon Linux 2023: a NodeConfig for nodeadm, behind the parts of the class. nodeadm merges all of them in their order, so ours wins.
//!
//! Source: nodeadm's API, `node.eks.aws/v1alpha1`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use cutlist_api::ec2_node_class::{AmiFamily, InstanceStorePolicy};

use super::kubelet::{self, Arguments};
use super::mime_parts::{self, MimePart, NODE_CONFIG};
use super::{Bootstrap, Cluster, Finding, FindingCode, UserDataError, parts, taints};

/// nodeadm adds these lists up.
const ADDED_UP: &str = "spec.kubelet.flags";
/// Where a NodeConfig says its version.
const VERSION: &str = "apiVersion";

pub(super) fn render(bootstrap: &Bootstrap, findings: &mut Vec<Finding>) -> Result<String, UserDataError> {
    let mut parts = parts::of_class(bootstrap, true, findings)?;
    let ours = node_config(bootstrap)?;
    for part in parts.iter().filter(|part| part.content_type() == NODE_CONFIG) {
        let Some(theirs) = parts::node_config_of(part)? else { continue };
        let theirs = serde_json::to_value(theirs).map_err(|error| {
            UserDataError::malformed(part.line, format!("the NodeConfig can not be read as JSON: {error}"))
        })?;
        overridden("", &theirs, &ours, part.line, findings);
    }
    let text = yaml(ours)
        .map_err(|error| UserDataError::field("spec.kubelet", format!("can not be written as YAML: {error}")))?;
    parts.push(MimePart::new(NODE_CONFIG, &format!("# Of Cutlist. It comes last, so what it says counts.\n{text}")));
    Ok(mime_parts::write(&parts))
}

/// Sorted by key at every depth: whatever order maps came in, the bytes are the same.
fn node_config(bootstrap: &Bootstrap) -> Result<Value, UserDataError> {
    let raid =
        (bootstrap.instance_store_policy == Some(InstanceStorePolicy::RAID0)).then(|| json!({ "strategy": "RAID0" }));
    Ok(sorted(json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": cluster(&bootstrap.cluster)?,
            "containerd": {},
            "instance": { "localStorage": raid.unwrap_or_else(|| json!({})) },
            "kubelet": { "config": configuration(bootstrap)?, "flags": [kubelet::node_labels(bootstrap)?] },
        },
    })))
}

fn cluster(cluster: &Cluster) -> Result<Value, UserDataError> {
    let unusable = |what, problem: String| UserDataError::Cluster { what, problem };
    // nodeadm refuses to start without it, and gives kubelets no address to ask for names.
    let Some(range) = cluster.service_cidr.as_deref().filter(|range| !range.is_empty()) else {
        return Err(unusable("the range of Services", "is not known yet, and images of AL2023 need it".to_owned()));
    };
    let mut details = json!({ "name": cluster.name, "apiServerEndpoint": cluster.endpoint, "cidr": range });
    if let (Value::Object(details), Some(authority)) = (&mut details, &cluster.certificate_authority) {
        BASE64_STANDARD
            .decode(authority)
            .map_err(|_| unusable("the certificate authority", "is not in base64".to_owned()))?;
        details.insert("certificateAuthority".to_owned(), authority.as_str().into());
    }
    Ok(details)
}

/// The class's own fields, all of them, and those that are settled here.
fn configuration(bootstrap: &Bootstrap) -> Result<Value, UserDataError> {
    let Arguments { system_reserved, kube_reserved, eviction_hard, eviction_soft, eviction_soft_grace_period, .. } =
        Arguments::read(AmiFamily::AL2023, bootstrap)?;
    let set = bootstrap.kubelet.iter().filter(|(_, value)| !value.is_null());
    let mut fields: Map<String, Value> = set.map(|(key, value)| (key.clone(), value.clone())).collect();
    // As text, which is all that the kubelet takes there.
    for (name, amounts) in [
        ("systemReserved", system_reserved),
        ("kubeReserved", kube_reserved),
        ("evictionHard", eviction_hard),
        ("evictionSoft", eviction_soft),
        ("evictionSoftGracePeriod", eviction_soft_grace_period),
    ] {
        if !amounts.is_empty() {
            fields.insert(name.to_owned(), json!(amounts));
        }
    }
    fields.insert("maxPods".to_owned(), bootstrap.max_pods.into());
    let names_servers = fields.get("clusterDNS").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if let Some(address) = bootstrap.cluster.dns_address.filter(|_| !names_servers) {
        fields.insert("clusterDNS".to_owned(), json!([address]));
    }
    let taints = taints::at_registration(&bootstrap.taints);
    fields.insert("registerWithTaints".to_owned(), taints.iter().map(taints::object).collect());
    Ok(fields.into())
}

/// As YAML 1.1, which nodeadm reads: texts that are something else there stand in quotes. The writer is one of YAML 1.2 and leaves them bare, so
/// they are put in behind it.
fn yaml(mut value: Value) -> Result<String, serde_yaml::Error> {
    let mut marker = "in-quotes".to_owned();
    let all = value.to_string();
    while all.contains(&marker) {
        marker.push('-');
    }
    let mut texts = Vec::new();
    take_ambiguous(&mut value, &marker, &mut texts);
    let mut written = serde_yaml::to_string(&value)?;
    for (index, text) in texts.iter().enumerate() {
        written = written.replace(&place_of(&marker, index), &format!("'{text}'"));
    }
    Ok(written)
}

/// Where a text is put in; none is the beginning of another one.
fn place_of(marker: &str, index: usize) -> String {
    format!("{marker}.{index}.")
}

/// Takes out the texts that need quotes, keys among them.
fn take_ambiguous(value: &mut Value, marker: &str, texts: &mut Vec<String>) {
    let mut take = |text: &str| {
        texts.push(text.to_owned());
        place_of(marker, texts.len() - 1)
    };
    match value {
        Value::String(text) if is_ambiguous(text) => *text = take(text.as_str()),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| take_ambiguous(entry, marker, texts)),
        Value::Object(fields) => {
            let named = std::mem::take(fields).into_iter();
            *fields = named.map(|(key, value)| (if is_ambiguous(&key) { take(&key) } else { key }, value)).collect();
            fields.values_mut().for_each(|value| take_ambiguous(value, marker, texts));
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether YAML 1.1 takes a text for a truth value, or for a number with its digits in groups. Source: YAML 1.1, types `bool`, `int`, `float`.
fn is_ambiguous(text: &str) -> bool {
    let is_truth = ["y", "yes", "n", "no", "on", "off"].iter().any(|word| text.eq_ignore_ascii_case(word));
    let begins_as_number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    let is_of_number = |character: char| character.is_ascii_alphanumeric() || "_.+-".contains(character);
    let is_in_groups = begins_as_number && text.contains('_') && text.chars().all(is_of_number);
    // The writer knows these with small letters alone.
    is_truth || is_in_groups || ["0X", "0O", "0B"].iter().any(|begin| text.starts_with(begin))
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(entries) => entries.into_iter().map(sorted).collect(),
        plain => plain,
    }
}

/// Names each value of a NodeConfig of the class that ours replaces by another one.
fn overridden(path: &str, theirs: &Value, ours: &Value, line: usize, findings: &mut Vec<Finding>) {
    if let (Value::Object(theirs), Value::Object(ours)) = (theirs, ours) {
        for (key, value) in theirs {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if let Some(our_value) = ours.get(key) {
                overridden(&path, value, our_value, line, findings);
            }
        }
    } else if theirs != ours && path != ADDED_UP {
        let code = if path == VERSION { FindingCode::VersionReplaced } else { FindingCode::Overridden };
        findings.push(Finding::replaced(code, line, format!("{path}: `{theirs}`"), &format!("`{ours}`")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_yaml_1_1_stand_in_quotes() {
        for text in ["y", "Yes", "NO", "on", "off", "1_000", "-1_0.5", "0X1F", "0B1"] {
            assert_eq!(yaml(json!({ "a": [text] })).unwrap(), format!("a:\n- '{text}'\n"));
        }
        for text in ["yes-sir", "none", "_1", "a_1", "--v_1=\"2\"", "1-2", "in-quotes.0."] {
            assert_eq!(yaml(json!({ "a": [text] })).unwrap(), format!("a:\n- {text}\n"));
        }
        let both = yaml(json!({ "no": "in-quotes", "b": ["on", true, 1, "true"] })).unwrap();
        let read: Value = serde_yaml::from_str(&both).unwrap();
        assert_eq!(read, json!({ "no": "in-quotes", "b": ["on", true, 1, "true"] }));
        assert!(both.contains("'no': in-quotes\n") && both.contains("- 'on'\n- true\n"), "{both}");
    }
}
