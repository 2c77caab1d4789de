//! Rules that operators write, held against commits and changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Item, JudgedCommit, Policy, PolicyError, Question, Side, Signer, changed, judge};
use crate::api::source::SourceFile;
use crate::definitions::{self, GivenVariables};

fn policy(spec: &Value) -> Result<Policy, PolicyError> {
    let document = json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "SigningPolicy", "spec": spec });
    Policy::of(&serde_json::from_value(document).unwrap())
}

fn path(path: &str) -> Item {
    Item::Path(path.to_owned())
}

fn commit(id: &str, by: &str, items: &[Item]) -> JudgedCommit {
    let signer = match by {
        "" => Signer::Nobody,
        name => Signer::Known { names: vec![name.to_owned()], shown: name.to_owned() },
    };
    JudgedCommit { id: id.to_owned(), title: id.to_uppercase(), signer, items: items.iter().cloned().collect() }
}

/// What is refused: commit and rule.
fn refused(policy: &Policy, commits: &[JudgedCommit], differs: &[Item]) -> Vec<(String, Option<String>)> {
    let differs: BTreeSet<Item> = differs.iter().cloned().collect();
    let question = Question { policy, branch: "main", commits, differs: &differs };
    judge(question).into_iter().map(|it| (it.commit, it.rule)).collect()
}

fn settings() -> Policy {
    policy(&json!({
        "groups": { "platform": ["Ada@example.com"], "all": ["ada@example.com", "bob@example.com"] },
        "rules": [
            { "name": "settings", "paths": ["cutlist.yaml"], "signers": ["platform"] },
            { "name": "release", "paths": ["**"], "branches": ["release/*"], "signers": ["platform"] },
            { "name": "any", "paths": ["**"], "signers": ["all"] },
        ],
    }))
    .unwrap()
}

#[test]
fn each_commit_answers_for_what_it_changed() {
    let (policy, settings, pool) = (settings(), path("cutlist.yaml"), path("pool.yaml"));
    let both = [settings.clone(), pool.clone()];
    let of = |name: &str, rule: &str| (name.to_owned(), Some(rule.to_owned()));
    let ada = commit("a", "ada@example.com", std::slice::from_ref(&settings));
    let bob = commit("b", "bob@example.com", std::slice::from_ref(&pool));
    assert_eq!(refused(&policy, &[ada.clone(), bob.clone()], &both), []);
    // Who may sign the head does not sign for what others changed before it.
    let bobs = commit("b", "bob@example.com", &both);
    assert_eq!(refused(&policy, &[bobs.clone(), ada.clone()], &both), [of("b", "settings")]);
    // What was undone in between asks nobody.
    assert_eq!(refused(&policy, &[bobs, bob.clone()], std::slice::from_ref(&pool)), []);
    // A key that may only merge: what it brings itself is for others.
    let forge = |items: &[Item]| commit("m", "forge@example.com", items);
    assert_eq!(refused(&policy, &[ada.clone(), bob.clone(), forge(&[])], &both), []);
    assert_eq!(refused(&policy, &[ada.clone(), forge(std::slice::from_ref(&pool))], &both), [of("m", "any")]);
    // What no commit in between accounts for is the head's.
    assert_eq!(refused(&policy, std::slice::from_ref(&bob), &both), [of("b", "settings")]);
    assert_eq!(refused(&policy, &[ada], &both), []);
    // Nobody's head.
    assert_eq!(refused(&policy, &[bob, commit("c", "", &[])], &[pool]), [("c".to_owned(), None)]);
    assert_eq!(refused(&policy, &[], &both), []);
}

#[test]
fn rules_are_for_their_branches() {
    let (policy, pool) = (settings(), path("pool.yaml"));
    let differs = [pool.clone()].into();
    let commits = [commit("b", "bob@example.com", &[pool])];
    let on = |branch| judge(Question { policy: &policy, branch, commits: &commits, differs: &differs }).len();
    assert_eq!((on("main"), on("release/1.0"), on("release")), (0, 1, 0));
}

#[test]
fn what_others_wrote_is_safe_to_show() {
    let policy = settings();
    let mut eve = commit("e", "", &[path("cut\u{1b}[2Jlist.yaml"), path("x\u{202e}y")]);
    eve.title = format!("\u{1b}]0;owned\u{7}{}", "x".repeat(100_000));
    let differs = eve.items.clone();
    let unsigned = judge(Question { policy: &policy, branch: "main", commits: &[eve], differs: &differs });
    let text: String = unsigned.iter().map(ToString::to_string).collect();
    assert!(unsigned.len() == 2 && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
    assert!(text.len() < 2_000, "{}", text.len());
}

#[test]
fn what_can_not_be_meant_is_an_error() {
    let groups = json!({ "platform": ["ada@example.com"] });
    let error = |rules: Value| policy(&json!({ "groups": groups, "rules": rules })).unwrap_err().to_string();
    for (rules, expected) in [
        (json!([]), "spec.rules is empty"),
        (json!([{ "name": "a", "signers": ["platform"] }]), "rule `a` is about nothing"),
        (json!([{ "name": "a", "paths": ["x"], "signers": [] }]), "rule `a` names no signers"),
        (
            json!([{ "name": "a", "paths": ["x"], "signers": ["plattform"] }]),
            "there is none of that name; there is platform",
        ),
        (json!([{ "name": "a", "paths": ["["], "signers": ["platform"] }]), "`[` of rule `a` is no pattern"),
        (
            json!([{ "name": "a", "paths": ["x"], "signers": ["platform"] }, { "name": "a", "paths": ["y"], "signers": ["platform"] }]),
            "two rules are called `a`",
        ),
    ] {
        let error = error(rules);
        assert!(error.contains(expected), "{error}");
    }
    let empty = policy(
        &json!({ "groups": { "nobody": [] }, "rules": [{ "name": "a", "paths": ["x"], "signers": ["nobody"] }] }),
    );
    assert_eq!(empty.unwrap_err(), PolicyError::EmptyGroup("nobody".to_owned()));
}

/// What a change of definitions comes under, whatever the file is called.
fn items(before: &str, after: &str) -> Vec<String> {
    let files = |text: &str| vec![SourceFile::new("some.yaml", text)];
    let (before, after) = (files(before), files(after));
    let read = |files: &[SourceFile]| definitions::read(files, &GivenVariables::default());
    let (of_before, of_after) = (read(&before), read(&after));
    let found =
        changed(Side { definitions: &of_before, files: &before }, Side { definitions: &of_after, files: &after });
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn amounts_that_become_larger_are_found() {
    let pool = |spec: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: a}}\nspec:\n{spec}  template:\n    spec:\n      nodeClassRef: \
             {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}\n      requirements: []\n"
        )
    };
    let limits = |limits: &str| pool(&format!("  limits: {{{limits}}}\n"));
    let raised = |before: &str, after: &str| {
        let mut items = items(before, after);
        items.retain(|item| item.starts_with("raises"));
        items
    };
    let ten = limits("cpu: 10, memory: 1Gi");
    assert_eq!(raised(&ten, &limits("cpu: 10001m, memory: 1024Mi")), ["raises the limit cpu of NodePool/a"]);
    assert_eq!(raised(&ten, &limits("cpu: 9, memory: 2Gi")), ["raises the limit memory of NodePool/a"]);
    assert_eq!(raised(&ten, &limits("cpu: 9, memory: 1Gi, nodes: 3")), [""; 0]);
    assert_eq!(raised(&ten, &pool("")).len(), 2);
    assert_eq!(raised("", &ten), ["raises the limit of NodePool/a"]);
    assert_eq!(raised(&ten, ""), [""; 0]);
    assert_eq!(raised(&pool("  replicas: 1\n"), &pool("  replicas: 2\n")), ["raises replicas of NodePool/a"]);
    assert!(items(&ten, &limits("cpu: 9, memory: 1Gi")).contains(&"changes NodePool/a".to_owned()));
    let budget =
        "apiVersion: cutlist.dev/v1alpha1\nkind: DisruptionBudget\nmetadata: {name: money}\nspec: {moneyPerHour: 1}\n";
    let changed = items("", budget);
    assert!(changed.iter().any(|item| item == "changes DisruptionBudget/money"), "{changed:?}");
}
