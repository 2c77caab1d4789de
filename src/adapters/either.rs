//! One of two repositories of definitions, chosen at the start.

use crate::core::plan::Revision;
use crate::ports::{PortError, Repository, RevisionContent, Unsigned};

pub enum Either<A, B> {
    One(A),
    Other(B),
}

impl<A: Repository, B: Repository> Repository for Either<A, B> {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        match self {
            Self::One(one) => one.poll().await,
            Self::Other(other) => other.poll().await,
        }
    }

    async fn changed(&mut self) {
        match self {
            Self::One(one) => one.changed().await,
            Self::Other(other) => other.changed().await,
        }
    }

    async fn unsigned(&mut self, revision: &Revision, in_force: Option<&Revision>) -> Result<Vec<Unsigned>, PortError> {
        match self {
            Self::One(one) => one.unsigned(revision, in_force).await,
            Self::Other(other) => other.unsigned(revision, in_force).await,
        }
    }

    fn is_asking(&self) -> bool {
        match self {
            Self::One(one) => one.is_asking(),
            Self::Other(other) => other.is_asking(),
        }
    }
}
