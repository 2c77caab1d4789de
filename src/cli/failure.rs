//! Why a command could not do its work, with what to do.

use std::io::{self, ErrorKind};

use crate::adapters::git::ReadError;

/// Why a command could not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The arguments make no sense together, or name something that is not there.
    Usage,
    /// Something could not be done that was asked for rightly.
    Failed,
    /// A mistake of the program itself.
    Internal,
}

/// A command that could not do its work: the cause, and what the user can do.
#[derive(Debug)]
pub struct Failure {
    pub kind: FailureKind,
    pub error: anyhow::Error,
    pub hint: Option<String>,
}

impl Failure {
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: FailureKind::Usage, error: error.into(), hint: None }
    }

    pub fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: FailureKind::Failed, ..Self::usage(error) }
    }

    pub fn internal(error: impl Into<anyhow::Error>) -> Self {
        Self { kind: FailureKind::Internal, ..Self::usage(error) }
    }

    /// What it is about stands before the causes.
    pub fn within(self, context: impl std::fmt::Display + Send + Sync + 'static) -> Self {
        Self { error: self.error.context(context), ..self }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What could not be read of a repository, with what the user can do.
    pub fn of_repository(error: ReadError) -> Self {
        let (hint, is_named_wrongly) = (error.hint(), error.is_named_wrongly());
        Self { hint, ..if is_named_wrongly { Self::usage(error) } else { Self::failed(error) } }
    }

    /// A file that was named and can not be read. `what` stands before the cause.
    pub fn of_file(what: impl std::fmt::Display + Send + Sync + 'static, error: io::Error) -> Self {
        let failure = match error.kind() {
            ErrorKind::NotFound => Self::usage(error).with_hint("name a file that exists"),
            ErrorKind::IsADirectory => Self::usage(error).with_hint("it is a folder: name a file in it"),
            _ => Self::failed(error),
        };
        failure.within(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_was_named_wrongly() {
        let of = |kind: ErrorKind| Failure::of_file("snapshot a.json", io::Error::from(kind)).kind;
        assert_eq!(of(ErrorKind::NotFound), FailureKind::Usage);
        assert_eq!(of(ErrorKind::IsADirectory), FailureKind::Usage);
        assert_eq!(of(ErrorKind::PermissionDenied), FailureKind::Failed);
        let of = |error: ReadError| Failure::of_repository(error).kind;
        assert_eq!(of(ReadError::PathNotThere("a".into())), FailureKind::Usage);
        assert_eq!(of(ReadError::EmptyRepository("a".into())), FailureKind::Failed);
    }
}
