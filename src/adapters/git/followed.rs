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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::PollsOnAnyThread;

    struct Silent;

    impl PollsOnAnyThread for Silent {
        async fn look(&mut self) -> Result<Option<RevisionContent>, PortError> {
            Ok(None)
        }

        async fn wait(&mut self) {
            std::future::pending::<()>().await;
        }
    }

    enum Nobody {}

    impl SignatureJudge for Nobody {
        async fn unsigned(&mut self, _: &Revision, _: Option<&Revision>) -> Result<Vec<Unsigned>, PortError> {
            match *self {}
        }
    }

    #[tokio::test]
    async fn what_was_read_already_comes_first() {
        let read = |id: &str| {
            let revision = Revision { id: id.to_owned(), reference: "main".to_owned() };
            RevisionContent::without_history(revision, "Begin", Vec::new(), Vec::new())
        };
        let mut followed = Followed::<Nobody>::new(vec![read("a"), read("b")], Beside::start(Silent), None);
        for id in ["a", "b"] {
            assert!(followed.is_asking());
            // Does not wait: there is something already.
            followed.changed().await;
            assert_eq!(followed.poll().await.unwrap().unwrap().revision.id, id);
        }
        assert!(!followed.is_asking());
        assert!(followed.poll().await.unwrap().is_none());
        assert!(followed.unsigned(&read("b").revision, None).await.unwrap().is_empty(), "nobody judges");
    }
}
