//! What libgit2 says, without its numbers.

use std::fmt;

use crate::adapters::http::without_secrets;

/// The cause of an error, for people.
#[derive(Debug)]
pub struct GitCause(pub(super) git2::Error);

impl fmt::Display for GitCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&said(&self.0))
    }
}

/// What it says, without secrets that a server repeats.
pub(super) fn said(error: &git2::Error) -> String {
    without_secrets(error.message())
}

impl std::error::Error for GitCause {}

impl From<git2::Error> for GitCause {
    fn from(error: git2::Error) -> Self {
        Self(error)
    }
}
