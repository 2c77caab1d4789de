//! A repository in which nothing happens any more.

use crate::ports::{PortError, Repository, RevisionContent};

/// One revision that was read before.
pub struct OneRevision(Option<RevisionContent>);

impl OneRevision {
    pub fn new(content: RevisionContent) -> Self {
        Self(Some(content))
    }
}

impl Repository for OneRevision {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        Ok(self.0.take())
    }

    async fn changed(&mut self) {
        std::future::pending::<()>().await;
    }
}
