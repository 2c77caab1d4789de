//! A repository whose first revision was read before the controller began, to learn the region from it. Nobody waits for what comes later.

use std::collections::VecDeque;

use crate::core::plan::Revision;
use crate::ports::{PortError, Repository, RevisionContent, Unsigned};

use super::Beside;

/// Who judges the signatures of commits.
pub trait SignatureJudge {
    /// Which commits since the one in force somebody else should have signed.
    fn unsigned(
        &mut self,
        revision: &Revision,
        in_force: Option<&Revision>,
    ) -> impl Future<Output = Result<Vec<Unsigned>, PortError>>;
}

/// Gives what was read already, then what is found beside.
pub struct Followed<J> {
    first: VecDeque<RevisionContent>,
    later: Beside,
    judge: Option<J>,
}

impl<J> Followed<J> {
    /// `judge`: where signatures are asked for.
    pub fn new(first: Vec<RevisionContent>, later: Beside, judge: Option<J>) -> Self {
        Self { first: first.into(), later, judge }
    }
}

impl<J: SignatureJudge> Repository for Followed<J> {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        if let Some(first) = self.first.pop_front() {
            return Ok(Some(first));
        }
        self.later.poll().await
    }

    async fn changed(&mut self) {
        if self.first.is_empty() {
            self.later.changed().await;
        }
    }

    fn is_asking(&self) -> bool {
        !self.first.is_empty() || self.later.is_asking()
    }

    async fn unsigned(&mut self, revision: &Revision, in_force: Option<&Revision>) -> Result<Vec<Unsigned>, PortError> {
        match &mut self.judge {
            Some(judge) => judge.unsigned(revision, in_force).await,
            None => Ok(Vec::new()),
        }
    }
}
