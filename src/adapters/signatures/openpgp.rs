//! Signatures that `gpg` makes, Git's default, and those by which forges sign the merges they make.
//!
//! The crate `pgp` reads armour and packets and does the arithmetic: of a signature it verifies that this key made it over this, and that
//! its type is the one that is asked for. Which of a key's signatures hold, what the key may do, from when and until when, and whether it
//! was revoked, it leaves to its caller (RFC 9580, 10.1): that is here. Keys and signatures of version 4 count, with RSA, ECDSA or Ed25519,
//! and SHA-2.
//!
//! The crate skips packets that end too early, and allocates no more than there is; what is read is bounded, and nothing is skipped but
//! what it does not know.

use std::io::Read;

use jiff::Timestamp;
use pgp::armor::Dearmor;
use pgp::composed::{Deserializable, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::errors::Error;
use pgp::packet::{
    Packet, PacketParser, PacketTrait, PublicKey, PublicSubkey, Signature, SignatureType, SignatureVersion,
    SubpacketType,
};
use pgp::ser::Serialize;
use pgp::types::{EcdsaPublicParams, EddsaLegacyPublicParams, KeyDetails, KeyVersion, PublicParams, Tag};

use super::armour::{Armoured, armoured};
use super::{SignatureError, SignedBy};

const SIGNATURE_LABEL: &str = "PGP SIGNATURE";
const KEY_LABEL: &str = "PGP PUBLIC KEY BLOCK";
/// Packets of one block: keys of hundreds of people, with all who signed them.
const PACKETS_MAX: usize = 100_000;
/// Keys of RSA with fewer sign nothing.
const RSA_BITS_MIN: u16 = 2048;

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

/// A key with what it says of itself: whose it is, which of its keys sign, until when, and what was revoked.
#[derive(Clone, Debug)]
pub(super) struct Certificate {
    /// Addresses of its user IDs, or all of a user ID that has none; and its fingerprint.
    names: Vec<String>,
    fingerprint: String,
    is_revoked: bool,
    /// Those that may sign.
    signers: Vec<Signer>,
}

#[derive(Clone, Debug)]
struct Signer {
    key: SignerKey,
    /// Seconds since 1970.
    created: i64,
    expires: Option<i64>,
    is_revoked: bool,
}

#[derive(Clone, Debug)]
enum SignerKey {
    Primary(PublicKey),
    Subkey(PublicSubkey),
}

/// The keys of an armoured file; of the first that can not be used the line where its block begins, and why.
pub(super) fn parse(text: &str) -> Result<Vec<Certificate>, (usize, KeyError)> {
    let blocks = armoured(text, KEY_LABEL).ok_or((1, KeyError::NoEnd))?;
    if blocks.is_empty() && !text.trim().is_empty() {
        return Err((1, KeyError::NotArmoured));
    }
    let mut certificates = Vec::new();
    for block in blocks {
        certificates.extend(keys(&block).map_err(|error| (block.line, error))?);
    }
    Ok(certificates)
}

fn keys(block: &Armoured<'_>) -> Result<Vec<Certificate>, KeyError> {
    let packets = body(block).and_then(|bytes| packets(&bytes)).ok_or(KeyError::Garbled)?;
    // Others say nothing here, and the crate would take one of them for the end of the key.
    let is_meant = |packet: &Packet| {
        matches!(packet.tag(), Tag::PublicKey | Tag::PublicSubkey | Tag::UserId | Tag::UserAttribute | Tag::Signature)
    };
    let packets = packets.into_iter().filter(is_meant).map(Ok);
    let keys: Result<Vec<SignedPublicKey>, Error> = SignedPublicKey::from_packets(packets.peekable()).collect();
    let keys = keys.map_err(|_| KeyError::Garbled)?;
    if keys.is_empty() {
        return Err(KeyError::NoKey);
    }
    keys.iter().map(Certificate::of).collect()
}

fn body(block: &Armoured<'_>) -> Option<Vec<u8>> {
    let text = block.whole();
    let mut bytes = Vec::new();
    Dearmor::new(text.as_bytes()).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// All packets; `None` where one can not be read. Each is asked for alone: the crate takes what is cut off for the end.
fn packets(mut bytes: &[u8]) -> Option<Vec<Packet>> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        match PacketParser::new(&mut bytes).next()? {
            Ok(_) if packets.len() >= PACKETS_MAX => return None,
            Ok(packet) => packets.push(packet),
            Err(error) if is_unknown(&error) => {}
            Err(_) => return None,
        }
    }
    Some(packets)
}

/// A kind or a version that the crate does not know, and that may be left out.
fn is_unknown(error: &Error) -> bool {
    match error {
        Error::Unsupported { .. } => true,
        Error::InvalidPacketContent { source } => matches!(**source, Error::Unsupported { .. }),
        _ => false,
    }
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
    let found = body(block).and_then(|bytes| packets(&bytes));
    let found = found.ok_or(SignatureError::Garbled("its packets can not be read"))?;
    let [packet] = found.as_slice() else {
        return Err(SignatureError::Unsupported("several OpenPGP signatures in one".to_owned()));
    };
    let Packet::Signature(signature) = packet else { return Err(SignatureError::Garbled("it is no signature")) };
    if signature.version() != SignatureVersion::V4 {
        return Err(SignatureError::Unsupported("an OpenPGP signature of another version than 4".to_owned()));
    }
    if signature.typ() != Some(SignatureType::Binary) {
        return Err(SignatureError::Unsupported("an OpenPGP signature that is not over bytes".to_owned()));
    }
    if !is_sha2(signature) {
        return Err(SignatureError::Unsupported("an OpenPGP signature without SHA-2".to_owned()));
    }
    let mut refused = None;
    for certificate in certificates {
        match certificate.signed(signature, payload, moments) {
            Some(Ok(by)) => return Ok(by),
            Some(Err(error)) => refused = Some(error),
            None => {}
        }
    }
    Err(refused.unwrap_or_else(|| SignatureError::UnknownKey {
        key: issuer(signature).unwrap_or_else(|| "of OpenPGP".to_owned()),
    }))
}

/// The key that a signature says it is by. Nobody vouches for that: it is for messages.
fn issuer(signature: &Signature) -> Option<String> {
    let fingerprint = signature.issuer_fingerprint().first().map(|fingerprint| format!("{fingerprint:X}"));
    fingerprint.or_else(|| signature.issuer_key_id().first().map(|id| id.to_string().to_uppercase()))
}

fn is_sha2(signature: &Signature) -> bool {
    matches!(signature.hash_alg(), Some(HashAlgorithm::Sha256 | HashAlgorithm::Sha384 | HashAlgorithm::Sha512))
}

/// Whether what it says may be believed, once it is verified. The crate refuses a critical field that it does not know; those it knows
/// and leaves to its caller nobody looks at here.
fn counts(signature: &Signature) -> bool {
    let is_beyond = |kind: SubpacketType| {
        matches!(
            kind,
            SubpacketType::Notation
                | SubpacketType::IntendedRecipientFingerprint
                | SubpacketType::Experimental(_)
                | SubpacketType::Other(_)
        )
    };
    signature.version() == SignatureVersion::V4
        && is_sha2(signature)
        && signature
            .config()
            .is_some_and(|config| !config.hashed_subpackets().any(|field| field.is_critical && is_beyond(field.typ())))
}

/// Whether the key is of a kind that signs here.
fn is_supported(key: &impl KeyDetails) -> bool {
    key.version() == KeyVersion::V4
        && match key.public_params() {
            PublicParams::RSA(rsa) => {
                let bits = rsa.to_bytes().ok().and_then(|bytes| bytes.first_chunk().copied());
                bits.is_some_and(|bits| u16::from_be_bytes(bits) >= RSA_BITS_MIN)
            }
            PublicParams::ECDSA(ecdsa) => matches!(
                ecdsa,
                EcdsaPublicParams::P256 { .. } | EcdsaPublicParams::P384 { .. } | EcdsaPublicParams::P521 { .. }
            ),
            PublicParams::EdDSALegacy(EddsaLegacyPublicParams::Ed25519 { .. }) | PublicParams::Ed25519(_) => true,
            _ => false,
        }
}

/// The newest of those that hold.
fn newest(signatures: &[Signature], holds: impl Fn(&Signature) -> bool) -> Option<&Signature> {
    signatures.iter().filter(|it| counts(it) && holds(it)).max_by_key(|it| it.created())
}

/// One that can not be checked counts as well: who says so is the operator, whose file this is.
fn is_revoked(signatures: &[Signature], kind: SignatureType, holds: impl Fn(&Signature) -> bool) -> bool {
    signatures.iter().any(|it| it.typ() == Some(kind) && (!is_sha2(it) || holds(it)))
}

impl Certificate {
    fn of(key: &SignedPublicKey) -> Result<Self, KeyError> {
        let (primary, details) = (&key.primary_key, &key.details);
        let fingerprint = format!("{:X}", primary.fingerprint());
        if !is_supported(primary) {
            return Err(KeyError::Unsupported(fingerprint));
        }
        let of_key = |it: &Signature| it.verify_key(primary).is_ok();
        let is_direct = |it: &Signature| it.typ() == Some(SignatureType::Key) && of_key(it);
        let mut says: Vec<&Signature> = newest(&details.direct_signatures, is_direct).into_iter().collect();
        let is_key_revoked = is_revoked(&details.revocation_signatures, SignatureType::KeyRevocation, of_key);
        let mut names = Vec::new();
        for user in &details.users {
            let revocation = SignatureType::CertRevocation;
            let of_name = |it: &Signature| it.verify_certification(primary, Tag::UserId, &user.id).is_ok();
            let own = newest(&user.signatures, |it| it.typ() != Some(revocation) && of_name(it));
            if let Some(signature) = own.filter(|_| !is_revoked(&user.signatures, revocation, of_name)) {
                names.push(name(user.id.id()));
                says.push(signature);
            }
        }
        // A name that was revoked is one that was signed; a key without names may say what it is directly.
        let Some(newest) = says.iter().max_by_key(|it| it.created()) else {
            return Err(KeyError::NoSelfSignature(fingerprint));
        };
        let mut signers = Vec::new();
        let expires = expiry(primary, newest);
        // A key that does not say what it may do may do all.
        if newest.key_flags().sign() || !says_what_it_may(newest) {
            let (key, created) = (SignerKey::Primary(primary.clone()), seconds(primary));
            signers.push(Signer { key, created, expires, is_revoked: is_key_revoked });
        }
        // A subkey does not outlive its key.
        signers.extend(key.public_subkeys.iter().filter_map(|subkey| Signer::of_subkey(subkey, primary, expires)));
        names.push(fingerprint.clone());
        Ok(Self { names, fingerprint, is_revoked: is_key_revoked, signers })
    }

    /// `None`: none of its keys made the signature.
    fn signed(
        &self,
        signature: &Signature,
        payload: &[u8],
        moments: &[Timestamp],
    ) -> Option<Result<SignedBy, SignatureError>> {
        let signer = self.signers.iter().find(|signer| signer.key.has_signed(signature, payload))?;
        let by = SignedBy { names: self.names.clone(), key: self.fingerprint.clone() };
        let Some(signed_at) = signature.created().map(|at| i64::from(at.as_secs())) else {
            return Some(Err(SignatureError::Garbled("it does not say when it was made")));
        };
        if self.is_revoked || signer.is_revoked {
            return Some(Err(SignatureError::Revoked { by }));
        }
        let mut all: Vec<i64> = moments.iter().map(|moment| moment.as_second()).collect();
        all.push(signed_at);
        if all.iter().any(|at| *at < signer.created) {
            return Some(Err(SignatureError::NotYetValid { by, from: moment(signer.created) }));
        }
        let of_signature = signature.signature_expiration_time().and_then(|it| after(signed_at, it.as_secs()));
        if let Some(until) = signer.expires.into_iter().chain(of_signature).min()
            && all.iter().any(|at| *at >= until)
        {
            return Some(Err(SignatureError::Expired { by, until: moment(until) }));
        }
        Some(Ok(by))
    }
}

impl Signer {
    /// A subkey counts that its key signed, to sign with, and that signed its key: else anybody could take it for theirs.
    fn of_subkey(subkey: &SignedPublicSubKey, primary: &PublicKey, until: Option<i64>) -> Option<Self> {
        let key = &subkey.key;
        let of_subkey = |it: &Signature| it.verify_subkey_binding(primary, key).is_ok();
        let is_binding = |it: &Signature| it.typ() == Some(SignatureType::SubkeyBinding) && of_subkey(it);
        let binding = newest(&subkey.signatures, is_binding)?;
        let back = binding.embedded_signature()?;
        let is_bound_back = counts(back) && back.verify_primary_key_binding(key, primary).is_ok();
        if !is_supported(key) || !binding.key_flags().sign() || !is_bound_back {
            return None;
        }
        Some(Self {
            key: SignerKey::Subkey(key.clone()),
            created: seconds(key),
            expires: expiry(key, binding).into_iter().chain(until).min(),
            is_revoked: is_revoked(&subkey.signatures, SignatureType::SubkeyRevocation, of_subkey),
        })
    }
}

impl SignerKey {
    fn has_signed(&self, signature: &Signature, payload: &[u8]) -> bool {
        let verified = match self {
            Self::Primary(key) => signature.verify(key, payload),
            Self::Subkey(key) => signature.verify(key, payload),
        };
        counts(signature) && verified.is_ok()
    }
}

fn says_what_it_may(signature: &Signature) -> bool {
    signature.config().is_some_and(|config| config.hashed_subpackets().any(|it| it.typ() == SubpacketType::KeyFlags))
}

fn seconds(key: &impl KeyDetails) -> i64 {
    i64::from(key.created_at().as_secs())
}

fn expiry(key: &impl KeyDetails, signature: &Signature) -> Option<i64> {
    signature.key_expiration_time().and_then(|it| after(seconds(key), it.as_secs()))
}

/// Nothing ends after no time.
fn after(begin: i64, seconds: u32) -> Option<i64> {
    (seconds != 0).then(|| begin.saturating_add(i64::from(seconds)))
}

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// The address of `Ada Lovelace <ada@example.com>`, or all of it.
fn name(id: &[u8]) -> String {
    let id = String::from_utf8_lossy(id);
    let address = id.rsplit_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
    address.unwrap_or(&id).trim().to_owned()
}
