//! The clusters that a preview is about, and where what is known of each is read.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::adapters::git;
use crate::adapters::registry::SCHEME;
use crate::api::node_plan::NodePlan;
use crate::api::preview::PreviewSnapshot;
use crate::cli::arguments::{DefinitionArguments, PreviewArguments};
use crate::cli::exit::Failure;
use crate::cli::inputs;
use crate::cli::snapshot::places;
use crate::core::model::hexadecimal;
use crate::core::plan::{Note, NoteCode};
use crate::core::snapshot::{Snapshot, moment, read};
use crate::definitions::Definitions;
use crate::definitions::suggest::nearest;

/// A cluster, and where its snapshot is.
#[derive(Debug)]
pub struct Cluster {
    /// Empty for the living one, which the definitions name.
    pub name: String,
    /// Below the path that was asked for; empty for all of it.
    pub folder: String,
    /// Of this cluster only.
    pub variables: Vec<(String, String)>,
    sources: Vec<String>,
}

/// What was read of a cluster.
pub struct Saved {
    pub snapshot: Snapshot,
    /// `None`: it lives.
    pub document: Option<PreviewSnapshot>,
    pub notes: Vec<Note>,
}

/// The clusters that were asked for, by name.
pub fn clusters(arguments: &PreviewArguments) -> Result<Vec<Cluster>, Failure> {
    let mut by_name: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cluster in &arguments.clusters {
        by_name.entry(&cluster.name).or_default().push(cluster.path.clone());
    }
    if arguments.live.are_given() || arguments.is_live {
        if !by_name.is_empty() {
            let error = anyhow!("--cluster and a live cluster (--kubeconfig, --context) exclude each other");
            return Err(Failure::usage(error));
        }
        by_name.insert("", Vec::new());
    }
    if by_name.is_empty() {
        let error = anyhow!("no cluster was named");
        return Err(Failure::usage(error).with_hint(
            "name each with --cluster NAME=SNAPSHOT, or a live one with --kubeconfig FILE; `cutlist snapshot` writes snapshots",
        ));
    }
    let is_named = |flag: &str, name: &str| {
        if by_name.contains_key(name) {
            return Ok(());
        }
        let failure = Failure::usage(anyhow!("{flag} names {name}, and no --cluster does"));
        Err(match nearest(name, by_name.keys().copied()) {
            Some(name) => failure.with_hint(format!("did you mean {name}?")),
            None => failure,
        })
    };
    let mut folders: BTreeMap<&str, &str> = BTreeMap::new();
    for folder in &arguments.folders {
        is_named("--definitions", &folder.name)?;
        folders.insert(&folder.name, &folder.path);
    }
    let mut variables: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for variable in &arguments.cluster_variables {
        is_named("--cluster-variable", &variable.cluster)?;
        let of_cluster = variables.entry(&variable.cluster).or_default();
        of_cluster.push((variable.name.clone(), variable.value.clone()));
    }
    let cluster = |(name, sources): (&str, Vec<String>)| Cluster {
        name: name.to_owned(),
        folder: folders.get(name).copied().unwrap_or_default().to_owned(),
        variables: variables.get(name).cloned().unwrap_or_default(),
        sources,
    };
    Ok(by_name.into_iter().map(cluster).collect())
}

impl Cluster {
    /// As it was called, or as its settings call it.
    pub fn name_for(&self, definitions: &Definitions) -> String {
        if self.name.is_empty() { definitions.settings.cluster_name.clone() } else { self.name.clone() }
    }

    /// The variables that were given, with its own.
    pub fn given(&self, arguments: &PreviewArguments) -> DefinitionArguments {
        let mut given = arguments.planning.definitions.clone();
        // Of two with one name the last counts.
        given.variables.extend(self.variables.iter().cloned());
        given.cluster = (!self.name.is_empty()).then(|| self.name.clone());
        given
    }

    /// The plans that were posted in it. Of a living cluster nothing else is read.
    pub fn node_plans(&self, arguments: &PreviewArguments, now: Timestamp) -> Result<Vec<NodePlan>, Failure> {
        if self.sources.is_empty() {
            return super::super::cluster::node_plans(&arguments.live);
        }
        Ok(self.read(arguments, now)?.snapshot.node_plans.iter().cloned().collect())
    }

    /// Reads the cluster as it is, or all of its files into one.
    pub fn read(&self, arguments: &PreviewArguments, now: Timestamp) -> Result<Saved, Failure> {
        if self.sources.is_empty() {
            let (snapshot, notes) = super::super::cluster::read(&arguments.live)?;
            let notes = notes.into_iter().map(|text| Note::new(NoteCode::Cluster, text)).collect();
            return Ok(Saved { snapshot, document: None, notes });
        }
        let mut snapshot = Snapshot::default();
        let (mut notes, mut digests) = (Vec::new(), Vec::new());
        for source in &self.sources {
            let place = || format!("snapshot {source}");
            let bytes = bytes_of(source, arguments, &self.name).map_err(|failure| failure.within(place()))?;
            digests.push(format!("sha256:{}", hexadecimal(Sha256::digest(&bytes))));
            let report = read::read(&bytes, &mut snapshot).with_context(place).map_err(Failure::failed)?;
            notes.extend(report.notes.into_iter().map(|text| Note::new(NoteCode::Snapshot, text)));
        }
        let digest = match digests.as_slice() {
            [digest] => digest.clone(),
            several => format!("sha256:{}", hexadecimal(Sha256::digest(several.join("\n")))),
        };
        let taken_at = moment::newest(&snapshot);
        let age = |taken_at: Timestamp| u64::try_from(now.duration_since(taken_at).as_secs()).unwrap_or(0);
        let document =
            PreviewSnapshot { digest, taken_at: taken_at.map(|it| it.to_string()), age_seconds: taken_at.map(age) };
        Ok(Saved { snapshot, document: Some(document), notes })
    }
}

/// The branch of the repository that the definitions are in.
const OF_BRANCH: &str = "git:";

/// What stands in the place of a file that Git LFS keeps elsewhere.
const OF_LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The file, or the newest of a folder or of a branch.
fn bytes_of(source: &str, arguments: &PreviewArguments, cluster: &str) -> Result<Vec<u8>, Failure> {
    let bytes = bytes_at(source, arguments, cluster)?;
    if bytes.starts_with(OF_LFS) {
        return Err(Failure::failed(anyhow!(
            "this is a pointer to a file of Git LFS: fetch that with `git lfs pull` (`lfs: true` in CI)"
        )));
    }
    Ok(bytes)
}

fn bytes_at(source: &str, arguments: &PreviewArguments, cluster: &str) -> Result<Vec<u8>, Failure> {
    if let Some(branch) = source.strip_prefix(OF_BRANCH) {
        return match git::newest_snapshot(&arguments.path, branch, cluster) {
            Ok(Some((_, bytes))) => Ok(bytes),
            Ok(None) => Err(Failure::failed(anyhow!("there is none on branch {branch}"))),
            Err(error) => Err(Failure::of_repository(error)),
        };
    }
    if source.starts_with(SCHEME) {
        return places::of_registry(source, arguments.credentials_file.as_deref());
    }
    let path = Path::new(source);
    let failed = |error: std::io::Error| Failure::failed(error);
    if !path.is_dir() {
        return inputs::read_file(path, inputs::FileKind::Snapshot).map_err(failed);
    }
    let own = path.join(cluster);
    let folder = if own.is_dir() { own } else { path.to_owned() };
    match places::newest_in(&folder).map_err(failed)? {
        Some(newest) => inputs::read_file(&newest, inputs::FileKind::Snapshot).map_err(failed),
        None => Err(Failure::failed(anyhow!("there is none in {}", folder.display()))),
    }
}
