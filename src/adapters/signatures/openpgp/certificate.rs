//! A key of OpenPGP with what it says of itself: whose it is, which of its keys sign, until when, and what was revoked.

use std::fmt::Write;

use aws_lc_rs::digest;
use jiff::Timestamp;

use super::packets::{Key, Packet, Signature, tag};
use crate::adapters::signatures::wire::Bytes;
use crate::adapters::signatures::{SignatureError, SignedBy};

/// Why a file of keys can not be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    #[error("a block has no end")]
    NoEnd,
    #[error("this is no armoured key: `gpg --armor --export` writes one")]
    NotArmoured,
    #[error("the block can not be read")]
    Garbled,
    #[error("the block holds no public key")]
    NoKey,
    #[error("key {0} is none of RSA, ECDSA (P-256, P-384, P-521) and Ed25519 of version 4")]
    Unsupported(String),
    #[error("key {0} has no name that it signed itself with SHA-2: `gpg --quick-set-expire` signs it anew")]
    NoSelfSignature(String),
}

/// Flag of a key: it may sign data.
const MAY_SIGN: u8 = 2;

mod kind {
    pub const CERTIFICATIONS: std::ops::RangeInclusive<u8> = 0x10..=0x13;
    pub const SUBKEY_BINDING: u8 = 0x18;
    pub const PRIMARY_BINDING: u8 = 0x19;
    pub const DIRECT: u8 = 0x1f;
    pub const KEY_REVOCATION: u8 = 0x20;
    pub const SUBKEY_REVOCATION: u8 = 0x28;
    pub const CERTIFICATION_REVOCATION: u8 = 0x30;
}

#[derive(Clone, Debug)]
pub(in crate::adapters::signatures) struct Certificate {
    /// Addresses of its user IDs, or all of a user ID that has none; and its fingerprint.
    names: Vec<String>,
    fingerprint: String,
    is_revoked: bool,
    /// Those that may sign.
    signers: Vec<Signer>,
}

#[derive(Clone, Debug)]
struct Signer {
    key: Key,
    /// Seconds since 1970.
    expires: Option<i64>,
    is_revoked: bool,
}

/// All keys of a block.
pub(super) fn all(packets: &[Packet<'_>]) -> Result<Vec<Certificate>, KeyError> {
    let starts: Vec<usize> =
        packets.iter().enumerate().filter(|(_, packet)| packet.tag == tag::PUBLIC_KEY).map(|(at, _)| at).collect();
    if starts.is_empty() {
        return Err(KeyError::NoKey);
    }
    let ends = starts.iter().skip(1).copied().chain([packets.len()]);
    starts.iter().zip(ends).map(|(start, end)| Certificate::of(packets.get(*start..end).unwrap_or_default())).collect()
}

/// A packet, and the signatures behind it.
struct Part<'p> {
    tag: u8,
    body: &'p [u8],
    signatures: Vec<Signature>,
}

fn parts<'p>(packets: &'p [Packet<'_>]) -> Vec<Part<'p>> {
    let mut parts: Vec<Part<'p>> = Vec::new();
    for packet in packets {
        if packet.tag != tag::SIGNATURE {
            parts.push(Part { tag: packet.tag, body: packet.body, signatures: Vec::new() });
        } else if let Some(part) = parts.last_mut()
            // Of others, of old versions: they say nothing here.
            && let Ok(signature) = Signature::parse(packet.body)
        {
            part.signatures.push(signature);
        }
    }
    parts
}

impl Part<'_> {
    /// The newest of these that the key signed itself.
    fn newest(&self, key: &Key, data: &[u8], is_meant: impl Fn(u8) -> bool) -> Option<&Signature> {
        let own = self.signatures.iter().filter(|it| is_meant(it.kind) && it.is_by(key, data));
        own.max_by_key(|it| it.fields.created)
    }

    /// One that can not be checked counts as well: who says so is the operator, whose file this is.
    fn is_revoked(&self, key: &Key, data: &[u8], kind: u8) -> bool {
        let mut revocations = self.signatures.iter().filter(|it| it.kind == kind);
        revocations.any(|it| it.hash().is_none() || it.is_by(key, data))
    }
}

impl Certificate {
    fn of(packets: &[Packet<'_>]) -> Result<Self, KeyError> {
        let parts = parts(packets);
        let Some((first, rest)) = parts.split_first() else { return Err(KeyError::NoKey) };
        let primary = Key::parse(first.body).ok_or(KeyError::Garbled)?;
        let fingerprint = fingerprint(&primary);
        if primary.public.is_none() {
            return Err(KeyError::Unsupported(fingerprint));
        }
        let hashed = primary.hashed();
        let mut says: Vec<&Signature> =
            first.newest(&primary, &hashed, |kind| kind == kind::DIRECT).into_iter().collect();
        let is_revoked = first.is_revoked(&primary, &hashed, kind::KEY_REVOCATION);
        let mut names = Vec::new();
        for part in rest.iter().filter(|part| part.tag == tag::USER_ID) {
            let data = with_user_id(&hashed, part.body);
            let of_name = part.newest(&primary, &data, |kind| kind::CERTIFICATIONS.contains(&kind));
            let is_gone = part.is_revoked(&primary, &data, kind::CERTIFICATION_REVOCATION);
            if let Some(signature) = of_name.filter(|_| !is_gone) {
                names.push(name(part.body));
                says.push(signature);
            }
        }
        // A name that was revoked is one that was signed; a key without names may say what it is directly.
        let Some(newest) = says.iter().max_by_key(|it| it.fields.created) else {
            return Err(KeyError::NoSelfSignature(fingerprint));
        };
        let mut signers = Vec::new();
        if newest.fields.key_flags.is_none_or(|flags| flags & MAY_SIGN != 0) {
            let expires = expiry(&primary, newest);
            signers.push(Signer { key: primary.clone(), expires, is_revoked });
        }
        let subkeys = rest.iter().filter(|part| part.tag == tag::PUBLIC_SUBKEY);
        // A subkey does not outlive its key.
        let until = expiry(&primary, newest);
        signers.extend(subkeys.filter_map(|part| Signer::of_subkey(part, &primary, until)));
        names.push(fingerprint.clone());
        Ok(Self { names, fingerprint, is_revoked, signers })
    }

    /// `None`: none of its keys made the signature.
    pub(super) fn signed(
        &self,
        signature: &Signature,
        payload: &[u8],
        moments: &[Timestamp],
    ) -> Option<Result<SignedBy, SignatureError>> {
        let signer = self.signers.iter().find(|signer| signature.is_by(&signer.key, payload))?;
        let by = SignedBy { names: self.names.clone(), key: self.fingerprint.clone() };
        let Some(signed_at) = signature.fields.created else {
            return Some(Err(SignatureError::Garbled("it does not say when it was made")));
        };
        if self.is_revoked || signer.is_revoked {
            return Some(Err(SignatureError::Revoked { by }));
        }
        let (signed_at, created) = (i64::from(signed_at), i64::from(signer.key.created));
        let mut all: Vec<i64> = moments.iter().map(|moment| moment.as_second()).collect();
        all.push(signed_at);
        if all.iter().any(|at| *at < created) {
            return Some(Err(SignatureError::NotYetValid { by, from: moment(created) }));
        }
        let expires = signer.expires.into_iter();
        let signature_expires = after(signed_at, signature.fields.expires_after);
        if let Some(until) = expires.chain(signature_expires).min()
            && all.iter().any(|at| *at >= until)
        {
            return Some(Err(SignatureError::Expired { by, until: moment(until) }));
        }
        Some(Ok(by))
    }
}

impl Signer {
    /// A subkey counts that its key signed, to sign with, and that signed its key: else anybody could take it for theirs.
    fn of_subkey(part: &Part<'_>, primary: &Key, until: Option<i64>) -> Option<Self> {
        let key = Key::parse(part.body).filter(|key| key.public.is_some())?;
        let mut data = primary.hashed();
        data.extend(key.hashed());
        let binding = part.newest(primary, &data, |kind| kind == kind::SUBKEY_BINDING)?;
        let signs = binding.fields.key_flags.is_some_and(|flags| flags & MAY_SIGN != 0);
        let back = Signature::parse(binding.fields.embedded.as_deref()?).ok()?;
        if !signs || back.kind != kind::PRIMARY_BINDING || !back.is_by(&key, &data) {
            return None;
        }
        let is_revoked = part.is_revoked(primary, &data, kind::SUBKEY_REVOCATION);
        let expires = expiry(&key, binding).into_iter().chain(until).min();
        Some(Self { key, expires, is_revoked })
    }
}

fn expiry(key: &Key, signature: &Signature) -> Option<i64> {
    after(i64::from(key.created), signature.fields.key_expires_after)
}

fn after(begin: i64, seconds: u32) -> Option<i64> {
    (seconds != 0).then(|| begin.saturating_add(i64::from(seconds)))
}

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

fn with_user_id(key: &[u8], id: &[u8]) -> Vec<u8> {
    let mut data = key.to_vec();
    data.push(0xb4);
    data.extend(u32::try_from(id.len()).unwrap_or(u32::MAX).to_be_bytes());
    data.extend(id);
    data
}

/// The address of `Ada Lovelace <ada@example.com>`, or all of it.
fn name(id: &[u8]) -> String {
    let id = String::from_utf8_lossy(id);
    let address = id.rsplit_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
    address.unwrap_or(&id).trim().to_owned()
}

/// Version 4 has no other than this, of the whole key.
fn fingerprint(key: &Key) -> String {
    hexadecimal(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &key.hashed()).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can not fail.
        let _infallible = write!(text, "{byte:02X}");
        text
    })
}

/// The key that a signature says it is by. Nobody vouches for that: it is for messages.
pub(super) fn issuer(signature: &[u8]) -> Option<String> {
    let mut bytes = Bytes(signature);
    bytes.take(4)?;
    let count = bytes.two()?;
    let hashed = bytes.take(count)?;
    let count = bytes.two()?;
    let unhashed = bytes.take(count)?;
    let field = |area: &[u8], kind: u8, skipped: usize| {
        let mut bytes = Bytes(area);
        while !bytes.is_empty() {
            let length = usize::from(bytes.byte()?);
            let field = bytes.take(length)?;
            if field.first() == Some(&kind) {
                return field.get(skipped..).map(hexadecimal);
            }
        }
        None
    };
    let (by_fingerprint, by_id) = (|area| field(area, 33, 2), |area| field(area, 16, 1));
    by_fingerprint(hashed).or_else(|| by_fingerprint(unhashed)).or_else(|| by_id(hashed)).or_else(|| by_id(unhashed))
}
