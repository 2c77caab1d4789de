//! Definitions of a few kilobytes that stand for gigabytes: an error that names the limit, soon.

use std::fmt::Write;
use std::path::Path;

use crate::lint;

/// The definitions of the quickstart with one more file.
fn with(name: &str, text: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    for file in ["nodepool.yaml", "ec2nodeclass.yaml"] {
        std::fs::copy(quickstart.join(file), copy.path().join(file)).unwrap();
    }
    std::fs::write(copy.path().join(name), text).unwrap();
    copy
}

fn lint_of(folder: &tempfile::TempDir) -> String {
    let (text, code) = lint(&crate::folder(), &[folder.path().to_str().unwrap(), "-o", "json"]);
    assert_eq!(code, 1, "{text}");
    text
}

#[test]
fn patches_that_double_an_object_again_and_again() {
    let mut kustomization = "resources: [nodepool.yaml, ec2nodeclass.yaml]\npatches:\n".to_owned();
    for number in 0..40 {
        let patch = format!(r#"[{{"op":"copy","from":"/spec","path":"/spec/x{number}"}}]"#);
        writeln!(kustomization, "- {{target: {{kind: NodePool}}, patch: '{patch}'}}").unwrap();
    }
    let text = lint_of(&with("kustomization.yaml", &kustomization));
    assert!(text.contains("the patch makes the object larger than 8 MiB"), "{}", text.len());
}

#[test]
fn a_replacement_that_copies_into_many_places() {
    let paths = vec!["metadata.labels.a"; 20_000].join(", ");
    let long = "x".repeat(1000);
    let kustomization = format!(
        "resources: [nodepool.yaml, ec2nodeclass.yaml]\ncommonAnnotations: {{long: {long}}}\nreplacements:\n\
         - source: {{kind: NodePool, fieldPath: metadata.annotations.long}}\n  targets:\n  \
         - select: {{kind: NodePool}}\n    options: {{create: true}}\n    fieldPaths: [{paths}]\n"
    );
    let text = lint_of(&with("kustomization.yaml", &kustomization));
    assert!(text.contains("the replacement makes an object larger than 8 MiB"), "{}", text.len());
}

#[test]
fn a_long_variable_that_is_named_again_and_again() {
    let settings = format!(
        "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec:\n  variables:\n    A: {}\n---\napiVersion: karpenter.sh/v1\n\
         kind: NodePool\nmetadata:\n  name: other\n  annotations:\n    long: {}\n",
        "x".repeat(100_000),
        "${A}".repeat(2_000)
    );
    let text = lint_of(&with("cutlist.yaml", &settings));
    assert!(text.contains("longer than 2 MiB: left as written"), "{}", text.len());
}

/// Each of them has all the others beside it.
#[test]
fn a_mapping_of_thousands_of_unknown_fields() {
    let mut pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: wide}\nspec:\n".to_owned();
    for number in 0..20_000 {
        writeln!(pool, "  unknownField{number}: 1").unwrap();
    }
    let started = std::time::Instant::now();
    let text = lint_of(&with("wide.yaml", &pool));
    assert!(text.contains("more findings"), "{}", text.len());
    assert!(started.elapsed().as_secs() < 30, "{:?}: that grows with the square of the fields", started.elapsed());
}
