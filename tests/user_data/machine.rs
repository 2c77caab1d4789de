//! A machine, as far as its user data goes: what cloud-init, nodeadm, `bootstrap.sh`, Bottlerocket and EC2Launch make of it, by other code
//! than wrote it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cutlist::api::ec2_node_class::AmiFamily;
use cutlist::core::catalog::user_data::{Bootstrap, registers_itself_with};
use toml_edit::DocumentMut;

/// The node that registers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub cluster: String,
    pub endpoint: String,
    pub labels: BTreeMap<String, String>,
    /// `key=value:effect`
    pub taints: BTreeSet<String>,
    pub max_pods: i64,
}

impl Node {
    /// Labels in the class's own settings stay on the node.
    pub fn without_labels_of_the_class(mut self, asked: &Self) -> Self {
        self.labels.retain(|key, _| asked.labels.contains_key(key));
        self
    }
}

pub fn asked_for(bootstrap: &Bootstrap) -> Node {
    let mut labels = bootstrap.labels.clone();
    labels.retain(|key, _| registers_itself_with(key));
    labels.insert("karpenter.sh/do-not-sync-taints".to_owned(), "true".to_owned());
    let own = bootstrap
        .taints
        .iter()
        .map(|taint| format!("{}={}:{:?}", taint.key, taint.value.as_deref().unwrap_or_default(), taint.effect));
    Node {
        cluster: bootstrap.cluster.name.clone(),
        endpoint: bootstrap.cluster.endpoint.clone(),
        labels,
        taints: own.chain(["karpenter.sh/unregistered=:NoExecute".to_owned()]).collect(),
        max_pods: bootstrap.max_pods,
    }
}

pub fn boot(family: AmiFamily, text: &str) -> Node {
    match family {
        AmiFamily::AL2 => {
            let script = parts(text).into_iter().rfind(|(_, body)| body.contains("/etc/eks/bootstrap.sh"));
            let call = script.unwrap().1.split("/etc/eks/bootstrap.sh ").last().unwrap().replace("\\\n", "");
            let words = words(&call);
            let after = |option: &str| words[words.iter().position(|word| word == option).unwrap() + 1].clone();
            kubelet(&after("--kubelet-extra-args"), words[0].clone(), after("--apiserver-endpoint"))
        }
        AmiFamily::AL2023 => nodeadm(text),
        AmiFamily::Bottlerocket => bottlerocket(text),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            let inner = text.strip_prefix("<powershell>\n").unwrap().strip_suffix("\n</powershell>").unwrap();
            let call = inner.lines().last().unwrap().strip_prefix("& $EKSBootstrapScriptFile ").unwrap();
            let words = words(call);
            let after = |option: &str| words[words.iter().position(|word| word == option).unwrap() + 1].clone();
            kubelet(&after("-KubeletExtraArgs"), after("-EKSClusterName"), after("-APIServerEndpoint"))
        }
        AmiFamily::Custom => Node::default(),
    }
}

/// Content type and body of each part, as an archive's reader finds them.
pub fn parts(text: &str) -> Vec<(String, String)> {
    let (head, rest) = text.split_once("\n\n").unwrap();
    let boundary = head.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap();
    let (body, end) = rest
        .split_once(&format!("\n--{boundary}--"))
        .map_or_else(|| (rest.strip_suffix(&format!("--{boundary}--\n")).unwrap(), "\n"), |(body, end)| (body, end));
    assert_eq!(end, "\n", "nothing is behind the end");
    let delimiter = format!("--{boundary}\n");
    let body = body.strip_prefix(&delimiter).unwrap();
    body.split(&format!("\n{delimiter}"))
        .map(|part| {
            let without_headers = part.strip_prefix('\n').map(|body| ("", body));
            let (headers, body) = without_headers.or_else(|| part.split_once("\n\n")).unwrap();
            let content_type = headers.lines().find_map(|line| line.strip_prefix("Content-Type: "));
            let is_encoded = headers.lines().any(|line| line == "Content-Transfer-Encoding: base64");
            let body = if is_encoded { decoded(body) } else { body.to_owned() };
            (content_type.unwrap_or("text/plain").to_owned(), body)
        })
        .collect()
}

fn decoded(body: &str) -> String {
    let bytes = BASE64_STANDARD.decode(body.split_whitespace().collect::<String>()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Words of a shell: single quotes keep together, and nothing else is there.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' | '\n' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    assert!(!quoted, "{text}");
    words.retain(|word| !word.is_empty());
    words
}

fn kubelet(flags: &str, cluster: String, endpoint: String) -> Node {
    let mut node = Node { cluster, endpoint, ..Node::default() };
    for flag in flags.split(" --") {
        let (name, value) = flag.trim_start_matches("--").split_once('=').unwrap();
        let value = value.trim_matches('"');
        match name {
            "node-labels" => node.labels = labels(value),
            "register-with-taints" => node.taints = value.split(',').map(with_value).collect(),
            "max-pods" => node.max_pods = value.parse().unwrap(),
            _ => {}
        }
    }
    node
}

fn labels(text: &str) -> BTreeMap<String, String> {
    text.split(',').map(|label| label.split_once('=').unwrap()).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn with_value(taint: &str) -> String {
    if taint.contains('=') { taint.to_owned() } else { taint.replacen(':', "=:", 1) }
}

fn nodeadm(text: &str) -> Node {
    let mut merged = serde_json::json!({});
    let mut flags: Vec<String> = Vec::new();
    for (_, body) in parts(text).into_iter().filter(|(kind, _)| kind == "application/node.eks.aws") {
        let config: serde_json::Value = serde_yaml::from_str(&body).unwrap();
        assert_eq!(config["kind"], "NodeConfig");
        let own = config.pointer("/spec/kubelet/flags").and_then(|it| it.as_array().cloned()).unwrap_or_default();
        flags.extend(own.iter().map(|flag| flag.as_str().unwrap().to_owned()));
        merge(&mut merged, &config);
    }
    let config = &merged["spec"]["kubelet"]["config"];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut node = kubelet(
        flags.last().unwrap(),
        text(&merged["spec"]["cluster"]["name"]),
        text(&merged["spec"]["cluster"]["apiServerEndpoint"]),
    );
    node.max_pods = config["maxPods"].as_i64().unwrap();
    let taint = |taint: &serde_json::Value| {
        format!("{}={}:{}", text(&taint["key"]), text(&taint["value"]), text(&taint["effect"]))
    };
    node.taints = config["registerWithTaints"].as_array().unwrap().iter().map(taint).collect();
    node
}

fn merge(into: &mut serde_json::Value, from: &serde_json::Value) {
    match (into, from) {
        (serde_json::Value::Object(into), serde_json::Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(serde_json::Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn bottlerocket(text: &str) -> Node {
    let document: DocumentMut = text.parse().unwrap();
    let kubernetes = &document["settings"]["kubernetes"];
    let text = |key: &str| kubernetes[key].as_str().unwrap().to_owned();
    let labels = kubernetes["node-labels"].as_table_like().unwrap();
    let taints = kubernetes["node-taints"].as_table_like().unwrap();
    let lists = taints.iter().flat_map(|(key, list)| {
        let entries = list.as_array().unwrap().iter().map(|entry| entry.as_str().unwrap());
        entries.map(|entry| format!("{key}={entry}")).collect::<Vec<_>>()
    });
    Node {
        cluster: text("cluster-name"),
        endpoint: text("api-server"),
        labels: labels.iter().map(|(key, value)| (key.to_owned(), value.as_str().unwrap().to_owned())).collect(),
        taints: lists.collect(),
        max_pods: kubernetes["max-pods"].as_integer().unwrap(),
    }
}
