//! Signatures that `ssh-keygen -Y sign` makes, and Git with `gpg.format=ssh`.
//!
//! The crate `ssh-key` reads and verifies them. Three things it leaves to its caller: that lengths are those of what they hold, that the
//! version is 1, and that somebody touched a key in hardware (`PROTOCOL.sshsig`, `PROTOCOL.u2f` of OpenSSH). It allocates what a length
//! says, up to a MiB; there are few lengths, and a signature is bounded before it is read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ssh_encoding::Decode;
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, Error, HashAlg, PublicKey, SshSig};

use super::SignatureError;
use super::armour::armoured;

const LABEL: &str = "SSH SIGNATURE";
/// What Git signs for.
pub(super) const NAMESPACE: &str = "git";
/// Of DSA no key signs anything here; OpenSSH itself has given it up.
const KEY_TYPES: [&str; 8] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];
/// Bytes before the key: `SSHSIG` and the version.
const PREAMBLE_BYTES: usize = 10;
/// Of RSA: what the crate verifies.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;
/// Behind the signature of a key in hardware: flags, and a counter of four bytes.
const HARDWARE_BYTES: usize = 5;
/// Somebody touched the key.
const TOUCHED: u8 = 1;
const GARBLED: SignatureError = SignatureError::Garbled("its fields are not those of an SSH signature");

/// A signature, taken apart and not looked at yet.
pub(super) fn parse(text: &str) -> Result<SshSig, SignatureError> {
    let parts = armoured(text, LABEL).ok_or(SignatureError::Garbled("it is not whole"))?;
    let [part] = parts.as_slice() else { return Err(SignatureError::Garbled("it is not one signature")) };
    let bytes = STANDARD.decode(part.inside()).map_err(|_| SignatureError::Garbled("it is no base64"))?;
    let signature = SshSig::decode(&mut bytes.as_slice()).map_err(|error| refusal(&bytes, &error))?;
    if is_exact(&bytes) != Some(true) {
        return Err(GARBLED);
    }
    if signature.version() != SshSig::VERSION {
        return Err(other_version());
    }
    Ok(signature)
}

/// Whether each field ends where its length says, and the last one where all ends. Else one signature could be written in many ways.
fn is_exact(bytes: &[u8]) -> Option<bool> {
    let mut rest = bytes.get(PREAMBLE_BYTES..)?;
    let key = Vec::<u8>::decode(&mut rest).ok()?;
    for _field in ["namespace", "reserved", "hash", "signature"] {
        Vec::<u8>::decode(&mut rest).ok()?;
    }
    let written = PublicKey::from_bytes(&key).and_then(|parsed| parsed.to_bytes()).ok()?;
    Some(rest.is_empty() && written == key)
}

/// Why the crate did not read it.
fn refusal(bytes: &[u8], error: &Error) -> SignatureError {
    let key_type = key_type(bytes);
    match (error, key_type.as_deref()) {
        (Error::Version { .. }, _) => other_version(),
        (_, Some(name)) if name.contains("-cert-") => SignatureError::Certificate,
        (_, Some(name)) if !is_key_type(name) => unsupported_key(name),
        (Error::Encoding(ssh_encoding::Error::Label(label)), _) => {
            SignatureError::Unsupported(format!("an SSH signature over {}", label.label()))
        }
        _ => GARBLED,
    }
}

pub(super) fn is_key_type(word: &str) -> bool {
    KEY_TYPES.contains(&word)
}

/// The name that a key begins with.
fn key_type(signature: &[u8]) -> Option<String> {
    let mut rest = signature.get(PREAMBLE_BYTES..)?;
    let _key_bytes = usize::decode(&mut rest).ok()?;
    String::decode(&mut rest).ok()
}

fn other_version() -> SignatureError {
    SignatureError::Unsupported("an SSH signature of another version than 1".to_owned())
}

fn unsupported_key(name: &str) -> SignatureError {
    SignatureError::Unsupported(format!("an SSH key of type {name}"))
}

/// Whether the key that stands in it signed this. Whose key it is is another question.
pub(super) fn verify(signature: &SshSig, payload: &[u8]) -> Result<(), SignatureError> {
    if signature.namespace() != NAMESPACE {
        return Err(SignatureError::OtherNamespace(signature.namespace().to_owned()));
    }
    let key = signature.public_key();
    if matches!(key, KeyData::Dsa(_) | KeyData::Other(_)) {
        return Err(unsupported_key(key.algorithm().as_str()));
    }
    let (of_key, of_signature) = (key.algorithm(), signature.algorithm());
    let is_rsa = |algorithm: &Algorithm| matches!(algorithm, Algorithm::Rsa { .. });
    if of_key != of_signature && !(is_rsa(&of_key) && is_rsa(&of_signature)) {
        return Err(SignatureError::Unsupported(format!("an SSH signature by {of_signature}")));
    }
    if let KeyData::Rsa(key) = key
        && !RSA_BITS.contains(&key.n.as_positive_bytes().map_or(0, |n| n.len() * 8))
    {
        let (from, to) = RSA_BITS.into_inner();
        return Err(SignatureError::Unsupported(format!("by an RSA key of other than {from} to {to} bits")));
    }
    if (key.is_sk_ed25519() || key.is_sk_ecdsa_p256()) && !is_touched(signature.signature_bytes()) {
        return Err(SignatureError::Unsupported("a key in hardware that nobody touched".to_owned()));
    }
    // Namespace and hash are part of what is signed.
    let verified = PublicKey::from(key.clone()).verify(NAMESPACE, payload, signature);
    verified.map_err(|_| SignatureError::OtherData)
}

fn is_touched(signature: &[u8]) -> bool {
    let flags = signature.len().checked_sub(HARDWARE_BYTES).and_then(|at| signature.get(at));
    flags.is_some_and(|flags| flags & TOUCHED != 0)
}

/// As `ssh-keygen -l` shows it.
pub(super) fn fingerprint(key: &KeyData) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::digest::{SHA256, digest};
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    /// As a key in hardware signs it.
    fn signed_in_hardware(payload: &[u8], flags: u8) -> Vec<u8> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let name = string(b"sk-ssh-ed25519@openssh.com");
        let key = [name.clone(), string(pair.public_key().as_ref()), string(b"ssh:")].concat();
        let data = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, payload).unwrap();
        let flags_and_counter = [flags, 0, 0, 0, 9];
        let hashes = [digest(&SHA256, b"ssh:"), digest(&SHA256, &data)];
        let signed = [hashes[0].as_ref(), &flags_and_counter, hashes[1].as_ref()].concat();
        let signature = [name, string(pair.sign(&signed).as_ref()), flags_and_counter.to_vec()].concat();
        let fields = [string(&key), string(b"git"), string(b""), string(b"sha512"), string(&signature)];
        [b"SSHSIG\0\0\0\x01".to_vec(), fields.concat()].concat()
    }

    fn armoured(bytes: &[u8]) -> String {
        format!("-----BEGIN {LABEL}-----\n{}\n-----END {LABEL}-----\n", STANDARD.encode(bytes))
    }

    #[test]
    fn a_key_in_hardware_must_be_touched() {
        let verified = |flags: u8, payload: &[u8]| {
            verify(&parse(&armoured(&signed_in_hardware(b"payload", flags))).unwrap(), payload)
        };
        assert_eq!(verified(TOUCHED, b"payload"), Ok(()));
        assert_eq!(verified(TOUCHED, b"another"), Err(SignatureError::OtherData));
        let untouched = verified(0, b"payload").unwrap_err().to_string();
        assert!(untouched.contains("nobody touched"), "{untouched}");
    }

    #[test]
    fn what_is_not_read_says_why() {
        let bytes = signed_in_hardware(b"payload", TOUCHED);
        let refused = |bytes: &[u8]| parse(&armoured(bytes)).map(|_| ()).unwrap_err().to_string();
        let replaced = |from: &[u8], to: &[u8]| {
            assert_eq!(from.len(), to.len());
            let place = bytes.windows(from.len()).position(|window| window == from).unwrap();
            [&bytes[..place], to, &bytes[place + from.len()..]].concat()
        };
        for (bytes, expected) in [
            (replaced(b"SSHSIG\0\0\0\x01", b"SSHSIG\0\0\0\0"), "of another version than 1"),
            (replaced(b"SSHSIG\0\0\0\x01", b"SSHSIG\0\0\0\x02"), "of another version than 1"),
            (replaced(b"sha512", b"sha384"), "an SSH signature over sha384"),
            (replaced(b"sk-ssh-ed25519@openssh.com", b"ssh-dss-cert-v@openssh.com"), "by an SSH certificate"),
            (
                replaced(b"sk-ssh-ed25519@openssh.com", b"sk-ssh-ed25518@openssh.com"),
                "an SSH key of type sk-ssh-ed25518",
            ),
            ([&bytes[..], b"x"].concat(), "its fields are not those"),
            (replaced(b"ssh:", b"\xff\xff\xff\xff"), "its fields are not those"),
        ] {
            let text = refused(&bytes);
            assert!(text.contains(expected), "{text}, and not: {expected}");
        }
    }
}
