//! What a remote repository wants to know about us. The secret stays in its file until it is asked for.

use std::io::Read;
use std::path::{Path, PathBuf};

use git2::{Cred, CredentialType, ErrorClass, ErrorCode};

use crate::adapters::http::remember_password;

/// More is no credential.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Forges look at the password when it is a token, and want some name before it.
const USER_OF_A_TOKEN: &str = "x-access-token";
/// The name that every forge uses for SSH.
const USER_OF_SSH: &str = "git";

#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("the credentials in {} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} holds no credentials: write a token, or `user:password`, on one line", .0.display())]
    Empty(PathBuf),
}

/// Content of a credentials file. Not `Debug`, so that it ends up in no log.
pub(super) enum Secret {
    UserPassword {
        user: String,
        password: String,
    },
    /// The file is a private key for SSH.
    Key(PathBuf),
}

impl Secret {
    /// Reads a file that holds a token, `user:password`, or a private key. Read for each fetch: secrets are rotated.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let unreadable = |source| CredentialsError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let length = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if length as u64 > FILE_BYTES_MAX {
            return Err(unreadable(std::io::ErrorKind::FileTooLarge.into()));
        }
        Self::parse(path, text.trim()).ok_or_else(|| CredentialsError::Empty(path.to_owned()))
    }

    fn parse(path: &Path, text: &str) -> Option<Self> {
        if text.starts_with("-----BEGIN ") {
            return Some(Self::Key(path.to_owned()));
        }
        if text.is_empty() || text.contains(['\n', '\0']) {
            return None;
        }
        let (user, password) = text.split_once(':').unwrap_or((USER_OF_A_TOKEN, text));
        remember_password(user, password);
        Some(Self::UserPassword { user: user.to_owned(), password: password.to_owned() })
    }
}

/// Answers the library, once for each way of authentication: it asks again and again as long as it gets an answer.
pub(super) struct Answers {
    secret: Option<Secret>,
    given: CredentialType,
}

impl Answers {
    pub fn new(secret: Option<Secret>) -> Self {
        Self { secret, given: CredentialType::empty() }
    }

    pub fn answer(&mut self, user_of_url: Option<&str>, allowed: CredentialType) -> Result<Cred, git2::Error> {
        let user = user_of_url.unwrap_or(USER_OF_SSH);
        if allowed.contains(CredentialType::USERNAME) {
            self.once(CredentialType::USERNAME)?;
            return Cred::username(user);
        }
        if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) {
            if matches!(self.secret, Some(Secret::UserPassword { .. })) {
                self.once(CredentialType::USER_PASS_PLAINTEXT)?;
            }
            if let Some(Secret::UserPassword { user, password }) = &self.secret {
                return Cred::userpass_plaintext(user, password);
            }
        }
        if allowed.contains(CredentialType::SSH_KEY) {
            self.once(CredentialType::SSH_KEY)?;
            return match &self.secret {
                Some(Secret::Key(path)) => Cred::ssh_key(user, None, path, None),
                _ => Cred::ssh_key_from_agent(user),
            };
        }
        Err(denied(match &self.secret {
            None => "credentials are required, and none were given",
            Some(_) => "the remote takes no credentials of the kind that was given",
        }))
    }

    /// Whether it was answered already: another time it is not.
    pub fn gave(&self, allowed: CredentialType) -> bool {
        self.given.intersects(allowed)
    }

    fn once(&mut self, kind: CredentialType) -> Result<(), git2::Error> {
        if self.given.contains(kind) {
            return Err(denied("the credentials were refused"));
        }
        self.given |= kind;
        Ok(())
    }
}

pub(super) fn denied(message: &str) -> git2::Error {
    git2::Error::new(ErrorCode::Auth, ErrorClass::Callback, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(String, String)> {
        match Secret::parse(Path::new("file"), text)? {
            Secret::UserPassword { user, password } => Some((user, password)),
            Secret::Key(path) => Some(("key".to_owned(), path.display().to_string())),
        }
    }

    #[test]
    fn reads_tokens_passwords_and_keys() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(parse("ghp_abc"), pair("x-access-token", "ghp_abc"));
        assert_eq!(parse("me:a:b"), pair("me", "a:b"));
        assert_eq!(parse("-----BEGIN OPENSSH PRIVATE KEY-----\n..."), pair("key", "file"));
        for text in ["", "two\nlines", "nul\0"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn answers_once() {
        let secret = Secret::parse(Path::new("file"), "token");
        let mut answers = Answers::new(secret);
        assert!(answers.answer(None, CredentialType::USER_PASS_PLAINTEXT).is_ok());
        let error = answers.answer(None, CredentialType::USER_PASS_PLAINTEXT).err().unwrap();
        assert_eq!((error.code(), error.message()), (ErrorCode::Auth, "the credentials were refused"));
        let error = Answers::new(None).answer(None, CredentialType::USER_PASS_PLAINTEXT).err().unwrap();
        assert_eq!((error.code(), error.message()), (ErrorCode::Auth, "credentials are required, and none were given"));
    }
}
