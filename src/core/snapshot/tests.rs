//! Every form that a cluster is handed over in gives the same snapshot, and what is written can be read and shared.

mod canaries;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::model::shown_hash::is_same;
use crate::model::static_hash::class_hash;

use super::read::{ReadError, ReadReport, read};
use super::write::write;
use super::{PodIndex, Snapshot};

/// One object of each kind, with the word `hunter2` wherever something private may stand.
const OBJECTS: &str = include_str!("../../../tests/snapshot/objects.json");

fn objects() -> Vec<Value> {
    serde_json::from_str(OBJECTS).unwrap()
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "items": items, "kind": "List", "metadata": { "resourceVersion": "" } })
}

fn snapshot_of(bytes: &[u8]) -> (Snapshot, ReadReport) {
    let mut snapshot = Snapshot::default();
    let report = read(bytes, &mut snapshot).unwrap();
    (snapshot, report)
}

fn error_of(text: &str) -> String {
    let mut snapshot = Snapshot::default();
    let error = read(text.as_bytes(), &mut snapshot).unwrap_err();
    assert_eq!(snapshot, Snapshot::default(), "nothing may be kept of an input that is refused");
    error.to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn pod(name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "shop", "uid": uid }, "spec": { "containers": [] } })
}

/// What is shown is aligned by names.
#[test]
fn a_name_is_no_longer_than_an_api_server_keeps_one() {
    let (snapshot, _) = snapshot_of(pod(&"x".repeat(253), "1").to_string().as_bytes());
    assert_eq!(snapshot.pods.len(), 1);
    let error = error_of(&pod(&"x".repeat(1_000_000), "1").to_string());
    assert!(
        error.contains("metadata.name: it has 1000000 bytes, and the most is 253"),
        "{}",
        error.get(..300).unwrap_or(&error)
    );
    assert!(error.len() < 1_000, "it is not said whole");
    let mut elsewhere = pod("a", "1");
    elsewhere["metadata"]["namespace"] = json!("y".repeat(254));
    assert!(error_of(&elsewhere.to_string()).contains("metadata.namespace: it has 254 bytes"));
}

#[test]
fn every_form_gives_the_same_snapshot() {
    let objects = objects();
    let json_list = list(&objects).to_string();
    let (expected, report) = snapshot_of(json_list.as_bytes());
    assert_eq!(report.objects, 28);
    assert_eq!(expected.pods.len(), 2);
    assert_eq!(
        expected.ignored.keys().collect::<Vec<_>>(),
        ["karpenter.sh/v1beta1/NodePool", "v1/ConfigMap", "v1/Secret"]
    );
    assert_eq!(
        report.notes,
        ["1 x karpenter.sh/v1beta1/NodePool not used: another version of this kind is planned with"]
    );

    let pretty = serde_json::to_string_pretty(&list(&objects)).unwrap();
    let json_stream: Vec<String> = objects.iter().map(|object| serde_json::to_string_pretty(object).unwrap()).collect();
    let yaml_stream: Vec<String> = objects.iter().map(|object| serde_yaml::to_string(object).unwrap()).collect();
    let yaml_list = serde_yaml::to_string(&list(&objects)).unwrap();
    let (half, other_half) = objects.split_at(7);
    let forms: Vec<(&str, Vec<u8>)> = vec![
        ("JSON as kubectl indents it", pretty.clone().into()),
        ("JSON array", OBJECTS.into()),
        ("JSON stream", json_stream.join("\n").into()),
        ("JSON between YAML separators", json_stream.join("\n---\n").into()),
        ("two lists", format!("{}{}", list(half), list(other_half)).into()),
        ("list in a list", list(&[list(half), list(other_half)]).to_string().into()),
        ("YAML list", yaml_list.clone().into()),
        ("YAML list of lists", serde_yaml::to_string(&list(&[list(half), list(other_half)])).unwrap().into()),
        ("YAML array", serde_yaml::to_string(&objects).unwrap().into()),
        ("YAML stream", format!("---\n{}---\n", yaml_stream.join("---\n")).into()),
        ("YAML with Windows line ends", yaml_list.replace('\n', "\r\n").into()),
        ("gzip of JSON", gzip(json_list.as_bytes())),
        ("gzip of YAML", gzip(yaml_list.as_bytes())),
        ("UTF-16", format!("\u{feff}{pretty}").encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ];
    for (form, bytes) in forms {
        assert!(snapshot_of(&bytes) == (expected.clone(), report.clone()), "{form}");
    }
}

#[test]
fn objects_of_typed_lists_take_their_kind_from_the_list() {
    let mut bare = pod("web-1", "1");
    bare.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
    let typed = json!({ "kind": "PodList", "apiVersion": "v1", "items": [bare] });
    let (expected, _) = snapshot_of(pod("web-1", "1").to_string().as_bytes());
    assert_eq!(snapshot_of(typed.to_string().as_bytes()).0, expected);
    assert_eq!(snapshot_of(serde_yaml::to_string(&typed).unwrap().as_bytes()).0, expected);
    assert!(snapshot_of(br#"{"kind": "PodList", "apiVersion": "v1", "items": null}"#).0.pods.is_empty());
}

#[test]
fn what_is_written_is_shareable_and_reads_back() {
    let (snapshot, _) = snapshot_of(OBJECTS.as_bytes());
    let written = write(&snapshot).unwrap();
    assert!(!written.contains("hunter2"), "{written}");
    for word in ["managedFields", "resourceVersion\": \"81", "aHVudGVyMg", "last-applied"] {
        assert!(!written.contains(word), "{word}");
    }

    let (mut again, report) = snapshot_of(written.as_bytes());
    assert_eq!(report.notes, Vec::<String>::new());
    assert_eq!(write(&again).unwrap(), written);
    // Planning sees what it saw before.
    let (before, after) = (&snapshot.node_classes[0], &again.node_classes[0]);
    assert!(is_same(&class_hash(before), &class_hash(after)) && after.spec.user_data.is_none());
    assert!(!written.contains(&class_hash(before)), "a whole hash would confirm a guess at the user data");
    again.node_classes.clear();
    let mut expected = snapshot;
    expected.node_classes.clear();
    expected.ignored.clear();
    assert_eq!(write(&again).unwrap(), write(&expected).unwrap());
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused_whole() {
    let text = list(&objects()[5..9]).to_string();
    for end in 1..text.len() {
        let Some(cut) = text.get(..end) else { continue };
        let mut snapshot = Snapshot::default();
        let error = read(cut.as_bytes(), &mut snapshot).unwrap_err();
        assert!(matches!(error, ReadError::CutOff { byte, line: 1 } if byte == end), "{end}: {error}");
        assert_eq!(snapshot, Snapshot::default());
    }
    let yaml = serde_yaml::to_string(&list(&objects()[5..6])).unwrap();
    let items_end = yaml.find("kind: List").unwrap();
    for end in 1..items_end {
        let Some(cut) = yaml.get(..end) else { continue };
        let error = error_of(cut);
        assert!(error.contains("cut off") || error.contains("line ") || error.contains("document "), "{end}: {error}");
    }
}

#[test]
fn errors_name_the_object_the_field_and_the_line() {
    let wrong_port = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop"},
         "spec": {"containers": [{"name": "web", "ports": [{"containerPort": "http"}]}]}}]}"#;
    let problem = "spec.containers[0].ports[0].containerPort: invalid type: string, expected i32";
    assert_eq!(error_of(wrong_port), format!("Pod shop/web-1 (line 2): {problem}"));
    let as_yaml = serde_yaml::to_string(&serde_json::from_str::<Value>(wrong_port).unwrap()).unwrap();
    assert_eq!(error_of(&as_yaml), format!("Pod shop/web-1 (document 1, items[0]): {problem}"));

    let deep = format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "a"}}, "spec": {{"volumes": [{{"ephemeral": {{"volumeClaimTemplate": {}1{}}}}}]}}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    let cases = [
        ("", "there is nothing in it"),
        (" \n", "there is nothing in it"),
        ("# only a comment\n", "there is nothing in it"),
        ("{}", "line 1: no `kind`: not a Kubernetes object, or cut off; nothing of it was used"),
        ("\n\n[3]", "line 3, column 2: invalid type: integer, expected a Kubernetes object"),
        (r#"{"kind": "List", "items": 3}"#, "line 1, column 27: invalid type: integer, expected a sequence"),
        ("{\n\"kind\": oops}", "line 2, column 9: expected value"),
        ("some text", "line 1, column 1: invalid type: string, expected a Kubernetes object"),
        ("No resources found", "it is a message, not objects: No resources found"),
        ("Error from server (Forbidden): no\nmore", "it is a message, not objects: Error from server (Forbidden): no"),
        ("NAME    READY\nweb-1   1/1\n", "it is a table for people to read, not objects"),
        ("\n<!DOCTYPE html>\n<html>", "it is a page of HTML, not objects"),
        (
            r#"{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": []}"#,
            "it is a table for people to read, not objects",
        ),
        (
            "apiVersion: v1\nkind: Status\nreason: Unauthorized\n",
            "it is an answer of the API server, not objects: Unauthorized",
        ),
        (
            r#"{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Status", "message": "no", "reason": "Forbidden"}]}"#,
            "it is an answer of the API server, not objects: no (Forbidden)",
        ),
        (
            r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}"#,
            "no object in it is of a kind that planning uses, only 1 x v1/Secret",
        ),
        (
            r#"{"apiVersion": "v1", "kind": "Node", "metadata": {}}"#,
            "Node without a name (line 1): metadata.name: missing",
        ),
        ("a: [\n", "it is cut off at byte 5 (line 2); nothing of it was used"),
        ("a: b: c\n", "line 1, column 5: mapping values are not allowed in this context"),
        (deep.as_str(), "Pod a (line 1): recursion limit exceeded"),
    ];
    for (text, expected) in cases {
        let error = error_of(text);
        assert!(error.starts_with(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn lists_inside_lists_and_aliases_have_a_limit() {
    let mut nested = list(&[pod("a", "1")]);
    for _ in 0..10 {
        nested = list(&[nested]);
    }
    assert!(error_of(&nested.to_string()).contains("lists inside lists"));
    assert!(error_of(&serde_yaml::to_string(&nested).unwrap()).contains("lists inside lists"));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let above = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{above}]\n"));
    }
    assert!(error_of(&bomb).contains("repetition limit"), "{}", error_of(&bomb));
}

#[test]
fn of_two_with_one_name_the_last_counts_and_it_is_said() {
    let mut snapshot = Snapshot::default();
    read(list(&[pod("web-1", "1"), pod("web-0", "1")]).to_string().as_bytes(), &mut snapshot).unwrap();
    let report = read(pod("web-1", "2").to_string().as_bytes(), &mut snapshot).unwrap();
    assert_eq!(report.notes, ["Pod shop/web-1 occurs twice; the last one counts"]);
    let uids: Vec<_> = snapshot.pods.iter().map(|pod| (pod.key(), pod.metadata.uid.as_str())).collect();
    assert_eq!(uids, [("shop/web-0".to_owned(), "1"), ("shop/web-1".to_owned(), "2")]);

    let node = |uid: &str| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a", "uid": uid } });
    let (snapshot, report) = snapshot_of(list(&[node("1"), node("2"), node("3")]).to_string().as_bytes());
    assert_eq!(snapshot.nodes[0].metadata.uid.as_deref(), Some("3"));
    assert_eq!(report.notes.len(), 3);
    assert!(report.notes[0].starts_with("two nodes are called a; the last one counts"), "{:?}", report.notes);
}

#[test]
fn null_is_absent_and_no_namespace_is_default() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace:\n  labels:\n  annotations: ~\nspec:\n  containers:\n  volumes: null\nstatus:\n";
    let (snapshot, _) = snapshot_of(text.as_bytes());
    assert_eq!(snapshot.pods[PodIndex::from(0)].key(), "default/a");
}

#[test]
fn what_pods_of_one_maker_have_in_common_is_kept_once() {
    let pod = |maker: &str, name: &str, image: &str| {
        let mut pod = pod(name, name);
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": maker, "uid": maker, "controller": true });
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod["spec"]["containers"] = json!([{ "name": "main", "image": image }]);
        pod
    };
    let pods = [pod("web", "a", "x"), pod("api", "b", "x"), pod("web", "c", "x"), pod("web", "d", "y")];
    let (snapshot, _) = snapshot_of(list(&pods).to_string().as_bytes());
    let place = |pod: usize| snapshot.pods[PodIndex::from(pod)].spec.containers.as_ptr();
    assert_eq!(place(0), place(2));
    assert_ne!(place(0), place(1));
    assert_eq!(snapshot.pods[PodIndex::from(3)].spec.containers[0].image.as_deref(), Some("y"));
}
