//! What leaves the program, whatever came in: text from outside stays text, and secrets stay inside.
//!
//! Marks are planted wherever others write (names, labels, titles, messages, paths, arguments), every command is run on them, and what it
//! prints is searched.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the program is run on files that are made here")]

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const NOW: &str = "2026-11-20T09:10:00Z";

/// Sets the title of a window, clears the screen, writes to the clipboard, ends a line and gives CI a command, turns the direction of
/// writing, and closes a fence of Markdown.
const HOSTILE: &str = "x\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{9b}2J\r\n::error::PWNED\n  ::add-mask::x\n##vso[task.x]y##[error]z##teamcity[buildStop]\u{202e}\u{2066}\n```\n";

const SETTINGS: &str = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nmetadata: { name: base }\nspec: { clusterName: demo, region: us-east-1 }\n";
const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec:
  role: r
  amiSelectorTerms: [{ alias: al2023@latest }]
  subnetSelectorTerms: [{ tags: { a: b } }]
  securityGroupSelectorTerms: [{ tags: { a: b } }]
";

fn pool(name: &Value, requirement: &Value) -> String {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [
                { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] },
                { "key": "example.com/team", "operator": "In", "values": [requirement] },
            ],
        } } },
    })
    .to_string()
}

/// What a command printed.
struct Printed {
    what: String,
    stdout: String,
    stderr: String,
}

impl Printed {
    fn texts(&self) -> [&str; 2] {
        [&self.stdout, &self.stderr]
    }
}

fn cutlist(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Printed {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What runs until it is stopped has said all after some seconds; all else ends by itself, on a busy machine later.
    let patience = if arguments.contains(&"run") { 20 } else { 300 };
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let complaints = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let until = Instant::now() + Duration::from_secs(patience);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Printed {
        what: arguments.join(" "),
        stdout: String::from_utf8(reader.join().unwrap()).unwrap(),
        stderr: String::from_utf8(complaints.join().unwrap()).unwrap(),
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn commit(folder: &Path, title: &str) {
    let repository = git2::Repository::init(folder).unwrap();
    let mut index = repository.index().unwrap();
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::new("Ada", "ada@example.com", &git2::Time::new(1_763_600_000, 0)).unwrap();
    repository.commit(Some("HEAD"), &who, &who, title, &tree, &[]).unwrap();
}

/// A cluster in which every name and message is hostile.
fn hostile_cluster() -> Value {
    let object = |api_version: &str, kind: &str, namespace: Option<&str>, rest: Value| {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": format!("{kind}{HOSTILE}"), "uid": HOSTILE, "labels": { HOSTILE: HOSTILE, "karpenter.sh/nodepool": HOSTILE },
                "annotations": { "karpenter.sh/do-not-disrupt": HOSTILE, "cutlist.dev/too-many-terms": HOSTILE },
                "creationTimestamp": "2026-11-20T08:00:00Z",
            },
        });
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        for (key, value) in rest.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let condition = |kind: &str| json!([{ "type": kind, "status": "False", "reason": HOSTILE, "message": HOSTILE, "lastTransitionTime": "2026-11-20T08:00:00Z" }]);
    let pod = |spec: Value| {
        object(
            "v1",
            "Pod",
            Some(HOSTILE),
            json!({ "spec": spec, "status": { "phase": "Pending", "conditions": condition("PodScheduled") } }),
        )
    };
    let with_name = |mut pod: Value, name: &str| {
        pod["metadata"]["name"] = json!(format!("{name}{HOSTILE}"));
        pod["metadata"]["annotations"] = json!({});
        pod
    };
    let requests = |name: &str| json!([{ "name": HOSTILE, "resources": { "requests": { "cpu": "1", name: "1" } } }]);
    json!({ "apiVersion": "v1", "kind": "List", "items": [
        object("v1", "Node", None, json!({
            "spec": { "providerID": "aws:///us-east-1a/i-0123456789abcdef0", "taints": [{ "key": HOSTILE, "value": HOSTILE, "effect": "NoSchedule" }] },
            "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "29" }, "capacity": { "cpu": "4", "memory": "8Gi", "pods": "29" }, "conditions": condition("Ready") },
        })),
        object("karpenter.sh/v1", "NodeClaim", None, json!({
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [] },
            "status": { "providerID": "aws:///us-east-1a/i-0123456789abcdef0", "nodeName": format!("Node{HOSTILE}"), "conditions": condition("Drifted") },
        })),
        pod(json!({ "containers": requests("memory") })),
        with_name(pod(json!({ "containers": requests(HOSTILE) })), "resource"),
        with_name(pod(json!({ "containers": requests("memory"), "nodeSelector": { HOSTILE: HOSTILE } })), "selector"),
        with_name(pod(json!({ "containers": requests("memory"), "schedulingGates": [{ "name": HOSTILE }] })), "gated"),
        with_name(pod(json!({ "containers": requests("memory"), "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": HOSTILE } }] })), "volume"),
        with_name(pod(json!({ "containers": requests("memory"), "nodeName": format!("Node{HOSTILE}") })), "bound"),
        object("policy/v1", "PodDisruptionBudget", Some(HOSTILE), json!({ "spec": { "maxUnavailable": HOSTILE, "selector": {} } })),
        object("apps/v1", "DaemonSet", Some(HOSTILE), json!({ "spec": { "selector": {}, "template": { "spec": { "containers": requests("memory") } } } })),
        object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", Some(HOSTILE), json!({ "spec": { "provisioningStrategy": HOSTILE } })),
        object("karpenter.sh/v1", "NodePool", None, json!({ "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": HOSTILE }, "requirements": [],
        } } } })),
        object(HOSTILE, HOSTILE, None, json!({})),
    ] })
}

/// The forms of a report of lint.
const FORMS: [&str; 10] =
    ["json", "jsonl", "sarif", "junit", "github", "gitlab", "azuredevops", "tap", "markdown", "checkstyle"];

/// What lines begin with that are meant as commands, by the form that has them.
const OWN_COMMANDS: [(&str, &[&str]); 2] = [
    ("github", &["::error file=", "::warning file=", "::notice file="]),
    ("azuredevops", &["##vso[task.logissue type=", "##vso[task.complete result="]),
];

fn is_obeyed(character: char) -> bool {
    (character.is_control() && character != '\n')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// What somebody could make a terminal or a CI system do with this.
fn obeyed(printed: &Printed, is_markdown: bool) -> Vec<String> {
    let mut found = Vec::new();
    for text in printed.texts() {
        // Markdown breaks mentions and links with spaces of no width, which are ours.
        let hostile = |character: &char| is_obeyed(*character) && !(is_markdown && *character == '\u{200b}');
        // What is no terminal gets the files' own bytes of a patch: it could not be applied with others.
        let is_patch = text.starts_with("--- ");
        if let Some(character) = text.chars().find(hostile).filter(|_| !is_patch) {
            found.push(format!("{}: {character:?} in {text:?}", printed.what));
        }
        let form = printed.what.rsplit(' ').next().unwrap_or_default();
        let own = OWN_COMMANDS.iter().find(|(name, _)| *name == form).map_or(&[][..], |(_, own)| *own);
        for line in text.lines() {
            let line = own.iter().find_map(|command| line.strip_prefix(command)).unwrap_or(line);
            if line.trim_start().starts_with("::")
                || line.contains("##[")
                || line.contains("##vso[")
                || line.contains("##teamcity[")
            {
                found.push(format!("{}: a command: {line:?}", printed.what));
            }
        }
    }
    found
}

/// Definitions with mistakes, and hostile text wherever there may be some.
fn hostile_definitions(root: &Path) {
    write(root, &format!("ci/a{HOSTILE}.yaml"), &pool(&json!(HOSTILE), &json!(HOSTILE)));
    write(
        root,
        "ci/b.yaml",
        &format!("{}\n# {HOSTILE}", pool(&json!(format!("b{HOSTILE}")), &json!("a")).replace("amd64", "nothing")),
    );
    // Something to fix, with hostile lines around it.
    let fixable = pool(&json!("c"), &json!("a")).replace("amd64", "aarch64");
    write(
        root,
        "ci/c.yaml",
        &format!("# ##[error]z\u{202e} ##vso[task.x]y\n# ::error::PWNED\n{fixable}\n# ::add-mask::x\n"),
    );
    std::fs::create_dir(root.join("old")).unwrap();
    let old = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: { name: old }\nspec:\n  disruption:\n    expireAfter: 24h";
    write(
        root,
        "old/pool.yaml",
        &format!("# ##[error]z\u{202e} ##vso[task.x]y\n# ::error::PWNED\n{old}\n# ::add-mask::x\n"),
    );
    write(
        root,
        "ci/kustomization.yaml",
        &json!({ "resources": [HOSTILE], "patches": [{ "path": HOSTILE }] }).to_string(),
    );
}

#[test]
fn text_from_outside_stays_text() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["clean", "hostile", "ci"] {
        std::fs::create_dir(root.join(name)).unwrap();
        write(root, &format!("{name}/cutlist.yaml"), SETTINGS);
        write(root, &format!("{name}/class.yaml"), CLASS);
    }
    write(root, "clean/pool.yaml", &pool(&json!("default"), &json!("a")));
    write(root, "hostile/pool.yaml", &pool(&json!("default"), &json!("a")));
    symlink("pool.yaml", root.join(format!("hostile/evil{}.yaml", HOSTILE.replace('/', "")))).unwrap();
    commit(&root.join("clean"), HOSTILE);
    commit(&root.join("hostile"), HOSTILE);
    hostile_definitions(root);
    write(root, "cluster.json", &hostile_cluster().to_string());
    write(
        root,
        "status.json",
        &json!({ "apiVersion": "v1", "kind": "Status", "message": HOSTILE, "reason": HOSTILE }).to_string(),
    );
    write(root, "message.json", &format!("Error from server: {HOSTILE}"));
    write(root, "broken.json", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": HOSTILE }, "spec": { "containers": HOSTILE } }).to_string());
    let repository = root.join("hostile");
    let repository = repository.to_str().unwrap();
    let pod = format!("Pod{HOSTILE}");
    let node = format!("Node{HOSTILE}");
    let plan = |rest: &[&'static str]| [&["plan", "clean", "--snapshot", "cluster.json", "--now", NOW], rest].concat();
    let mut commands: Vec<(Vec<&str>, bool)> = vec![
        (plan(&[]), false),
        (plan(&["-o", "json"]), false),
        (plan(&["-o", "markdown"]), true),
        (vec!["plan", "hostile", "--now", NOW], false),
        (vec!["plan", "ci", "--now", NOW], false),
        (vec!["why", "pod", &pod, "-n", HOSTILE, "--snapshot", "cluster.json", "--now", NOW, "clean"], false),
        (vec!["why", "node", &node, "--snapshot", "cluster.json", "--now", NOW, "clean"], false),
        (vec!["why", "node", HOSTILE, "--snapshot", "cluster.json", "--now", NOW, "clean"], false),
        (vec!["lint", "ci"], false),
        (vec!["lint", "ci", "-o", "json"], false),
        (vec!["lint", "ci", "--diff"], false),
        (vec!["lint", "ci", "--fail-on", HOSTILE], false),
        (vec!["lint", "ci", "-o", HOSTILE], false),
        (vec!["lint", "ci", "--baseline", HOSTILE], false),
        (vec!["lint", "clean", "--changed-since", HOSTILE], false),
        (vec!["migrate", "old"], false),
        (vec!["explain", HOSTILE], false),
        (vec!["lint", "hostile"], false),
        (vec!["lint", HOSTILE], false),
        (vec!["snapshot", "--from", "cluster.json"], false),
        (vec!["simulate", "clean", "--snapshot", "cluster.json", "--now", NOW], false),
        (vec!["plan", "clean", "--against", HOSTILE], false),
        (vec!["plan", "clean", "--catalog", HOSTILE], false),
        (vec![HOSTILE], false),
        (vec!["plan", "--packing", HOSTILE], false),
        (vec!["run", "--embedded", repository, "-v"], false),
        (vec!["run", "--embedded", HOSTILE], false),
    ];
    commands.extend(FORMS.map(|form| (vec!["lint", "ci", "-o", form], form == "markdown")));
    for file in ["status.json", "message.json", "broken.json", HOSTILE] {
        commands.push((vec!["plan", "clean", "--snapshot", file], false));
    }
    let mut found = Vec::new();
    for (arguments, is_markdown) in commands {
        let printed = cutlist(root, &arguments, &[]);
        assert!(printed.texts().concat().len() > 20, "{} says nothing", printed.what);
        assert!(!printed.stderr.contains("internal error"), "{}", printed.stderr);
        found.extend(obeyed(&printed, is_markdown));
        if arguments.contains(&"json") {
            serde_json::from_str::<Value>(&printed.stdout).unwrap();
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Stands for whatever nobody else may know.
const SECRET: &str = "sekret4of2prod";

/// Files that hold it wherever somebody might write it.
fn plant_secrets(root: &Path) {
    std::fs::create_dir(root.join("definitions")).unwrap();
    write(root, "definitions/cutlist.yaml", SETTINGS);
    write(
        root,
        "definitions/class.yaml",
        &format!("{CLASS}  userData: \"export TOKEN={SECRET} ${{AWS_SECRET_ACCESS_KEY}}\"\n"),
    );
    write(root, "definitions/pool.yaml", &pool(&json!("default"), &json!("${TEAM}")));
    write(root, "credentials", &format!("{SECRET}\n"));
    write(root, "kubeconfig", &json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://user:{SECRET}@127.0.0.1:1/?token={SECRET}") } }],
        "users": [{ "name": "u", "user": { "token": SECRET, "password": SECRET, "username": "u" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    }).to_string());
    let class: Value = serde_json::to_value(
        serde_yaml::from_str::<Value>(&format!("{CLASS}  userData: \"{SECRET}\"\n  context: {SECRET}\n")).unwrap(),
    )
    .unwrap();
    let pods = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "d" }, "spec": { "containers": [{
        "name": "c", "image": format!("user:{SECRET}@example.com/x"), "env": [{ "name": "A", "value": SECRET }], "args": [SECRET],
    }] } });
    write(
        root,
        "cluster.json",
        &json!({ "apiVersion": "v1", "kind": "List", "items": [class, pods, {
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": { "a": SECRET },
    }] })
        .to_string(),
    );
    // A value that a type refuses, in the middle of a class.
    write(root, "newer.json", &json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "n" }, "spec": {
        "amiFamily": "AL2027", "userData": SECRET, "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [],
    } }).to_string());
}

#[test]
fn secrets_stay_inside() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    plant_secrets(root);
    let environment = [
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("CUTLIST_VAR_TEAM", SECRET),
        ("HTTP_PROXY", "http://u:sekret4of2prod@127.0.0.1:1"),
        ("HTTPS_PROXY", "http://u:sekret4of2prod@127.0.0.1:1"),
        ("GITHUB_TOKEN", SECRET),
    ];
    let url = |form: &str| form.replace('S', SECRET);
    let urls: Vec<String> = [
        "http://S@127.0.0.1:1/x.git",
        "http://u:S@127.0.0.1:1/x.git",
        "http://127.0.0.1:1/x.git?private_token=S",
        "http://u:a/S@127.0.0.1:1/x.git",
        "https://S@127.0.0.1:1/x.git#S",
        "git://S@127.0.0.1:1/x.git",
        "ftp://S:S@127.0.0.1:1/x",
        "S@127.0.0.1:x.git",
    ]
    .map(url)
    .into();
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["plan", "definitions", "--snapshot", "cluster.json", "--now", NOW],
        vec!["plan", "definitions", "--snapshot", "cluster.json", "--now", NOW, "-o", "json"],
        vec!["plan", "definitions", "--snapshot", "cluster.json", "--now", NOW, "-o", "markdown"],
        vec!["plan", "definitions", "--snapshot", "newer.json", "--now", NOW],
        vec!["plan", "definitions", "--kubeconfig", "kubeconfig"],
        vec!["why", "pod", "d/p", "definitions", "--snapshot", "cluster.json", "--now", NOW],
        vec!["lint", "definitions"],
        vec!["lint", "definitions", "-o", "json"],
        vec!["lint", "definitions", "--variable-from-environment", "AWS_SECRET_ACCESS_KEY"],
        vec!["snapshot", "--from", "cluster.json"],
        vec!["snapshot", "--kubeconfig", "kubeconfig"],
        vec!["simulate", "definitions", "--snapshot", "cluster.json", "--now", NOW],
        vec!["run", "--embedded", "definitions", "-v"],
        vec!["run", "--kubeconfig", "kubeconfig", "--cloud", "embedded", "definitions", "-v"],
        vec!["--help"],
        vec!["run", "--help"],
        vec!["plan", "--help"],
    ];
    commands.extend(FORMS.map(|form| vec!["lint", "definitions", "-o", form]));
    for url in &urls {
        commands.push(vec!["run", "--embedded", url, "-v"]);
        commands.push(vec!["run", "--embedded", url, "--credentials-file", "credentials"]);
    }
    let mut found = Vec::new();
    for arguments in commands {
        let printed = cutlist(root, &arguments, &environment);
        for text in printed.texts() {
            if let Some(line) = text.lines().find(|line| line.contains(SECRET)) {
                found.push(format!("{}: {line}", printed.what));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whoever reads a part must not take it for the whole. A reader that closes the pipe has seen enough.
#[cfg(target_os = "linux")]
#[test]
fn what_can_not_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join("definitions")).unwrap();
    std::fs::write(root.join("definitions/cutlist.yaml"), SETTINGS).unwrap();
    std::fs::write(root.join("definitions/class.yaml"), CLASS).unwrap();
    std::fs::write(root.join("definitions/pool.yaml"), pool(&json!("general"), &json!("shop"))).unwrap();
    std::fs::write(root.join("cluster.json"), json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "shop" }, "spec": { "containers": [{ "name": "a", "image": "a" }] } },
    ] }).to_string()).unwrap();
    let quickstart = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart");
    let on_cluster = ["definitions", "--snapshot", "cluster.json", "--now", NOW];
    let with = |command: &[&'static str], further: &[&'static str]| [command, &on_cluster, further].concat();
    for (arguments, code) in [
        (with(&["plan"], &[]), 1),
        (with(&["plan"], &["-o", "json", "--detailed-exitcode"]), 1),
        (with(&["plan"], &["-o", "markdown"]), 1),
        (with(&["plan"], &["--calendar"]), 1),
        (with(&["why", "pod", "shop/a"], &[]), 1),
        (with(&["simulate"], &[]), 1),
        (with(&["simulate"], &["-v"]), 1),
        (vec!["lint", "definitions"], 2),
        (vec!["lint", "definitions", "-o", "json"], 2),
        (vec!["explain"], 1),
        (vec!["catalog"], 1),
        (vec!["crds"], 1),
        (vec!["snapshot", "--from", "cluster.json"], 1),
        (vec!["run", "--embedded", quickstart], 1),
        (vec!["plan", "--help"], 1),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.args(&arguments).current_dir(root).env_clear().stdin(Stdio::null());
        let ran = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains("standard output can not be written: No space left on device"), "{arguments:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = command.stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&closed.stderr);
        assert!(!said.contains("can not be written") && !said.contains("internal error"), "{arguments:?}: {said}");
    }
}
