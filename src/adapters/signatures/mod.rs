//! Who signed a commit: keys that the operator allows, and signatures of SSH and OpenPGP that are held against them.
//!
//! | what | where |
//! |---|---|
//! | the file of allowed signers, as OpenSSH has it | `allowed_signers.rs` |
//! | signatures by SSH keys | `ssh.rs` |
//! | keys and signatures of OpenPGP | `openpgp.rs` |
//! | blocks of text that hold them | `armour.rs` |

#![expect(clippy::disallowed_methods, reason = "this adapter reads files of keys")]

mod allowed_signers;
mod armour;
mod openpgp;
mod ssh;

use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

pub use allowed_signers::LineError;
pub use openpgp::KeyError;

use allowed_signers::AllowedSigner;
use openpgp::Certificate;

/// Bytes of a file of keys; a ConfigMap holds no more.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a signature. The largest, by an RSA key of 8192 bits, has about two thousand.
const SIGNATURE_BYTES_MAX: usize = 64 << 10;

/// Why nobody can be allowed to sign.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("{} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is larger than {} KiB", .0.display(), FILE_BYTES_MAX >> 10)]
    TooLarge(PathBuf),
    #[error("{} is no text", .0.display())]
    NoText(PathBuf),
    #[error("{}:{line} is no allowed signer", path.display())]
    Line { path: PathBuf, line: usize, source: LineError },
    #[error("{}:{line} is no key of OpenPGP", path.display())]
    Key { path: PathBuf, line: usize, source: KeyError },
    #[error("{} names nobody who may sign", .0.display())]
    Nobody(PathBuf),
}

/// Who signed, by the operator's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBy {
    /// Principals; of OpenPGP addresses and the fingerprint.
    pub names: Vec<String>,
    /// `SHA256:…` of an SSH key, the fingerprint of one of OpenPGP.
    pub key: String,
}

impl std::fmt::Display for SignedBy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.names.first().map_or("nobody", String::as_str);
        write!(formatter, "{name} ({})", self.key)
    }
}

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the signature can not be read: {0}")]
    Garbled(&'static str),
    #[error("the signature is {0}, which does not count")]
    Unsupported(String),
    #[error("the signature is by an SSH certificate, and certificates are not looked at")]
    Certificate,
    #[error("the signature is for the namespace `{0}`, not for git")]
    OtherNamespace(String),
    #[error("the signature is over something else than this commit")]
    OtherData,
    #[error("key {key} is not among those that may sign")]
    UnknownKey { key: String },
    #[error("key {by} may not sign for Git: its line allows other namespaces")]
    NotForGit { by: SignedBy },
    #[error("key {by} counts from {from} on")]
    NotYetValid { by: SignedBy, from: Timestamp },
    #[error("key {by} counted until {until}")]
    Expired { by: SignedBy, until: Timestamp },
    #[error("key {by} was revoked")]
    Revoked { by: SignedBy },
}

/// The keys that may sign.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    ssh: Vec<AllowedSigner>,
    openpgp: Vec<Certificate>,
}

impl Keys {
    /// `allowed_signers`: as OpenSSH has it. `openpgp`: armoured public keys. A file with one mistake is not used at all.
    pub fn read(allowed_signers: Option<&Path>, openpgp: Option<&Path>) -> Result<Self, KeysError> {
        let mut keys = Self::default();
        if let Some(path) = allowed_signers {
            let wrong = |(line, source)| KeysError::Line { path: path.to_owned(), line, source };
            keys.ssh = allowed_signers::parse(&read_text(path)?).map_err(wrong)?;
            if keys.ssh.is_empty() {
                return Err(KeysError::Nobody(path.to_owned()));
            }
        }
        if let Some(path) = openpgp {
            let wrong = |(line, source)| KeysError::Key { path: path.to_owned(), line, source };
            keys.openpgp = openpgp::parse(&read_text(path)?).map_err(wrong)?;
            if keys.openpgp.is_empty() {
                return Err(KeysError::Nobody(path.to_owned()));
            }
        }
        Ok(keys)
    }

    /// Who signed these bytes. At each of the moments the key must count: when it was signed, as the commit says, and now, since
    /// whoever has an old key writes an old date.
    pub fn verify(&self, payload: &[u8], signature: &[u8], moments: &[Timestamp]) -> Result<SignedBy, SignatureError> {
        if signature.len() > SIGNATURE_BYTES_MAX {
            return Err(SignatureError::Garbled("it is larger than any"));
        }
        let text = str::from_utf8(signature).map_err(|_| SignatureError::Garbled("it is no text"))?;
        let text = text.trim();
        if text.starts_with("-----BEGIN SSH SIGNATURE-----") {
            self.verify_ssh(payload, text, moments)
        } else if text.starts_with("-----BEGIN PGP SIGNATURE-----") {
            openpgp::verify(&self.openpgp, payload, text, moments)
        } else if text.starts_with("-----BEGIN SIGNED MESSAGE-----") {
            Err(SignatureError::Unsupported("one of X.509".to_owned()))
        } else {
            Err(SignatureError::Garbled("it is of no kind that is known"))
        }
    }

    fn verify_ssh(&self, payload: &[u8], text: &str, moments: &[Timestamp]) -> Result<SignedBy, SignatureError> {
        let signature = ssh::parse(text)?;
        ssh::verify(&signature, payload)?;
        let key = ssh::fingerprint(signature.public_key());
        let mut refused = SignatureError::UnknownKey { key: key.clone() };
        // A key may stand in several lines.
        for line in self.ssh.iter().filter(|line| line.key == *signature.public_key()) {
            let by = SignedBy { names: line.principals.clone(), key: key.clone() };
            let (after, before) = (line.limits.valid_after, line.limits.valid_before);
            refused = match (line.is_for_git(), moments.iter().all(|moment| line.is_valid_at(*moment))) {
                (true, true) => return Ok(by),
                (false, _) => SignatureError::NotForGit { by },
                (true, false) => match (after, before) {
                    (Some(from), _) if moments.iter().any(|moment| *moment < from) => {
                        SignatureError::NotYetValid { by, from }
                    }
                    (_, until) => SignatureError::Expired { by, until: until.unwrap_or(Timestamp::MAX) },
                },
            };
        }
        Err(refused)
    }
}

/// A file of the operator, of no more than a mebibyte.
pub fn read_text(path: &Path) -> Result<String, KeysError> {
    let unreadable = |source| KeysError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // One byte more tells a file that is too large.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(KeysError::TooLarge(path.to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| KeysError::NoText(path.to_owned()))
}
