//! Several references of one remote with their histories, in one clone: to merge what was proposed into what it goes into.

use std::path::{Path, PathBuf};

use git2::Repository;

use super::address::Address;
use super::fetch::Target;
use super::process::{FetchLimits, fetch_beside};
use super::remote::{CloneFolder, OpenError, RemoteSettings};
use crate::ports::pull_requests::History;
use crate::ports::{PortError, PortErrorKind};

/// Follows references of one remote.
pub struct Histories {
    url: String,
    address: Address,
    credentials_file: Option<PathBuf>,
    program: PathBuf,
    limits: FetchLimits,
    folder: CloneFolder,
}

impl Histories {
    /// Checks the address and makes an empty clone; of the settings, reference, interval and earlier revision do not matter.
    pub fn open(settings: &RemoteSettings) -> Result<Self, OpenError> {
        let folder = CloneFolder::open(settings)?;
        Ok(Self {
            url: settings.url.clone(),
            address: Address::parse(&settings.url)?,
            credentials_file: settings.credentials_file.clone(),
            program: settings.program.clone(),
            limits: settings.limits,
            folder,
        })
    }

    /// The clone.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// By which it is called in what people read.
    fn name_branch(&self, reference: &str) {
        if !reference.starts_with("refs/heads/") {
            return;
        }
        let Some(commit) = self.commit(reference) else { return };
        let named = Repository::open_bare(self.folder.path())
            .and_then(|repository| repository.reference(reference, commit, true, "fetched").map(drop));
        if let Err(error) = named {
            tracing::debug!(%error, reference, "the branch has no name of its own");
        }
    }

    fn commit(&self, reference: &str) -> Option<git2::Oid> {
        let repository = Repository::open_bare(self.folder.path()).ok()?;
        let commit = repository.find_reference(&own_name(reference)).ok()?.peel_to_commit().ok()?;
        Some(commit.id())
    }
}

impl History for Histories {
    async fn fetch(&self, reference: &str) -> Result<String, PortError> {
        self.fetch_and_list(reference, None).await.map(|(commit, _)| commit)
    }

    async fn fetch_and_list(
        &self,
        reference: &str,
        listed: Option<String>,
    ) -> Result<(String, Vec<(String, String)>), PortError> {
        let target = Target {
            address: self.address.clone(),
            reference: Some(reference.to_owned()),
            credentials_file: self.credentials_file.clone(),
            earlier: None,
            with_history: true,
            listed,
        };
        let operation = || format!("fetch {reference} from {}", self.address.shown);
        let known = self.commit(reference);
        let fetched = fetch_beside(&self.program, &self.url, &target, self.folder.path(), known, self.limits).await;
        let looked = fetched.map_err(|error| PortError {
            operation: operation(),
            kind: error.kind,
            source: Some(Box::new(error)),
        })?;
        self.name_branch(reference);
        match self.commit(reference) {
            Some(commit) => Ok((commit.to_string(), looked.listed)),
            None => Err(PortError { operation: operation(), kind: PortErrorKind::Permanent, source: None }),
        }
    }

    fn contains(&self, commit: &str, other: &str) -> bool {
        let found = || -> Result<bool, git2::Error> {
            let repository = Repository::open_bare(self.folder.path())?;
            let (commit, other) = (git2::Oid::from_str(commit)?, git2::Oid::from_str(other)?);
            Ok(commit == other || repository.graph_descendant_of(commit, other)?)
        };
        found().unwrap_or(false)
    }

    // What it alone held goes when packs are put together.
    fn forget(&self, reference: &str) {
        let repository = Repository::open_bare(self.folder.path());
        let found = repository.as_ref().map(|repository| repository.find_reference(&own_name(reference)));
        if let Ok(Ok(mut found)) = found
            && let Err(error) = found.delete()
        {
            tracing::debug!(%error, reference, "the reference stays");
        }
    }
}

/// What the clone calls it.
fn own_name(reference: &str) -> String {
    format!("refs/cutlist/{reference}")
}
