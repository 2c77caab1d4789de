//! Errors of the client as errors of a port: what was tried, whether it may help to try again, and what to do.

use kube::Error;

use crate::ports::{PortError, PortErrorKind};

/// Some answers list every rule that an object breaks, several times.
const CHARACTERS_MAX: usize = 600;

/// `operation` says what was tried, on what: `list nodes`.
pub(super) fn port_error(operation: impl Into<String>, error: Error) -> PortError {
    let kind = kind_of(&error);
    let source = match error {
        // The client would print the answer as data, and its sentence once more.
        Error::Api(status) => sentence(status.message).into(),
        error => Box::new(error) as Box<dyn std::error::Error + Send + Sync>,
    };
    PortError { operation: operation.into(), kind, source: Some(source) }
}

/// What the API server says, cut where it goes on for pages.
pub(super) fn sentence(message: String) -> String {
    match message.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

fn kind_of(error: &Error) -> PortErrorKind {
    match error {
        // A webhook that is away forbids just what it is asked about: the server itself answers.
        Error::Api(status) if status.message.contains("failed calling webhook") => PortErrorKind::Denied,
        Error::Api(status) => kind_of_code(status.code),
        Error::HyperError(_) | Error::Service(_) | Error::ReadEvents(_) => PortErrorKind::Temporary,
        Error::Auth(_) => PortErrorKind::Denied,
        _ => PortErrorKind::Permanent,
    }
}

/// Source: Kubernetes API conventions, "HTTP Status codes".
pub(super) fn kind_of_code(code: u16) -> PortErrorKind {
    match code {
        401 | 403 => PortErrorKind::Denied,
        404 | 410 => PortErrorKind::NotFound,
        409 => PortErrorKind::Conflict,
        408 | 429 | 500 | 502 | 503 | 504 => PortErrorKind::Temporary,
        _ => PortErrorKind::Permanent,
    }
}
