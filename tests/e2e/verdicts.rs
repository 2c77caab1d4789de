//! What the real API server says of the objects of `tests/lint/verdicts`, with the custom resource definitions that `cutlist crds`
//! prints. It must say what is recorded, which `tests/lint` holds the linter to; `UPDATE=1` records it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use http::StatusCode;
use kube::core::Status;
use serde_json::Value;

use crate::cluster::{Cluster, documents};
use crate::control_plane::ControlPlane;
use crate::definitions;
use crate::objects::{self, Cause, Object, Subject, Verdict};

/// What the server checks, and keeps nothing.
const QUESTION: &str = "dryRun=All&fieldValidation=Strict";
/// Longer texts of the server are cut in the middle.
const CHARACTERS_MAX: usize = 260;
const SHOWN_MAX: usize = 70;

pub fn verdicts_are_those_that_are_recorded(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    for definition in &definitions::definitions() {
        definitions::establish(&cluster, definition);
    }
    let version = cluster.get("/version").unwrap()["gitVersion"].take();
    let is_update = std::env::var_os("UPDATE").is_some();
    let (mut asked, mut refused, mut differences) = (0, 0, Vec::new());
    for subject in objects::subjects() {
        let verdicts: Vec<Verdict> = subject.objects.iter().map(|object| verdict(&cluster, object)).collect();
        asked += verdicts.len();
        refused += verdicts.iter().filter(|verdict| !verdict.causes.is_empty()).count();
        if is_update {
            let heading = format!(
                "What kube-apiserver {} says of the objects of {}.yaml. Written by UPDATE=1 make e2e CASES=verdicts.",
                version.as_str().unwrap(),
                subject.name
            );
            let path = objects::folder().join(format!("{}.verdicts", subject.name));
            std::fs::write(path, record(&heading, &subject, &verdicts)).unwrap();
        }
        let recorded = objects::recorded(&subject.name);
        for (object, verdict) in subject.objects.iter().zip(&verdicts) {
            let known = recorded.get(&object.name);
            if known != Some(verdict) {
                differences.push(format!("{}: {}\n  recorded {known:?}\n  now {verdict:?}", subject.name, object.name));
            }
        }
        assert_eq!(recorded.len(), verdicts.len(), "{}: verdicts on objects that are not there any more", subject.name);
    }
    plane.say(format!("{asked} objects, {refused} of them refused"));
    assert!(differences.is_empty(), "{}\nUPDATE=1 records what the server says", differences.join("\n"));
}

/// The same objects with the definitions that Karpenter itself installs. Ours demand what these do, or a repository that is clean here
/// would be refused there. Where they differ, `karpenter.txt` names the object and the reason.
pub fn karpenters_own_definitions_say_the_same(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let mut kinds = Vec::new();
    for entry in std::fs::read_dir(plane.programs().join("karpenter-definitions")).unwrap() {
        for definition in documents(&std::fs::read_to_string(entry.unwrap().path()).unwrap()) {
            kinds.push(definition["spec"]["names"]["kind"].as_str().unwrap().to_owned());
            definitions::establish(&cluster, &definition);
        }
    }
    let (mut asked, mut found, mut words) = (0, BTreeSet::new(), BTreeMap::new());
    for subject in objects::subjects() {
        let recorded = objects::recorded(&subject.name);
        for object in subject.objects.iter().filter(|object| kinds.contains(&object.kind)) {
            asked += 1;
            let theirs = verdict(&cluster, object);
            let ours = &recorded[&object.name];
            let is_refused = !theirs.causes.is_empty();
            if is_refused == ours.causes.is_empty() {
                let different = (is_refused, subject.name.clone(), object.name.clone());
                words.insert(different.clone(), if is_refused { theirs.causes } else { ours.causes.clone() });
                found.insert(different);
            }
        }
    }
    let known: BTreeSet<(bool, String, String)> = objects::karpenters().into_iter().collect();
    plane.say(format!("{asked} objects, {} of which Karpenter's own definitions say something else", found.len()));
    let line = |it: &(bool, String, String)| {
        let (word, causes) = (if it.0 { "refused" } else { "accepted" }, words.get(it));
        format!("{word}: {}: {}\n    {causes:?}", it.1, it.2)
    };
    let unknown: Vec<String> = found.difference(&known).map(line).collect();
    let gone: Vec<String> = known.difference(&found).map(line).collect();
    assert!(unknown.is_empty(), "not in karpenter.txt:\n{}", unknown.join("\n"));
    assert!(gone.is_empty(), "in karpenter.txt, and no difference:\n{}", gone.join("\n"));
}

fn verdict(cluster: &Cluster, object: &Object) -> Verdict {
    let Some(before) = &object.before else {
        let collection = collection(cluster, &object.value);
        return of_answer(cluster.create(&format!("{collection}?{QUESTION}"), &object.value));
    };
    let path = cluster.path_of(before);
    let there = cluster.create(&collection(cluster, before), before).unwrap();
    let mut update = object.value.clone();
    update["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
    let verdict = of_answer(cluster.replace(&format!("{path}?{QUESTION}"), &update));
    cluster.delete(&path).unwrap();
    verdict
}

/// The path of the objects of its kind; the object itself may have a name that fits in no path.
fn collection(cluster: &Cluster, object: &Value) -> String {
    let named = serde_json::json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": { "name": "any" },
    });
    let path = cluster.path_of(&named);
    path.strip_suffix("/any").unwrap().to_owned()
}

fn of_answer(answer: Result<Value, kube::Error>) -> Verdict {
    let status = match answer {
        Ok(_) => return Verdict::default(),
        Err(kube::Error::Api(status)) => status,
        Err(other) => panic!("no answer about the object: {other}"),
    };
    let is_about_the_object = [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY].map(|it| it.as_u16());
    assert!(is_about_the_object.contains(&status.code), "{status:?}");
    let mut causes = causes(&status);
    causes.sort();
    causes.dedup();
    Verdict { causes }
}

/// Fields that the kind has not stand in the message alone, one after the other.
fn causes(status: &Status) -> Vec<Cause> {
    if let Some((_, unknown)) = status.message.split_once("strict decoding error: ") {
        let fields = unknown.split(", ").map(|one| match one.strip_prefix("unknown field \"") {
            Some(field) => cause(field.trim_end_matches('"'), "unknown field"),
            None => cause("", one),
        });
        return fields.collect();
    }
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<Cause> = causes.map(|one| cause(&one.field, &one.message)).collect();
    if causes.is_empty() { vec![cause(&field_of_metadata(&status.message), &status.message)] } else { causes }
}

/// What does not fit into the server's own types is refused in the words of Go.
fn field_of_metadata(message: &str) -> String {
    match message.split_once("Go struct field ObjectMeta.") {
        Some((_, rest)) => format!("metadata.{}", rest.split(' ').next().unwrap_or_default()),
        None if message.ends_with("type v1.ObjectMeta") => "metadata".to_owned(),
        None => String::new(),
    }
}

fn cause(field: &str, message: &str) -> Cause {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters: Vec<char> = message.chars().collect();
    let message = if characters.len() <= CHARACTERS_MAX {
        message
    } else {
        let (begin, end) = (&characters[..SHOWN_MAX], &characters[characters.len() - (CHARACTERS_MAX - SHOWN_MAX)..]);
        format!("{} ... {}", begin.iter().collect::<String>(), end.iter().collect::<String>())
    };
    Cause { field: field.to_owned(), message }
}

/// The text of the record.
fn record(heading: &str, subject: &Subject, verdicts: &[Verdict]) -> String {
    let mut text = format!("# {heading}\n");
    for (object, verdict) in subject.objects.iter().zip(verdicts) {
        let word = if verdict.causes.is_empty() { "accepted" } else { "refused" };
        writeln!(text, "{word}: {}", object.name).unwrap();
        for cause in &verdict.causes {
            writeln!(text, "  {}: {}", cause.field, cause.message).unwrap();
        }
    }
    text
}
