//! Revisions side by side.

use super::*;
use crate::definitions::{GivenVariables, read};

const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  limits:
    cpu: 100
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
";

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@v20250101}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
  userData: |
    echo secret
";

fn between(base: &[(&str, &str)], head: &[(&str, &str)]) -> Vec<Change> {
    let files =
        |files: &[(&str, &str)]| files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect::<Vec<_>>();
    let (base, head) = (files(base), files(head));
    let [of_base, of_head] = [&base, &head].map(|files| read(files, &GivenVariables::default()));
    assert!(!of_base.has_errors() && !of_head.has_errors(), "{:?} {:?}", of_base.diagnostics, of_head.diagnostics);
    changes(Side { definitions: &of_base, files: &base }, Side { definitions: &of_head, files: &head })
}

#[test]
fn a_field_is_named_with_its_line() {
    let head = POOL.replace("cpu: 100", "cpu: 200");
    let both = format!("{CLASS}---\n{head}");
    let found = between(&[("a.yaml", &format!("{CLASS}---\n{POOL}"))], &[("a.yaml", &both)]);
    let [change] = &found[..] else { panic!("{found:?}") };
    assert_eq!((change.kind, change.name.as_str(), &change.what), ("NodePool", "default", &ChangeKind::Changed));
    assert_eq!(both.lines().nth(change.line - 1), Some("    cpu: 200"));
    let [field] = &change.fields[..] else { panic!("{found:?}") };
    assert_eq!(field.path, "spec.limits.cpu");
    assert_eq!((field.before.as_deref(), field.after.as_deref()), (Some("100"), Some("200")));
}

#[test]
fn what_only_looks_different_is_no_change() {
    let moved = format!("# Why.\n{POOL}");
    assert_eq!(between(&[("a.yaml", POOL), ("b.yaml", CLASS)], &[("c.yaml", CLASS), ("d/a.yaml", &moved)]), []);
}

/// As kustomize writes them, which does not know that pools live in none.
#[test]
fn a_namespace_of_what_lives_in_none_is_no_change() {
    let named = |text: &str| text.replace("  name: default\nspec", "  name: default\n  namespace: infra\nspec");
    let head = [("a.yaml", &*named(POOL)), ("b.yaml", &named(CLASS))];
    assert_ne!(head[0].1, POOL);
    assert_eq!(between(&[("a.yaml", POOL), ("b.yaml", CLASS)], &head), []);
}

#[test]
fn another_name_is_a_rename() {
    let renamed = POOL.replace("name: default\nspec", "name: general\nspec");
    let found = between(&[("a.yaml", POOL), ("b.yaml", CLASS)], &[("a.yaml", &renamed), ("b.yaml", CLASS)]);
    let [change] = &found[..] else { panic!("{found:?}") };
    assert_eq!((change.name.as_str(), &change.what), ("general", &ChangeKind::Renamed { from: "default".to_owned() }));
    let other = renamed.replace("cpu: 100", "cpu: 10");
    let found = between(&[("a.yaml", POOL), ("b.yaml", CLASS)], &[("a.yaml", &other), ("b.yaml", CLASS)]);
    assert_eq!(found.iter().map(|it| &it.what).collect::<Vec<_>>(), [&ChangeKind::Removed, &ChangeKind::Added]);
}

#[test]
fn user_data_is_not_shown() {
    let other = CLASS.replace("echo secret", "echo other");
    let found = between(&[("a.yaml", POOL), ("b.yaml", CLASS)], &[("a.yaml", POOL), ("b.yaml", &other)]);
    let [change] = &found[..] else { panic!("{found:?}") };
    assert!(change.fields.iter().all(|field| field.is_secret && field.after.is_none()), "{found:?}");
    assert!(!format!("{found:?}").contains("echo"));
}

#[test]
fn a_patch_is_where_the_change_stands() {
    let kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [pool.yaml, class.yaml]\npatches:\n  - path: patch.yaml\n";
    let patch = |cpu: u32| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: default\nspec:\n  limits:\n    cpu: {cpu}\n"
        )
    };
    let files = |patch: &str| {
        vec![
            ("class.yaml".to_owned(), CLASS.to_owned()),
            ("kustomization.yaml".to_owned(), kustomization.to_owned()),
            ("patch.yaml".to_owned(), patch.to_owned()),
            ("pool.yaml".to_owned(), POOL.to_owned()),
        ]
    };
    let (before, after) = (files(&patch(5)), files(&patch(6)));
    let slices = |files: &'static [(String, String)]| {
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>()
    };
    let found = between(&slices(before.leak()), &slices(after.leak()));
    let [change] = &found[..] else { panic!("{found:?}") };
    assert_eq!((change.file.as_str(), change.line), ("patch.yaml", 7));
}

#[test]
fn settings_are_a_definition() {
    let settings = |packing: &str| {
        format!("apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec:\n  clusterName: blue\n  packing: {packing}\n")
    };
    let found = between(&[("cutlist.yaml", &settings("cheapest"))], &[("cutlist.yaml", &settings("karpenter"))]);
    let [change] = &found[..] else { panic!("{found:?}") };
    assert_eq!((change.kind, change.line), (SETTINGS, 5));
    assert_eq!(change.fields[0].path, "packing");
}

/// What an error was found in is in the files all the same: it is not new where the error goes, and is gone where its file goes.
#[test]
fn what_can_not_be_used_is_there() {
    let broken = POOL.replace("limits:", "disruption: {consolidateAfter: 0 seconds}\n  limits:");
    let other = broken.replace("on-demand", "spot");
    let side = |text: &str| {
        let files = vec![SourceFile::new("a.yaml", text), SourceFile::new("b.yaml", CLASS)];
        let definitions = read(&files, &GivenVariables::default());
        (files, definitions)
    };
    let between = |base: &str, head: &str| {
        let ((base, of_base), (head, of_head)) = (side(base), side(head));
        changes(Side { definitions: &of_base, files: &base }, Side { definitions: &of_head, files: &head })
    };
    assert!(side(&broken).1.has_errors());
    assert_eq!(between(&broken, &broken), []);
    let what = |found: &[Change]| found.iter().map(|it| (it.kind, it.what.clone())).collect::<Vec<_>>();
    let changed = [("NodePool", ChangeKind::Changed)];
    assert_eq!(what(&between(&broken, &other)), changed);
    assert_eq!(what(&between(&broken, POOL)), changed);
    assert_eq!(what(&between(POOL, &broken)), changed);
    assert_eq!(what(&between(&broken, "")), [("NodePool", ChangeKind::Removed)]);
    let twice = format!("{POOL}---\n{POOL}");
    assert_eq!(between(&twice, POOL), []);
}

/// Nor does a variable without a value hide that something else is different.
#[test]
fn what_can_not_be_read_before_its_variables_have_values_is_there() {
    let open = POOL.replace("limits:", "weight: ${WEIGHT}\n  limits:");
    let side = |text: &str| {
        let files = vec![SourceFile::new("a.yaml", text), SourceFile::new("b.yaml", CLASS)];
        let definitions = read(&files, &GivenVariables::default());
        (files, definitions)
    };
    let ((base, of_base), (head, of_head)) = (side(&open), side(&open.replace("on-demand", "spot")));
    let found = changes(Side { definitions: &of_base, files: &base }, Side { definitions: &of_head, files: &head });
    let [change] = &found[..] else { panic!("{found:?}") };
    assert_eq!((change.kind, change.name.as_str()), ("NodePool", "default"));
}
