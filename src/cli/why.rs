//! `cutlist why`

use std::collections::BTreeSet;

use anyhow::anyhow;
use serde::Serialize;

use super::arguments::{InputArguments, WhyArguments, WhyNodeArguments, WhyOutput, WhyPodArguments, WhySubject};
use super::exit::{Failure, Outcome};
use super::inputs::{self, ReadInputs};
use super::output;
use crate::core::plan::NoteCode;
use crate::core::snapshot::{Pod, PodIndex, Snapshot};
use crate::core::why::node::{Searched, WhyNode, searched, why_node};
use crate::core::why::pod::{WhyPod, why_pod};
use crate::definitions::suggest::nearest;
use crate::ports::pull_requests::Question;
use crate::render::terminal::Style;
use crate::render::why as render;

/// Names that are listed when several pods are meant.
const NAMES_MAX: usize = 5;

pub fn run(arguments: &WhyArguments) -> Result<Outcome, Failure> {
    match &arguments.subject {
        WhySubject::Pod(arguments) => pod(arguments),
        WhySubject::Node(arguments) => node(arguments),
    }
}

fn pod(arguments: &WhyPodArguments) -> Result<Outcome, Failure> {
    let read = inputs::read_all(&arguments.inputs)?;
    let answer = of_pod(&arguments.inputs, &read, arguments.namespace.as_deref(), &arguments.pod)?;
    say(arguments.output, &answer, |answer| render::pod(answer, Style::Coloured))
}

fn node(arguments: &WhyNodeArguments) -> Result<Outcome, Failure> {
    let read = inputs::read_all(&arguments.inputs)?;
    let answer = of_node(&arguments.inputs, &read, &arguments.node)?;
    say(arguments.output, &answer, |answer| render::node(answer, Style::Coloured))
}

/// The answer as plain text, where there is no command line, such as on a pull request.
pub fn answered(question: &Question, arguments: &InputArguments, read: &ReadInputs) -> Result<String, Failure> {
    match question {
        Question::Pod(name) => of_pod(arguments, read, None, name).map(|answer| render::pod(&answer, Style::Plain)),
        Question::Node(name) => of_node(arguments, read, name).map(|answer| render::node(&answer, Style::Plain)),
    }
}

fn of_pod(
    arguments: &InputArguments,
    read: &ReadInputs,
    namespace: Option<&str>,
    typed: &str,
) -> Result<WhyPod, Failure> {
    let positions = find(&read.snapshot, namespace, typed).map_err(|unknown| {
        let failure = Failure::failed(anyhow!(unknown.text));
        match unknown.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    })?;
    let answer = inputs::with_inputs(arguments, read, |inputs| why_pod(inputs, &positions));
    answer.ok_or_else(|| Failure::failed(anyhow!("there is no pod to answer for")))
}

fn of_node(arguments: &InputArguments, read: &ReadInputs, typed: &str) -> Result<WhyNode, Failure> {
    let name = typed.strip_prefix("node/").unwrap_or(typed);
    inputs::with_inputs(arguments, read, |inputs| {
        why_node(inputs, name).ok_or_else(|| {
            let Searched { names, records, records_unread } = searched(inputs);
            let unread = match records_unread {
                0 => String::new(),
                unread => format!("; {unread} more can not be read: too long to be kept whole, or of another version"),
            };
            let text = format!(
                "there is no node {name} in the snapshot, and none of its {records} NodePlans names it{unread}"
            );
            let failure = Failure::failed(anyhow!(text));
            match nearest(name, names.iter().map(String::as_str)) {
                Some(alike) => failure.with_hint(format!("did you mean {alike}?")),
                None if read.notes.iter().any(|note| note.code == NoteCode::NoSnapshot) => {
                    failure.with_hint("no snapshot was given: name one with --snapshot, or a cluster with --context")
                }
                None if records + records_unread == 0 => failure.with_hint(
                    "nodes that are gone are known from NodePlans: is `nodeplans.cutlist.dev` in the snapshot?",
                ),
                None => failure,
            }
        })
    })
}

fn say<A: Serialize>(form: WhyOutput, answer: &A, text: impl Fn(&A) -> String) -> Result<Outcome, Failure> {
    match form {
        WhyOutput::Text => output::text(&text(answer))?,
        WhyOutput::Json => output::data(&render::json(answer).map_err(Failure::failed)?)?,
    }
    Ok(Outcome::Clean)
}

#[derive(Debug, PartialEq, Eq)]
struct Unknown {
    text: String,
    hint: Option<String>,
}

/// The pod that is meant: `NAMESPACE/NAME`, or `NAME` in the given namespace, else in `default`, else in the only one that
/// has it. A name that no pod has may be that of what owns pods, such as a Deployment: then its pods are meant, those that
/// wait first.
fn find(snapshot: &Snapshot, namespace: Option<&str>, typed: &str) -> Result<Vec<PodIndex>, Unknown> {
    let (namespace, name) = match typed.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (namespace, typed),
    };
    for is_meant in [has_name as fn(&Pod, &str) -> bool, is_owned] {
        let named = snapshot.pods.enumerated().filter(|(_, pod)| is_meant(pod, name));
        let found = named.filter(|(_, pod)| namespace.is_none_or(|namespace| pod.metadata.namespace == namespace));
        let found: Vec<PodIndex> = found.map(|(position, _)| position).collect();
        let of_default = |pod: &&PodIndex| snapshot.pods[**pod].metadata.namespace == "default";
        let namespaces: BTreeSet<&str> =
            found.iter().map(|pod| snapshot.pods[*pod].metadata.namespace.as_str()).collect();
        if namespaces.len() > 1 && !found.iter().any(|pod| of_default(&pod)) {
            let names: Vec<String> = namespaces.iter().take(NAMES_MAX).map(|it| format!("{it}/{name}")).collect();
            let text = format!("pod {name} is in {} namespaces", namespaces.len());
            return Err(Unknown { text, hint: Some(format!("say which: {}", names.join(", "))) });
        }
        let one_namespace = |pod: &&PodIndex| namespaces.len() == 1 || of_default(pod);
        let mut meant: Vec<PodIndex> = found.iter().filter(one_namespace).copied().collect();
        meant.sort_by_key(|pod| {
            let pod = &snapshot.pods[*pod];
            (pod.spec.node_name.is_some() || pod.is_terminal(), &pod.metadata.namespace, &pod.metadata.name)
        });
        if !meant.is_empty() {
            return Ok(meant);
        }
    }
    Err(unknown(snapshot, namespace, name))
}

fn has_name(pod: &Pod, name: &str) -> bool {
    pod.metadata.name == name
}

/// Owned by something of this name; a Deployment owns through a ReplicaSet, whose name has a hash behind.
fn is_owned(pod: &Pod, name: &str) -> bool {
    pod.metadata.owner_references.iter().any(|owner| {
        owner.name == name
            || (owner.kind == "ReplicaSet" && owner.name.rsplit_once('-').is_some_and(|(workload, _)| workload == name))
    })
}

fn unknown(snapshot: &Snapshot, namespace: Option<&str>, name: &str) -> Unknown {
    let place = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
    let text = format!("there is no pod {place}{name} in the snapshot, and nothing of that name that owns pods");
    let keys: Vec<String> = snapshot.pods.iter().map(Pod::key).collect();
    let wanted = format!("{}/{name}", namespace.unwrap_or("default"));
    let elsewhere = snapshot.pods.iter().find(|pod| pod.metadata.name == name).map(Pod::key);
    let alike = elsewhere.or_else(|| nearest(&wanted, keys.iter().map(String::as_str)).map(str::to_owned));
    let hint = match alike {
        Some(key) => Some(format!("did you mean {key}?")),
        None if snapshot.pods.is_empty() => Some("the snapshot has no pods; give it with --snapshot FILE".to_owned()),
        None => None,
    };
    Unknown { text, hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BuildPod, pod};

    fn found(typed: &str) -> Result<String, Option<String>> {
        let snapshot = Snapshot {
            pods: vec![
                pod("web").namespace("shop"),
                pod("api").namespace("shop"),
                pod("api").namespace("bank"),
                pod("cache"),
                pod("cache").namespace("shop"),
                pod("front-6f5f6c9d4b-2zqxv").owned_by("ReplicaSet", "front-6f5f6c9d4b").on("a"),
                pod("front-6f5f6c9d4b-8wq2c").owned_by("ReplicaSet", "front-6f5f6c9d4b"),
            ]
            .into(),
            ..Snapshot::default()
        };
        find(&snapshot, None, typed).map(|pods| snapshot.pods[pods[0]].key()).map_err(|unknown| unknown.hint)
    }

    #[test]
    fn pods_are_named_as_kubectl_names_them() {
        assert_eq!(found("shop/api").unwrap(), "shop/api");
        assert_eq!(found("cache").unwrap(), "default/cache", "the namespace that kubectl takes");
        assert_eq!(found("web").unwrap(), "shop/web", "there is only one");
        assert_eq!(found("api"), Err(Some("say which: bank/api, shop/api".to_owned())));
        assert_eq!(found("default/front").unwrap(), "default/front-6f5f6c9d4b-8wq2c", "of a Deployment one that waits");
    }

    #[test]
    fn slips_of_the_fingers_are_seen() {
        assert_eq!(found("shop/wbe"), Err(Some("did you mean shop/web?".to_owned())));
        assert_eq!(found("bank/web"), Err(Some("did you mean shop/web?".to_owned())));
        assert_eq!(found("bank/nothing-like-it"), Err(None));
    }
}
