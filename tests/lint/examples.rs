//! The page of each rule: its bad example breaks the rule, its good one does not.

use std::collections::BTreeMap;

use cutlist::api::source::SourceFile;
use cutlist::definitions::rules::{self, Rule, explained};
use serde_json::{Value, json};

/// Rules whose examples are not text that can be linted as it stands. Tests elsewhere find them: see `every_code_has_a_case`.
const IN_WORDS: [&str; 18] = [
    "CL0001", "CL0002", "CL0007", "CL0010", "CL0013", "CL0019", "CL0021", "CL0040", "CL0041", "CL0042", "CL0209",
    "CL0214", "CL0308", "CL0309", "CL0621", "CL0622", "CL0625", "CL0903",
];

/// What an example leaves out: an object that has only a kind is completed with what it needs beside the point.
fn complete(mut example: Value) -> Value {
    if example.get("apiVersion").is_some() {
        return example;
    }
    let mut whole = match example["kind"].as_str().unwrap_or_default() {
        "NodePool" => json!({
            "apiVersion": "karpenter.sh/v1", "metadata": { "name": "general" },
            "spec": { "template": { "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
            } } },
        }),
        "EC2NodeClass" => json!({
            "apiVersion": "karpenter.k8s.aws/v1", "metadata": { "name": "default" },
            "spec": {
                "role": "KarpenterNodeRole", "amiSelectorTerms": [{ "alias": "al2023@v20240807" }],
                "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "blue" } }],
                "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "blue" } }],
            },
        }),
        "NodeOverlay" => json!({
            "apiVersion": "karpenter.sh/v1alpha1", "metadata": { "name": "licence" },
            "spec": { "requirements": [{ "key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m7i"] }] },
        }),
        "CapacityBuffer" => json!({
            "apiVersion": "autoscaling.x-k8s.io/v1beta1", "metadata": { "name": "spare" },
            "spec": { "podTemplateRef": { "name": "web" }, "replicas": 1 },
        }),
        "DisruptionBudget" => {
            json!({ "apiVersion": "cutlist.dev/v1alpha1", "metadata": { "name": "all" }, "spec": { "nodes": "1" } })
        }
        "Settings" | "Scenario" | "ImageLock" => json!({ "apiVersion": "cutlist.dev/v1alpha1" }),
        _ => return example,
    };
    merge(&mut whole, example.take());
    whole
}

/// Mappings are merged, `null` takes away, all else replaces.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// Documents of an example, by file: `--- # NAME` begins another file.
fn files(text: &str) -> Vec<SourceFile> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = "definitions.yaml".to_owned();
    let mut document = String::new();
    let mut add = |name: &str, document: &mut String| {
        if !document.trim().is_empty() {
            files.entry(name.to_owned()).or_default().push(completed(&std::mem::take(document)));
        }
    };
    for line in text.lines() {
        if line.starts_with("---") {
            add(&name, &mut document);
            if let Some(next) = line.strip_prefix("--- # ") {
                name = next.to_owned();
            }
        } else {
            document.push_str(&format!("{line}\n"));
        }
    }
    add(&name, &mut document);
    files.into_iter().map(|(name, documents)| SourceFile::new(name, documents.join("---\n"))).collect()
}

/// As it stands, unless it is only a part.
fn completed(document: &str) -> String {
    match serde_yaml::from_str::<Value>(document) {
        Ok(value) if value.get("kind").is_some() && value.get("apiVersion").is_none() => {
            format!("{}\n", complete(value))
        }
        _ => document.to_owned(),
    }
}

fn codes(text: &str) -> Vec<String> {
    let definitions = cutlist::definitions::lint(&files(text), &Default::default());
    definitions.diagnostics.into_iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn every_rule_is_explained_with_examples_that_hold() {
    let mut complaints = Vec::new();
    for rule in rules::all() {
        complaints.extend(complaint(rule));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn complaint(rule: &'static Rule) -> Option<String> {
    let code = rule.code;
    let Some(explanation) = explained::of(rule) else {
        return Some(format!("{code} {}: no page, or one without Bad, Good and Source", rule.name));
    };
    let (bad, good) = (explanation.bad, explanation.good);
    if IN_WORDS.contains(&code) {
        return (bad.language != "text").then(|| format!("{code}: its example could be tried"));
    }
    if [bad, good].iter().any(|example| example.language != "yaml") {
        return Some(format!("{code}: its examples are not YAML"));
    }
    let (of_bad, of_good) = (codes(bad.text), codes(good.text));
    let has = |codes: &[String]| codes.iter().any(|it| it == code);
    if !has(&of_bad) {
        return Some(format!("{code}: the bad example gives only {of_bad:?}"));
    }
    if has(&of_good) {
        return Some(format!("{code}: the good example gives it, too"));
    }
    let errors: Vec<&String> = of_good
        .iter()
        .filter(|it| rules::find(it).is_some_and(|it| it.severity == cutlist::definitions::Severity::Error))
        .collect();
    (!errors.is_empty()).then(|| format!("{code}: the good example has errors of its own: {errors:?}"))
}

/// A heading that no rule has is one that was misspelt.
#[test]
fn pages_are_those_of_rules() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/definitions/rules");
    let mut headings = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines().filter_map(|line| line.strip_prefix("## ")) {
            let (code, name) = line.split_once(' ').unwrap();
            assert_eq!(rules::find(code).map(|rule| rule.name), Some(name), "{}: {line}", path.display());
            headings += 1;
        }
    }
    assert_eq!(headings, rules::all().len());
}
