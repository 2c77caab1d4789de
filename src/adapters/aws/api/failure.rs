//! A call that failed: which action, and what kind of failure that is, by the code that AWS gave.
//! Codes: `https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html`, and those that the SDK retries.

use super::Action;
use crate::ports::{PortError, PortErrorKind};

/// What a failure means for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// Too many calls: later. Says nothing of what was asked for.
    Throttled,
    /// A permission, a policy or the credentials stand against it.
    Denied,
    /// What was asked for by name does not exist.
    NotFound,
    /// It exists already, or somebody uses it.
    Conflict,
    /// A quota of the account.
    Quota,
    /// The server or the way to it: later.
    Unavailable,
    /// The request itself; asking again will not help.
    Invalid,
}

impl ErrorKind {
    /// By the code of an error.
    pub fn of(code: &str) -> Self {
        match code {
            "RequestLimitExceeded"
            | "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "SlowDown"
            | "TooManyRequestsException"
            | "EC2ThrottledException"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "BandwidthLimitExceeded"
            | "PriorRequestNotComplete"
            | "TooManyUpdates" => Self::Throttled,
            "UnauthorizedOperation"
            | "AccessDenied"
            | "AccessDeniedException"
            | "AuthFailure"
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "InvalidClientTokenId"
            | "UnrecognizedClientException"
            | "SignatureDoesNotMatch"
            | "OptInRequired"
            | "RequestExpired"
            | "NotAuthorized"
            | "NoCredentials"
            | "Blocked"
            | "AuthFailure.ServiceLinkedRoleCreationNotPermitted" => Self::Denied,
            "NoSuchEntity"
            | "NoSuchEntityException"
            | "ResourceNotFoundException"
            | "ParameterNotFound"
            | "AWS.SimpleQueueService.NonExistentQueue"
            | "QueueDoesNotExist"
            | "NoSuchResourceException" => Self::NotFound,
            "EntityAlreadyExists"
            | "EntityAlreadyExistsException"
            | "DeleteConflict"
            | "ConcurrentModification"
            | "IdempotentParameterMismatch"
            | "InvalidLaunchTemplateName.AlreadyExistsException" => Self::Conflict,
            // IAM's and EKS' word for a quota; not among those that the SDK tries again.
            "LimitExceeded" | "LimitExceededException" | "MaxTemplateLimitExceeded" => Self::Quota,
            "InternalError"
            | "InternalFailure"
            | "InternalServiceError"
            | "ServiceUnavailable"
            | "Unavailable"
            | "ServiceUnavailableException"
            | "ServerException"
            | "RequestTimeout"
            | "Timeout"
            | "Unreachable" => Self::Unavailable,
            code if code.ends_with(".NotFound")
                || code.ends_with(".NotFoundException")
                || code.ends_with(".Unknown") =>
            {
                Self::NotFound
            }
            code if code.ends_with("LimitExceeded") || code.ends_with("CountExceeded") => Self::Quota,
            _ => Self::Invalid,
        }
    }

    /// Whether asking again later may help by itself, and nothing has been learnt until then.
    pub fn is_passing(self) -> bool {
        match self {
            Self::Throttled | Self::Unavailable => true,
            Self::Denied | Self::NotFound | Self::Conflict | Self::Quota | Self::Invalid => false,
        }
    }
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{action}: {code}: {message}")]
pub struct ApiError {
    pub action: Action,
    pub kind: ErrorKind,
    /// As AWS names it, `UnauthorizedOperation`; our own word where no answer came, `Timeout`.
    pub code: String,
    pub message: String,
}

/// What an encoded refusal begins behind.
const ENCODED: &str = "Encoded authorization failure message: ";

impl ApiError {
    /// By the code that AWS gave.
    pub fn of(action: Action, code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { action, kind: ErrorKind::of(&code), code, message }
    }

    /// For the controller: what was tried, in its words.
    pub fn into_port(self, operation: impl Into<String>) -> PortError {
        let kind = match self.kind {
            ErrorKind::Throttled | ErrorKind::Unavailable => PortErrorKind::Temporary,
            ErrorKind::Denied => PortErrorKind::Denied,
            ErrorKind::NotFound => PortErrorKind::NotFound,
            ErrorKind::Conflict => PortErrorKind::Conflict,
            ErrorKind::Quota | ErrorKind::Invalid => PortErrorKind::Permanent,
        };
        PortError { operation: operation.into(), kind, source: Some(Box::new(self)) }
    }

    /// What `sts:DecodeAuthorizationMessage` can read of a refusal by EC2.
    pub fn encoded_message(&self) -> Option<&str> {
        let (_, encoded) = self.message.split_once(ENCODED)?;
        encoded.split_whitespace().next()
    }

    /// What to look at, where the code says it better than the message.
    fn hint(&self) -> Option<&'static str> {
        match self.code.as_str() {
            "NoCredentials" => {
                Some("give credentials by the environment, a profile, the role of the service account, or the instance")
            }
            "ExpiredToken" | "ExpiredTokenException" => Some("the credentials have expired"),
            "InvalidClientTokenId" | "UnrecognizedClientException" | "AuthFailure" => {
                Some("the key is not known: see that it is of this partition, and not deleted")
            }
            "RequestExpired" | "SignatureDoesNotMatch" | "InvalidSignatureException" => {
                Some("see that the clock of this machine is right, and the secret key")
            }
            "OptInRequired" | "Blocked" => Some("the account may not use this region or service yet"),
            _ => None,
        }
    }

    /// For people: the permission that is missing, or the code and the message.
    pub fn text(&self) -> String {
        match self.kind {
            // The encoded part is a thousand characters that nobody can read.
            ErrorKind::Denied => {
                let message = self.message.split(ENCODED).next().unwrap_or_default().trim();
                let message = if message.is_empty() { self.code.as_str() } else { message };
                let hint = self.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                format!("{} is denied: {message}{hint}", self.action)
            }
            ErrorKind::Throttled => format!("{} is throttled by AWS ({})", self.action, self.code),
            ErrorKind::Unavailable => format!("{} did not answer: {}", self.action, self.message),
            ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Quota | ErrorKind::Invalid => {
                format!("{} failed: {}: {}", self.action, self.code, self.message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kinds() {
        for (code, kind) in [
            ("RequestLimitExceeded", ErrorKind::Throttled),
            ("ThrottlingException", ErrorKind::Throttled),
            ("UnauthorizedOperation", ErrorKind::Denied),
            ("AccessDenied", ErrorKind::Denied),
            ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", ErrorKind::Denied),
            ("InvalidInstanceID.NotFound", ErrorKind::NotFound),
            ("InvalidLaunchTemplateName.NotFoundException", ErrorKind::NotFound),
            ("InvalidPlacementGroup.Unknown", ErrorKind::NotFound),
            ("NoSuchEntity", ErrorKind::NotFound),
            ("EntityAlreadyExists", ErrorKind::Conflict),
            ("InvalidLaunchTemplateName.AlreadyExistsException", ErrorKind::Conflict),
            ("LimitExceeded", ErrorKind::Quota),
            ("VcpuLimitExceeded", ErrorKind::Quota),
            ("MaxSpotInstanceCountExceeded", ErrorKind::Quota),
            ("InternalError", ErrorKind::Unavailable),
            ("InvalidParameterValue", ErrorKind::Invalid),
            ("", ErrorKind::Invalid),
        ] {
            assert_eq!(ErrorKind::of(code), kind, "{code}");
        }
    }

    #[test]
    fn a_refusal_is_said_without_its_code() {
        let message =
            "You are not authorized to perform this operation. Encoded authorization failure message: abc123 more";
        let error = ApiError::of(Action::CreateFleet, "UnauthorizedOperation", message);
        assert_eq!(error.encoded_message(), Some("abc123"));
        let text = error.text();
        assert_eq!(text, "ec2:CreateFleet is denied: You are not authorized to perform this operation.");
        assert_eq!(ApiError::of(Action::CreateFleet, "UnauthorizedOperation", "no").encoded_message(), None);
        let clock = ApiError::of(Action::DescribeSubnets, "RequestExpired", "Request has expired.").text();
        assert!(clock.contains("clock"), "{clock}");
    }
}
