//! `kubelet` of a pool to the class that it names. A class is for all pools that name it, so all of them are looked at together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cut::{Cut, Piece};
use super::editor::{EditRefusal, Spot};
use super::file_set::{FileSet, Object};
use super::{node_pool, provisioner};
use crate::api::kustomization::folder;
use crate::definitions::document::spans;

const HINT_OF_SHARED: &str = "give each of these pools a class of its own, and write the kubelet there";

/// Where a pool of this kind has these fields.
fn fields(object: &Object) -> Option<(&'static str, &'static str)> {
    let is_pool = matches!(object.kind.as_str(), "NodePool" | "Provisioner") && !object.is_partial;
    let fields = match object.kind.as_str() {
        "Provisioner" => (provisioner::KUBELET, provisioner::REFERENCE),
        _ => (node_pool::KUBELET, node_pool::REFERENCE),
    };
    is_pool.then_some(fields)
}

pub fn migrate(set: &mut FileSet) {
    let mut by_class: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for pool in 0..set.objects.len() {
        let Some((kubelet, reference)) = set.objects.get(pool).and_then(fields) else { continue };
        without_runtime(set, pool, kubelet);
        let is_moved = set.is_old(pool) && set.get(pool, kubelet).is_some();
        match class_of(set, pool, reference) {
            Ok(class) => by_class.entry(class).or_default().push(pool),
            Err((why, hint)) if is_moved => {
                let message = format!("`{}` is not moved to the class: {why}", spans::field_path(kubelet));
                set.by_hand(pool, kubelet, message, hint);
            }
            Err(_) => {}
        }
    }
    for object in 0..set.objects.len() {
        let Some(partial) = set.objects.get(object).filter(|it| it.is_partial) else { continue };
        let kubelet = if partial.kind == "Provisioner" { provisioner::KUBELET } else { node_pool::KUBELET };
        if set.is_old(object) && set.get(object, kubelet).is_some() {
            let message = format!("`{}` in a patch is not moved", spans::field_path(kubelet));
            set.by_hand(object, kubelet, message, "patch `spec.kubelet` of the EC2NodeClass instead".to_owned());
        }
    }
    for (class, pools) in by_class {
        to_class(set, class, &pools);
    }
}

/// Which container runtime there is has not been a choice for long.
fn without_runtime(set: &mut FileSet, pool: usize, kubelet: &str) {
    let runtime = spans::join(kubelet, "containerRuntime");
    if !set.is_old(pool) || set.get(pool, &runtime).is_none() {
        return;
    }
    set.with(pool, |edited| {
        if edited.remove(&runtime) {
            edited.note(kubelet, "`containerRuntime` is dropped: containerd is the only one");
        }
    });
}

/// The class that the pool names: of several the one in its file, else in its folder.
fn class_of(set: &FileSet, pool: usize, reference: &str) -> Result<usize, (String, String)> {
    let Some(name) = set.get(pool, &spans::join(reference, "name")).and_then(Value::as_str) else {
        return Err(("the pool names no class".to_owned(), "move it to `spec.kubelet` of the EC2NodeClass".to_owned()));
    };
    let is_class = |it: &Object| matches!(it.kind.as_str(), "EC2NodeClass" | "AWSNodeTemplate") && !it.is_partial;
    let named: Vec<usize> = set
        .objects
        .iter()
        .enumerate()
        .filter(|(_, it)| is_class(it) && it.name == name)
        .map(|(index, _)| index)
        .collect();
    let path = |object: usize| set.path(object);
    let nearest = [
        named.iter().copied().filter(|class| path(*class) == path(pool)).collect::<Vec<_>>(),
        named.iter().copied().filter(|class| folder(path(*class)) == folder(path(pool))).collect(),
        named.clone(),
    ];
    match nearest.iter().find(|found| !found.is_empty()).map(Vec::as_slice) {
        Some([class]) => Ok(*class),
        None | Some([]) => Err((
            format!("the EC2NodeClass `{name}` is not among these files"),
            "name the file of the class as well, or move the field to its `spec.kubelet`".to_owned(),
        )),
        Some(_) => Err((
            format!("there are several classes `{name}` among these files"),
            "migrate the folder of each cluster by itself, or move the field to `spec.kubelet` of the class".to_owned(),
        )),
    }
}

fn to_class(set: &mut FileSet, class: usize, pools: &[usize]) {
    let kubelet_of = |set: &FileSet, pool: usize| {
        let (kubelet, _) = set.objects.get(pool).and_then(fields)?;
        // Nodes of a pool of v1 have that of the class already.
        let own = if set.is_old(pool) { set.get(pool, kubelet) } else { set.get(class, "/spec/kubelet") };
        own.filter(|value| value.as_object().is_none_or(|it| !it.is_empty())).cloned()
    };
    let kubelets: Vec<Option<Value>> = pools.iter().map(|pool| kubelet_of(set, *pool)).collect();
    // Also one with nothing in it goes.
    let having = pools.iter().filter_map(|pool| {
        let (kubelet, _) = set.objects.get(*pool).and_then(fields)?;
        (set.is_old(*pool) && set.get(*pool, kubelet).is_some()).then_some((*pool, kubelet))
    });
    let having: Vec<(usize, &str)> = having.collect();
    if having.is_empty() {
        return;
    }
    let Some(first) = kubelets.iter().flatten().next().cloned() else {
        having.into_iter().for_each(|(pool, kubelet)| {
            set.with(pool, |edited| {
                edited.remove(kubelet);
            });
        });
        return;
    };
    let (name, names) = (set.name(class), pools.iter().map(|pool| set.name(*pool)).collect::<Vec<_>>().join(", "));
    let why = match set.get(class, "/spec/kubelet") {
        Some(own) if *own != first => Some(format!("{name} has other fields in its `spec.kubelet`")),
        _ if kubelets.iter().any(|it| it.as_ref() != Some(&first)) => {
            Some(format!("{names} share {name}, and their kubelets differ"))
        }
        _ => None,
    };
    if let Some(why) = why {
        for (pool, kubelet) in having {
            let message = format!("`{}` is not moved to the class: {why}", spans::field_path(kubelet));
            set.by_hand(pool, kubelet, message, HINT_OF_SHARED.to_owned());
        }
        return;
    }
    if let Err(refusal) = carry(set, class, &having) {
        for (pool, kubelet) in having {
            let message = format!("`{}` is not moved to {name}: {}", spans::field_path(kubelet), refusal.because());
            set.by_hand(pool, kubelet, message, "move it to `spec.kubelet` of the class".to_owned());
        }
    }
}

/// All or nothing.
fn carry(set: &mut FileSet, class: usize, having: &[(usize, &str)]) -> Result<(), EditRefusal> {
    let kept = set.keep(having.iter().map(|(pool, _)| *pool).chain([class]));
    let mut cuts: Vec<Cut> = Vec::new();
    let mut outcome = Ok(());
    for (pool, kubelet) in having {
        match set.cut(*pool, kubelet) {
            Ok(cut) => cuts.push(cut),
            Err(refusal) => outcome = Err(refusal),
        }
    }
    let mut cuts = cuts.into_iter();
    if let Some(mut first) = cuts.next().filter(|_| outcome.is_ok()) {
        cuts.for_each(|other| first.take_comments(&other));
        let is_there = set.get(class, "/spec/kubelet").is_some();
        outcome = match is_there {
            false => set.insert(class, "/spec", "kubelet", &Piece::Cut(first), Spot::Last),
            true if first.comments.is_empty() => Ok(()),
            true => Err(EditRefusal::Comment),
        };
    }
    if outcome.is_err() {
        set.put_back(kept);
    }
    outcome
}
