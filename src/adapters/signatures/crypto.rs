//! Public keys of either form, and what they sign. The arithmetic is that of aws-lc.

use aws_lc_rs::digest;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};

use super::wire::{padded, trimmed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub fn of(self, data: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, data).as_ref().to_vec()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// Bytes of a coordinate.
    pub fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// The hash that goes with it.
    pub fn hash(self) -> Hash {
        match self {
            Self::P256 => Hash::Sha256,
            Self::P384 => Hash::Sha384,
            Self::P521 => Hash::Sha512,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    Ed25519(Vec<u8>),
    /// The point, not compressed.
    Ecdsa(Curve, Vec<u8>),
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
}

impl PublicKey {
    /// Whether the two numbers of a signature by ECDSA are of this data.
    pub fn signed_with_ecdsa(&self, data: &[u8], (r, s): (&[u8], &[u8])) -> bool {
        let Self::Ecdsa(curve, point) = self else { return false };
        let algorithm: &dyn VerificationAlgorithm = match curve {
            Curve::P256 => &ECDSA_P256_SHA256_FIXED,
            Curve::P384 => &ECDSA_P384_SHA384_FIXED,
            Curve::P521 => &ECDSA_P521_SHA512_FIXED,
        };
        let (Some(mut both), Some(s)) = (padded(r, curve.size()), padded(s, curve.size())) else { return false };
        both.extend(s);
        UnparsedPublicKey::new(algorithm, point).verify(data, &both).is_ok()
    }

    pub fn signed_with_ed25519(&self, data: &[u8], signature: &[u8]) -> bool {
        matches!(self, Self::Ed25519(key) if UnparsedPublicKey::new(&ED25519, key).verify(data, signature).is_ok())
    }

    /// Keys of fewer than 2048 bits sign nothing.
    pub fn signed_with_rsa(&self, hash: Hash, data: &[u8], signature: &[u8]) -> bool {
        let Self::Rsa { modulus, exponent } = self else { return false };
        let (n, e) = (trimmed(modulus), trimmed(exponent));
        let parameters = match hash {
            Hash::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
            Hash::Sha384 => &RSA_PKCS1_2048_8192_SHA384,
            Hash::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
        };
        let Some(signature) = padded(signature, n.len()) else { return false };
        RsaPublicKeyComponents { n, e }.verify(parameters, data, &signature).is_ok()
    }
}
