//! Whether a revision may be used, by who signed its commits: asked of the clone that it was fetched into.

use std::path::PathBuf;

use crate::adapters::git::{GitRepository, SignatureJudge, SignedHistory};
use crate::cli::exit::Failure;
use crate::cli::signing::{Base, Signing, Stamp};
use crate::core::plan::Revision;
use crate::ports::{PortError, PortErrorKind, RevisionContent, Unsigned};

/// What a process takes up when it starts.
pub struct TakenUp {
    /// In the order in which they come.
    pub revisions: Vec<RevisionContent>,
    /// Whether the first of them may be used, as far as signatures say it.
    pub is_signed: bool,
}

pub struct Guard {
    signing: Signing,
    /// The clone, which goes with the repository that fetches into it.
    clone: PathBuf,
    folder: String,
    /// The commit that was used last, by another process.
    earlier: Option<String>,
    /// What was judged last, and by which files.
    judged: Option<(Stamp, Base, Revision, Vec<Unsigned>)>,
}

impl Guard {
    pub fn new(signing: Signing, repository: &GitRepository, folder: &str, earlier: Option<String>) -> Self {
        Self { signing, clone: repository.folder().to_owned(), folder: folder.to_owned(), earlier, judged: None }
    }

    /// What a process that starts takes up: the first revision; before it, where somebody else should have signed that, the one that was
    /// used last. It stays in force, as if there had been no start.
    pub async fn first(&mut self, first: RevisionContent) -> Result<TakenUp, Failure> {
        let failed = |error: anyhow::Error| Failure::failed(error);
        let unsigned = self.unsigned(&first.revision, None).await.map_err(|error| failed(error.into()))?;
        let is_signed = unsigned.is_empty();
        let Some(earlier) = self.earlier.clone().filter(|_| !is_signed) else {
            return Ok(TakenUp { revisions: vec![first], is_signed });
        };
        let history = SignedHistory::open(&self.clone).map_err(|error| failed(error.into()))?;
        if history.commit(&earlier).is_none() {
            return Ok(TakenUp { revisions: vec![first], is_signed });
        }
        let earlier = history.content(&earlier, &self.folder, &first.revision.reference);
        let earlier = earlier.map_err(|error| failed(error.into()))?;
        Ok(TakenUp { revisions: vec![earlier, first], is_signed: true })
    }
}

impl SignatureJudge for Guard {
    async fn unsigned(&mut self, revision: &Revision, in_force: Option<&Revision>) -> Result<Vec<Unsigned>, PortError> {
        let before = in_force.map(|in_force| in_force.id.clone()).or_else(|| self.earlier.clone());
        let (signing, clone, folder) = (self.signing.clone(), self.clone.clone(), self.folder.clone());
        let (asked, judged) = (revision.clone(), self.judged.take());
        // Beside what else this thread does: there may be many commits.
        let task = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
            let stamp = signing.stamp();
            let history = SignedHistory::open(&clone)?;
            let base = match before {
                Some(before) if history.commit(&before).is_some() => Base::Commit(before),
                Some(_) => Base::Lost,
                None => Base::None,
            };
            let is_same = |(of, since, head, _): &(Stamp, Base, Revision, Vec<Unsigned>)| {
                (of, since, head) == (&stamp, &base, &asked)
            };
            if let Some(judged) = judged.filter(is_same) {
                return Ok(judged);
            }
            if let Base::Commit(commit) = &base {
                history.keep(commit)?;
            }
            let unsigned = signing.unsigned(&history, &folder, &asked.reference, &base, &asked.id)?;
            Ok((stamp, base, asked, unsigned))
        });
        let error = |source: Box<dyn std::error::Error + Send + Sync>| PortError {
            operation: format!("look who signed {}", revision.id),
            kind: PortErrorKind::Temporary,
            source: Some(source),
        };
        let judged = task.await.map_err(|failed| error(Box::new(failed)))?.map_err(|failed| error(failed.into()))?;
        let unsigned = judged.3.clone();
        self.judged = Some(judged);
        Ok(unsigned)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use crate::adapters::git::{Changes, ScriptedRepository};
    use crate::cli::arguments::{DefinitionArguments, SigningArguments};

    #[tokio::test]
    async fn a_process_that_starts_takes_up_what_was_used_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed_signers");
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr1nzrCXFp6QBrcXr7b0L9MVNcR1CHGRkW3V0dW0nAZ";
        std::fs::write(&file, format!("ada@example.com {key}\n")).unwrap();
        let arguments = SigningArguments { allowed_signers: Some(file), ..SigningArguments::default() };
        let signing = Signing::of(&arguments, &DefinitionArguments::default()).unwrap().unwrap();
        let files = BTreeMap::from([("a.yaml".to_owned(), b"# first".to_vec())]);
        let repository = ScriptedRepository::create(&files, "First", Timestamp::UNIX_EPOCH).unwrap();
        let history = SignedHistory::open(repository.path()).unwrap();
        let first = history.commit("main").unwrap();
        let changes = Changes::from([("a.yaml".to_owned(), Some(b"# second".to_vec()))]);
        let second = repository.commit(&changes, "Second", Timestamp::UNIX_EPOCH).unwrap();
        let guard = |earlier: Option<&str>| Guard {
            signing: signing.clone(),
            clone: repository.path().to_owned(),
            folder: String::new(),
            earlier: earlier.map(str::to_owned),
            judged: None,
        };
        let head = || SignedHistory::open(repository.path()).unwrap().content(&second, "", "main").unwrap();
        // Nobody signed either. What was used last stays in force, and the head comes after it, to be refused.
        let TakenUp { revisions: taken, is_signed } = guard(Some(&first)).first(head()).await.unwrap();
        assert!(is_signed, "the one that was used last may be used");
        let ids: Vec<&str> = taken.iter().map(|content| content.revision.id.as_str()).collect();
        assert_eq!(ids, [first.as_str(), second.as_str()]);
        assert_eq!(taken[0].files[0].content, b"# first");
        let mut again = guard(Some(&first));
        assert!(again.unsigned(&taken[0].revision, None).await.unwrap().is_empty());
        assert_eq!(again.unsigned(&taken[1].revision, Some(&taken[0].revision)).await.unwrap().len(), 1);
        // One that was used, and is the head still; one that the clone does not have; none.
        for (earlier, is_signed) in [(Some(second.clone()), true), (Some("0".repeat(40)), false), (None, false)] {
            let taken = guard(earlier.as_deref()).first(head()).await.unwrap();
            assert_eq!((taken.revisions.len(), taken.is_signed), (1, is_signed), "{earlier:?}");
        }
    }
}
