//! Signatures that `gpg` makes, Git's default, and those by which forges sign the merges they make.
//!
//! Source: RFC 9580. Only what a commit needs is read: keys and signatures of version 4, with RSA, ECDSA or Ed25519, and SHA-2. The crate
//! `pgp` reads all of OpenPGP and would bring 88 others, twelve of them a second time in another version, and one with an open advisory
//! (RUSTSEC-2023-0071); what a key may do, until when, and whether it was revoked, it leaves to its caller as well.

mod certificate;
mod packets;

use jiff::Timestamp;

use super::wire::{Armoured, armoured, decoded};
use super::{SignatureError, SignedBy};

pub(super) use certificate::Certificate;
pub use certificate::KeyError;

use packets::{Signature, Unlike, packets, tag};

const SIGNATURE_LABEL: &str = "PGP SIGNATURE";
const KEY_LABEL: &str = "PGP PUBLIC KEY BLOCK";
/// A signature over bytes as they are.
const BINARY: u8 = 0;

/// The keys of an armoured file; of the first that can not be used the line where its block begins, and why.
pub(super) fn parse(text: &str) -> Result<Vec<Certificate>, (usize, KeyError)> {
    let blocks = armoured(text, KEY_LABEL).ok_or((1, KeyError::NoEnd))?;
    if blocks.is_empty() && !text.trim().is_empty() {
        return Err((1, KeyError::NotArmoured));
    }
    let mut certificates = Vec::new();
    for block in blocks {
        let failed = |error| (block.line, error);
        let bytes = body(&block).ok_or(failed(KeyError::Garbled))?;
        let packets = packets(&bytes).ok_or(failed(KeyError::Garbled))?;
        certificates.extend(certificate::all(&packets).map_err(failed)?);
    }
    Ok(certificates)
}

/// Behind the headers, and before the checksum, which protects against nothing.
fn body(block: &Armoured<'_>) -> Option<Vec<u8>> {
    let lines = &block.lines;
    let begin = lines.iter().position(|line| line.trim().is_empty()).map_or(0, |blank| blank + 1);
    let lines: Vec<&str> = lines.get(begin..)?.iter().copied().filter(|line| !line.starts_with('=')).collect();
    decoded(&lines)
}

/// Who of these signed, if somebody did. `moments`: when the key must have been valid.
pub(super) fn verify(
    certificates: &[Certificate],
    payload: &[u8],
    text: &str,
    moments: &[Timestamp],
) -> Result<SignedBy, SignatureError> {
    let blocks = armoured(text, SIGNATURE_LABEL).unwrap_or_default();
    let [block] = blocks.as_slice() else { return Err(SignatureError::Garbled("it is not one whole signature")) };
    let bytes = body(block).ok_or(SignatureError::Garbled("it is no base64"))?;
    let found = packets(&bytes).ok_or(SignatureError::Garbled("its packets can not be read"))?;
    let [packet] = found.as_slice() else {
        return Err(SignatureError::Unsupported("several OpenPGP signatures in one".to_owned()));
    };
    if packet.tag != tag::SIGNATURE {
        return Err(SignatureError::Garbled("it is no signature"));
    }
    let signature = Signature::parse(packet.body).map_err(|error| match error {
        Unlike::Garbled => SignatureError::Garbled("its fields are cut off"),
        Unlike::Version => SignatureError::Unsupported("an OpenPGP signature of another version than 4".to_owned()),
    })?;
    if signature.kind != BINARY {
        return Err(SignatureError::Unsupported("an OpenPGP signature that is not over bytes".to_owned()));
    }
    if signature.hash().is_none() {
        return Err(SignatureError::Unsupported("an OpenPGP signature without SHA-2".to_owned()));
    }
    let mut refused = None;
    for certificate in certificates {
        match certificate.signed(&signature, payload, moments) {
            Some(Ok(by)) => return Ok(by),
            Some(Err(error)) => refused = Some(error),
            None => {}
        }
    }
    Err(refused.unwrap_or_else(|| SignatureError::UnknownKey {
        key: certificate::issuer(packet.body).unwrap_or_else(|| "of OpenPGP".to_owned()),
    }))
}
