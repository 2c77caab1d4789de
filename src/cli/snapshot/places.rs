//! Where snapshots are kept for `cutlist preview`: a folder, a branch of a repository, an artifact of a registry.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;

use crate::adapters::git::{SnapshotBranch, is_snapshot};
use crate::adapters::registry::{Credentials, Reference, RegistryError, SCHEME, pull, push};
use crate::cli::arguments::SnapshotArguments;
use crate::cli::exit::Failure;
use crate::cli::output;

/// A branch of `--repository`.
const OF_BRANCH: &str = "git:";
/// Sorts by time.
const NAME: &str = "%Y%m%dT%H%M%SZ";
/// A name of a cluster is a name of a folder, and part of what others read.
const NAME_CHARACTERS_MAX: usize = 100;

/// Keeps a snapshot, and removes those that are too many.
pub fn keep(place: &str, arguments: &SnapshotArguments, text: &[u8]) -> Result<(), Failure> {
    let cluster = arguments.name.as_str();
    let is_inside = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    if cluster.is_empty()
        || cluster.len() > NAME_CHARACTERS_MAX
        || cluster.starts_with('.')
        || !cluster.chars().all(is_inside)
    {
        let error = anyhow!("`{cluster}` can not be the name of a cluster's folder");
        return Err(Failure::usage(error).with_hint("write letters, digits, `-`, `_` and `.`, with no `.` in front"));
    }
    let file = format!("{}.json.gz", Timestamp::now().strftime(NAME));
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(text).and_then(|()| packed.finish());
    let packed = packed.map_err(Failure::failed)?;
    let number = usize::try_from(arguments.keep).unwrap_or(usize::MAX);
    if place.starts_with(SCHEME) {
        return in_registry(place, arguments, packed, &format!("{cluster}/{file}"));
    }
    match place.strip_prefix(OF_BRANCH) {
        Some(branch) => {
            let Some(repository) = arguments.repository.clone() else {
                let error = anyhow!("--to git:{branch} needs a repository");
                return Err(Failure::usage(error).with_hint("name it with --repository URL"));
            };
            let credentials_file = arguments.credentials_file.clone();
            let to = SnapshotBranch { repository, branch: branch.to_owned(), credentials_file };
            to.push(cluster, &file, &packed, number).map_err(Failure::failed)?;
        }
        None => in_folder(&Path::new(place).join(cluster), &file, &packed, number).map_err(Failure::failed)?,
    }
    output::say(&format!("kept {cluster}/{file}, {} bytes", packed.len()));
    Ok(())
}

fn in_registry(place: &str, arguments: &SnapshotArguments, packed: Vec<u8>, title: &str) -> Result<(), Failure> {
    let to = Reference::parse(place).map_err(Failure::usage)?;
    let failed = |error: RegistryError| Failure::failed(anyhow::Error::new(error).context(format!("artifact {to}")));
    let credentials = arguments.credentials_file.as_deref().map(Credentials::read).transpose().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let created = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let digest = runtime.block_on(push(&to, credentials, packed, title, &created)).map_err(failed)?;
    output::say(&format!("kept {to} as {digest}"));
    Ok(())
}

/// The snapshot that an artifact of a registry is.
pub fn of_registry(place: &str, credentials_file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let from = Reference::parse(place).map_err(Failure::usage)?;
    let failed = |error: RegistryError| Failure::failed(error);
    let credentials = credentials_file.map(Credentials::read).transpose().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    runtime.block_on(pull(&from, credentials)).map(|(_, content)| content).map_err(failed)
}

/// Written beside its place first: who reads meanwhile sees all of it, or nothing.
fn in_folder(folder: &Path, file: &str, packed: &[u8], keep: usize) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} can not be made", folder.display()))?;
    let place = folder.join(file);
    let failed = || format!("{} can not be written", place.display());
    let mut unfinished = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    unfinished.write_all(packed).with_context(failed)?;
    unfinished.persist(&place).with_context(failed)?;
    let kept = names(folder)?;
    for name in kept.iter().take(kept.len().saturating_sub(keep.max(1))) {
        let old = folder.join(name);
        std::fs::remove_file(&old).with_context(|| format!("{} can not be removed", old.display()))?;
    }
    Ok(())
}

/// The newest snapshot in a folder, by its name.
pub fn newest_in(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    Ok(names(folder)?.pop().map(|name| folder.join(name)))
}

/// Names of the snapshots, oldest first.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if is_snapshot(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
