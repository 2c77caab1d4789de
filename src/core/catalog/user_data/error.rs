//! Why an instance can not be told what it has to know. Each says where, and what to do.

use super::BYTES_MAX;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// Text of the class that is not what its image family reads.
    #[error("spec.userData:{line}: {message}")]
    Malformed { line: usize, message: String },
    /// A value of the class that can not be passed on.
    #[error("{field}: {message}")]
    Field { field: String, message: String },
    /// Something about the cluster that has not been found out yet, or can not be used.
    #[error("{what} of the cluster {problem}")]
    Cluster { what: &'static str, problem: String },
    #[error(
        "the user data has {bytes} bytes ({encoded_bytes} in base64), and EC2 takes {BYTES_MAX} before they are encoded; \
         {of_class} of them are spec.userData of the class: shorten it, or let it fetch the rest"
    )]
    TooLarge { bytes: usize, encoded_bytes: usize, of_class: usize },
}

impl UserDataError {
    pub(super) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Field { field: field.into(), message: message.into() }
    }

    pub(super) fn malformed(line: usize, message: impl Into<String>) -> Self {
        Self::Malformed { line, message: message.into() }
    }
}
