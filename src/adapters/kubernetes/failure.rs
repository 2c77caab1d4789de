//! Errors of the client as errors of a port: what was tried, whether it may help to try again, and what to do.

use kube::Error;
use kube::client::AuthError;
use kube::core::Status;

use crate::adapters::http::without_secrets;
use crate::core::snapshot::problem::problem;
use crate::ports::{PortError, PortErrorKind};

/// Some answers list every rule that an object breaks, several times.
const CHARACTERS_MAX: usize = 600;

/// `operation` says what was tried, on what: `list nodes`.
pub(super) fn port_error(operation: impl Into<String>, error: Error) -> PortError {
    let kind = kind_of(&error);
    let source = match error {
        // The client would print the answer as data, and its sentence once more.
        Error::Api(status) => sentence(status.message).into(),
        // It would quote what it can not read, which may be a secret.
        Error::SerdeError(error) => format!("an answer can not be read: {}", problem(&error)).into(),
        error => match of_plugin(&error) {
            Some(said) => said.into(),
            None => Box::new(error) as Box<dyn std::error::Error + Send + Sync>,
        },
    };
    PortError { operation: operation.into(), kind, source: Some(source) }
}

/// Of a credential plugin that failed only how it ended: its words, its arguments and what it printed may hold secrets.
fn of_plugin(error: &Error) -> Option<String> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(AuthError::AuthExecRun { out, .. }) = found.downcast_ref() {
            let ended = out.status;
            return Some(format!(
                "the kubeconfig's credential plugin failed ({ended}); what it says may hold secrets, so it is not shown: `kubectl \
                 auth whoami` runs it, too"
            ));
        }
        cause = found.source();
    }
    None
}

/// What the API server says, cut where it goes on for pages.
pub(super) fn sentence(message: String) -> String {
    let message = without_secrets(&message);
    match message.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", message.get(..end).unwrap_or_default()),
        None => message,
    }
}

fn kind_of(error: &Error) -> PortErrorKind {
    match error {
        Error::Api(status) => kind_of_status(status),
        Error::HyperError(_) | Error::Service(_) | Error::ReadEvents(_) => PortErrorKind::Temporary,
        Error::Auth(_) => PortErrorKind::Denied,
        _ => PortErrorKind::Permanent,
    }
}

pub(super) fn kind_of_status(status: &Status) -> PortErrorKind {
    if is_refused_by_admission(status) { PortErrorKind::Refused } else { kind_of_code(status.code) }
}

/// Whether it is not the API server that says so, but what it asks about each object. Only the words tell: a webhook gives any code of 400
/// and above, a policy mostly 422, a quota 403, and one of which no answer came 500.
pub(super) fn is_refused_by_admission(status: &Status) -> bool {
    let message = status.message.as_str();
    let says = |words: [&str; 2]| words.iter().all(|words| message.contains(words));
    let of_quota = status.code == 403 && (message.contains("exceeded quota: ") || message.contains("failed quota: "));
    says(["admission webhook ", " denied the request"])
        || says(["AdmissionPolicy ", " denied request"])
        || message.contains("failed calling webhook")
        || of_quota
}

/// Whether the object is not there. A webhook may refuse one that is with the same code.
pub(super) fn is_not_found(status: &Status) -> bool {
    kind_of_status(status) == PortErrorKind::NotFound
}

/// Source: Kubernetes API conventions, "HTTP Status codes". Where it is a proxy that answers, or the server has too much to do, it is the
/// same for everything.
pub(super) fn kind_of_code(code: u16) -> PortErrorKind {
    match code {
        401 | 403 => PortErrorKind::Denied,
        404 | 410 => PortErrorKind::NotFound,
        409 => PortErrorKind::Conflict,
        408 | 429 | 502 | 503 | 504 => PortErrorKind::Temporary,
        500..=599 => PortErrorKind::Internal,
        _ => PortErrorKind::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: u16, message: &str) -> PortErrorKind {
        kind_of(&Error::Api(Box::new(Status { code, message: message.to_owned(), ..Status::default() })))
    }

    #[test]
    fn what_admission_refuses_is_no_missing_right_and_no_failure_of_the_server() {
        let by_webhook = "admission webhook \"policy.example.com\" denied the request: not on Fridays";
        for code in [400, 403, 404, 409, 422, 429, 500] {
            assert_eq!(kind(code, by_webhook), PortErrorKind::Refused, "{code}");
        }
        let by_policy = "nodeclaims.karpenter.sh \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
        assert_eq!((kind(422, by_policy), kind(403, by_policy)), (PortErrorKind::Refused, PortErrorKind::Refused));
        let by_quota = "nodeclaims.karpenter.sh \"a\" is forbidden: exceeded quota: few, requested: count=1, used: count=5, limited: count=5";
        assert_eq!(kind(403, by_quota), PortErrorKind::Refused);
        let away = "Internal error occurred: failed calling webhook \"policy.example.com\": context deadline exceeded";
        assert_eq!(kind(500, away), PortErrorKind::Refused);
        let no_right = "nodes \"a\" is forbidden: User \"cutlist\" cannot patch resource \"nodes\" in API group \"\" at the cluster scope";
        assert_eq!(kind(403, no_right), PortErrorKind::Denied);
        assert_eq!(kind(500, "Internal error occurred: conversion failed"), PortErrorKind::Internal);
        assert_eq!(kind(503, "the server is currently unable to handle the request"), PortErrorKind::Temporary);
        assert_eq!(kind(422, "spec.taints: Invalid value"), PortErrorKind::Permanent);
    }
}
