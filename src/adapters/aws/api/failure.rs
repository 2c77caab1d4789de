//! A call that failed: which action, and what that means, by the code and the message that AWS gave.

use super::Action;
use crate::adapters::aws::failures::{FailureClass, classify, is_known};
use crate::ports::PortError;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{action}: {code}: {message}")]
pub struct ApiError {
    pub action: Action,
    pub class: FailureClass,
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
        Self { action, class: classify(&code, &message).class, code, message }
    }

    /// The same with the status of HTTP: a fault of the server is one, also under a code that nobody knows here.
    pub fn of_status(action: Action, status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::of(action, code, message);
        let is_unknown = error.class == FailureClass::Invalid && !is_known(&error.code, &error.message);
        if status >= 500 && is_unknown { Self { class: FailureClass::Server, ..error } } else { error }
    }

    /// For the controller: what was tried, in its words.
    pub fn into_port(self, operation: impl Into<String>) -> PortError {
        PortError { operation: operation.into(), kind: self.class.kind(), source: Some(Box::new(self)) }
    }

    /// Whether it is for want of credentials that are good: they end, and come back, and nothing that they may do is known meanwhile.
    pub fn is_of_credentials(&self) -> bool {
        classify(&self.code, &self.message).reason.starts_with("Credentials")
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
            // Under the same code EC2 says that an image is not for the account.
            "AuthFailure" if !self.is_of_credentials() => None,
            // And of a request that is dated in the future.
            "AuthFailure" => Some(
                "the key is not known, or the clock of this machine is off: see that the key is of this partition, and not deleted",
            ),
            "InvalidClientTokenId" | "UnrecognizedClientException" => {
                Some("the key is not known: see that it is of this partition, and not deleted")
            }
            "RequestExpired" => {
                Some("see that the clock of this machine is right, and that the credentials have not expired")
            }
            "SignatureDoesNotMatch"
            | "InvalidSignatureException"
            | "IncompleteSignature"
            | "IncompleteSignatureException" => Some("see that the clock of this machine is right, and the secret key"),
            "OptInRequired" | "Blocked" => Some("the account may not use this region or service yet"),
            _ => None,
        }
    }

    /// For people: the permission that is missing, or the code and the message.
    pub fn text(&self) -> String {
        match self.class {
            // The encoded part is a thousand characters that nobody can read.
            FailureClass::Denied => {
                let message = self.message.split(ENCODED).next().unwrap_or_default().trim();
                let message = if message.is_empty() { self.code.as_str() } else { message };
                let hint = self.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                format!("{} is denied: {message}{hint}", self.action)
            }
            FailureClass::Throttled => format!("{} is throttled by AWS ({})", self.action, self.code),
            FailureClass::Server => format!("{} did not answer: {}", self.action, self.message),
            FailureClass::Capacity
            | FailureClass::Quota
            | FailureClass::Addresses
            | FailureClass::TemplateGone
            | FailureClass::NotYetKnown
            | FailureClass::TokenTaken
            | FailureClass::Conflict
            | FailureClass::NotFound
            | FailureClass::Invalid => format!("{} failed: {}: {}", self.action, self.code, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(clock.contains("clock") && clock.contains("expired"), "{clock}");
        let image = ApiError::of(Action::CreateFleet, "AuthFailure", "Not authorized for images: [ami-1]").text();
        assert_eq!(image, "ec2:CreateFleet is denied: Not authorized for images: [ami-1]");
        let key = "AWS was not able to validate the provided access credentials";
        let unknown = ApiError::of(Action::DescribeSubnets, "AuthFailure", key).text();
        assert!(unknown.contains("the key is not known") && unknown.contains("clock"), "{unknown}");
    }

    #[test]
    fn a_fault_of_the_server_is_one_whatever_its_code() {
        let class = |status: u16, code: &str| ApiError::of_status(Action::GetParameters, status, code, "").class;
        assert_eq!(class(500, "SomethingNewException"), FailureClass::Server);
        assert_eq!(class(400, "SomethingNewException"), FailureClass::Invalid);
        assert_eq!(class(500, "InvalidAMIID.NotFound"), FailureClass::Invalid, "that one is known");
        assert_eq!(class(500, "InsufficientInstanceCapacity"), FailureClass::Capacity);
        assert_eq!(class(503, "RequestLimitExceeded"), FailureClass::Throttled);
    }
}
