//! What must not be seen: tokens and keys. They stay where they are until they are needed, since secrets are rotated.

#![expect(clippy::disallowed_methods, reason = "this adapter reads files of secrets")]

use std::io::Read;
use std::path::PathBuf;

use hyper::header::HeaderValue;

use super::hidden::remember_secret;

/// More is no secret.
const FILE_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("the secret in {} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{0} holds no secret: write it on one line")]
    Empty(String),
    #[error("a secret holds characters that no header may have")]
    NoHeader,
    #[error("{0} holds no private key of RSA in PEM, as GitHub makes it for an App")]
    NoKey(String),
}

/// Where a secret is. `Debug` shows that alone.
#[derive(Clone)]
pub enum SecretSource {
    /// Read each time.
    File(PathBuf),
    /// The name of a variable, and what it held when the program began.
    Variable(String, Secret),
}

impl SecretSource {
    pub fn read(&self) -> Result<Secret, SecretError> {
        match self {
            Self::Variable(name, secret) if secret.0.trim().is_empty() => Err(SecretError::Empty(name.clone())),
            Self::Variable(_, secret) => Ok(Secret(secret.0.trim().to_owned())),
            Self::File(path) => {
                let unreadable = |source| SecretError::Unreadable { path: path.clone(), source };
                let mut text = String::new();
                let file = std::fs::File::open(path).map_err(unreadable)?;
                let length = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
                if length as u64 > FILE_BYTES_MAX {
                    return Err(unreadable(std::io::ErrorKind::FileTooLarge.into()));
                }
                let text = text.trim();
                if text.is_empty() {
                    return Err(SecretError::Empty(path.display().to_string()));
                }
                Ok(Secret::new(text.to_owned()))
            }
        }
    }
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "File({})", path.display()),
            Self::Variable(name, _) => write!(formatter, "Variable({name})"),
        }
    }
}

impl std::fmt::Display for SecretSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Variable(name, _) => formatter.write_str(name),
        }
    }
}

/// A token or a key. Neither `Display` nor a telling `Debug`, so that it ends up in no log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Self {
        remember_secret(&text);
        Self(text)
    }

    /// To use it, and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn header(&self) -> Result<HeaderValue, SecretError> {
        let mut value = HeaderValue::from_str(&self.0).map_err(|_| SecretError::NoHeader)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_nothing() {
        let source = SecretSource::Variable("TOKEN".to_owned(), Secret::new(" abc\n".to_owned()));
        assert_eq!(format!("{source:?} {source} {:?}", source.read().unwrap()), "Variable(TOKEN) TOKEN Secret");
        assert_eq!(source.read().unwrap().expose(), "abc");
        let header = format!("{:?}", Secret::new("abc".to_owned()).header().unwrap());
        assert!(!header.contains("abc"), "{header}");
        let two_lines = Secret::new("a\nb".to_owned()).header().unwrap_err();
        assert_eq!(two_lines.to_string(), "a secret holds characters that no header may have");
        let empty = SecretSource::Variable("TOKEN".to_owned(), Secret::new("  ".to_owned()));
        assert!(empty.read().is_err());
    }
}
