//! Signatures that `ssh-keygen -Y sign` makes, and Git with `gpg.format=ssh`.
//!
//! Source: `PROTOCOL.sshsig`, `PROTOCOL.u2f` of OpenSSH; RFC 4253, 5656, 8332 and 8709. A signature is five fields and a key three, so
//! they are read here: the crate `ssh-key` would bring twenty others, and the arithmetic a second time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::SignatureError;
use super::crypto::{Curve, Hash, PublicKey};
use super::wire::{Bytes, armoured, decoded};

const LABEL: &str = "SSH SIGNATURE";
const MAGIC: &[u8] = b"SSHSIG";
/// What Git signs for.
pub(super) const NAMESPACE: &str = "git";
/// Somebody touched the key.
const TOUCHED: u8 = 1;

/// A signature, taken apart and not looked at yet.
pub(super) struct SshSignature<'a> {
    /// The key as it is written in files of keys, before base64.
    pub key: &'a [u8],
    namespace: &'a str,
    reserved: &'a [u8],
    hash_name: &'a str,
    signature: &'a [u8],
}

/// The bytes of an armoured signature.
pub(super) fn bytes_of(text: &str) -> Result<Vec<u8>, SignatureError> {
    let garbled = || SignatureError::Garbled("it is not whole");
    let parts = armoured(text, LABEL).ok_or_else(garbled)?;
    let [part] = parts.as_slice() else { return Err(SignatureError::Garbled("it is not one signature")) };
    decoded(&part.lines).ok_or(SignatureError::Garbled("it is no base64"))
}

impl<'a> SshSignature<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SignatureError> {
        let garbled = || SignatureError::Garbled("its fields are not those of an SSH signature");
        let mut bytes = Bytes(bytes);
        let mut parse = || {
            let version = (bytes.take(MAGIC.len())? == MAGIC).then(|| bytes.four()).flatten()?;
            let (key, namespace, reserved) = (bytes.string()?, bytes.text()?, bytes.string()?);
            let (hash_name, signature) = (bytes.text()?, bytes.string()?);
            bytes.is_empty().then_some((version, Self { key, namespace, reserved, hash_name, signature }))
        };
        match parse().ok_or_else(garbled)? {
            (1, signature) => Ok(signature),
            _ => Err(SignatureError::Unsupported("an SSH signature of another version than 1".to_owned())),
        }
    }

    /// Whether the key that stands in it signed this. Whose key it is is another question.
    pub fn verify(&self, payload: &[u8]) -> Result<(), SignatureError> {
        if self.namespace != NAMESPACE {
            return Err(SignatureError::OtherNamespace(self.namespace.to_owned()));
        }
        let hash = match self.hash_name {
            "sha256" => Hash::Sha256,
            "sha512" => Hash::Sha512,
            other => return Err(SignatureError::Unsupported(format!("an SSH signature over {other}"))),
        };
        let mut signed = MAGIC.to_vec();
        for part in [self.namespace.as_bytes(), self.reserved, self.hash_name.as_bytes(), &hash.of(payload)] {
            // What came with four bytes of length fits in them.
            signed.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            signed.extend(part);
        }
        let key = SshKey::parse(self.key)?;
        let mut signature = Bytes(self.signature);
        let fields = signature.text().zip(signature.string());
        let (algorithm, blob) = fields.ok_or(SignatureError::Garbled("its innermost part is cut off"))?;
        if key.has_signed(&signed, algorithm, blob, signature)? { Ok(()) } else { Err(SignatureError::OtherData) }
    }
}

/// A public key, and how it signs.
struct SshKey<'a> {
    name: &'a str,
    key: PublicKey,
    /// Of a key in hardware: what it is for.
    application: Option<&'a [u8]>,
}

impl<'a> SshKey<'a> {
    fn parse(blob: &'a [u8]) -> Result<Self, SignatureError> {
        let mut bytes = Bytes(blob);
        let garbled = SignatureError::Garbled("its key is cut off");
        let Some(name) = bytes.text() else { return Err(garbled) };
        let parsed = match name {
            "ssh-ed25519" | "sk-ssh-ed25519@openssh.com" => bytes.string().map(|key| PublicKey::Ed25519(key.to_vec())),
            "ecdsa-sha2-nistp256" | "sk-ecdsa-sha2-nistp256@openssh.com" => ecdsa(&mut bytes, Curve::P256),
            "ecdsa-sha2-nistp384" => ecdsa(&mut bytes, Curve::P384),
            "ecdsa-sha2-nistp521" => ecdsa(&mut bytes, Curve::P521),
            "ssh-rsa" => {
                let numbers = bytes.string().zip(bytes.string());
                numbers.map(|(e, n)| PublicKey::Rsa { modulus: n.to_vec(), exponent: e.to_vec() })
            }
            name if name.contains("-cert-") => return Err(SignatureError::Certificate),
            other => return Err(SignatureError::Unsupported(format!("an SSH key of type {other}"))),
        };
        let application = if name.starts_with("sk-") { bytes.string() } else { None };
        match parsed {
            Some(key) if bytes.is_empty() => Ok(Self { name, key, application }),
            _ => Err(garbled),
        }
    }

    /// `rest`: what stands behind the signature itself.
    fn has_signed(
        &self,
        data: &[u8],
        algorithm: &str,
        blob: &[u8],
        mut rest: Bytes<'_>,
    ) -> Result<bool, SignatureError> {
        let mut signed = data.to_vec();
        if let Some(application) = self.application {
            let flags_and_counter = rest.byte().zip(rest.take(4));
            let (flags, counter) = flags_and_counter.ok_or(SignatureError::Garbled("its counter is cut off"))?;
            if flags & TOUCHED == 0 {
                return Err(SignatureError::Unsupported("a key in hardware that nobody touched".to_owned()));
            }
            signed = Hash::Sha256.of(application);
            signed.push(flags);
            signed.extend(counter);
            signed.extend(Hash::Sha256.of(data));
        }
        if !rest.is_empty() {
            return Err(SignatureError::Garbled("there is more than a signature"));
        }
        Ok(match (&self.key, algorithm) {
            (PublicKey::Ed25519(_), algorithm) if algorithm == self.name => self.key.signed_with_ed25519(&signed, blob),
            (PublicKey::Rsa { .. }, "rsa-sha2-256") => self.key.signed_with_rsa(Hash::Sha256, &signed, blob),
            (PublicKey::Rsa { .. }, "rsa-sha2-512") => self.key.signed_with_rsa(Hash::Sha512, &signed, blob),
            (PublicKey::Rsa { .. }, "ssh-rsa") => {
                return Err(SignatureError::Unsupported("an SSH signature with SHA-1".to_owned()));
            }
            (PublicKey::Ecdsa(..), algorithm) if algorithm == self.name => {
                let mut numbers = Bytes(blob);
                let both = numbers.string().zip(numbers.string()).filter(|_| numbers.is_empty());
                both.is_some_and(|both| self.key.signed_with_ecdsa(&signed, both))
            }
            _ => return Err(SignatureError::Unsupported(format!("an SSH signature by {algorithm}"))),
        })
    }
}

fn ecdsa(bytes: &mut Bytes<'_>, curve: Curve) -> Option<PublicKey> {
    let (_name, point) = bytes.string().zip(bytes.string())?;
    Some(PublicKey::Ecdsa(curve, point.to_vec()))
}

/// As `ssh-keygen -l` shows it.
pub(super) fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Hash::Sha256.of(key)))
}
