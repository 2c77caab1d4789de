//! Packets of OpenPGP, as RFC 9580 has them. Only those with a length of their own: no signature and no key needs another form.

use crate::adapters::signatures::crypto::{Curve, Hash, PublicKey};
use crate::adapters::signatures::wire::{Bytes, padded};

/// Bytes of one packet. A key with a photograph has some ten thousand.
const PACKET_BYTES_MAX: usize = 256 << 10;
/// Packets of one file: keys of hundreds of people, with all who signed them.
const PACKETS_MAX: usize = 100_000;

/// What packets hold that are looked at.
pub(super) mod tag {
    pub const SIGNATURE: u8 = 2;
    pub const PUBLIC_KEY: u8 = 6;
    pub const USER_ID: u8 = 13;
    pub const PUBLIC_SUBKEY: u8 = 14;
}

pub(super) struct Packet<'a> {
    pub tag: u8,
    pub body: &'a [u8],
}

/// All packets; `None` where one can not be read.
pub(super) fn packets(bytes: &[u8]) -> Option<Vec<Packet<'_>>> {
    let mut bytes = Bytes(bytes);
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let first = bytes.byte()?;
        let (tag, length) = if first & 0xc0 == 0xc0 {
            (first & 0x3f, new_length(&mut bytes)?)
        } else if first & 0x80 == 0x80 {
            let length = match first & 3 {
                0 => usize::from(bytes.byte()?),
                1 => bytes.two()?,
                2 => usize::try_from(bytes.four()?).ok()?,
                _ => return None,
            };
            ((first >> 2) & 0xf, length)
        } else {
            return None;
        };
        if length > PACKET_BYTES_MAX || packets.len() >= PACKETS_MAX {
            return None;
        }
        packets.push(Packet { tag, body: bytes.take(length)? });
    }
    Some(packets)
}

fn new_length(bytes: &mut Bytes<'_>) -> Option<usize> {
    let first = usize::from(bytes.byte()?);
    match first {
        0..192 => Some(first),
        192..224 => Some(((first - 192) << 8) + usize::from(bytes.byte()?) + 192),
        255 => usize::try_from(bytes.four()?).ok(),
        _ => None,
    }
}

/// A number that says itself how many bits it has.
fn number<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let bits = bytes.two()?;
    bytes.take(bits.div_ceil(8))
}

/// A key of version 4, whatever it can do.
#[derive(Clone, Debug)]
pub(super) struct Key {
    body: Vec<u8>,
    pub created: u32,
    algorithm: u8,
    /// `None`: it signs nothing that is looked at, as a key to encrypt with.
    pub public: Option<PublicKey>,
}

impl Key {
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(body);
        if bytes.byte()? != 4 {
            return None;
        }
        let (created, algorithm) = (bytes.four()?, bytes.byte()?);
        let public = match algorithm {
            1 | 3 => {
                let (modulus, exponent) = (number(&mut bytes)?.to_vec(), number(&mut bytes)?.to_vec());
                Some(PublicKey::Rsa { modulus, exponent })
            }
            19 => {
                let count = usize::from(bytes.byte()?);
                let curve = match bytes.take(count)? {
                    [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07] => Some(Curve::P256),
                    [0x2b, 0x81, 0x04, 0x00, 0x22] => Some(Curve::P384),
                    [0x2b, 0x81, 0x04, 0x00, 0x23] => Some(Curve::P521),
                    _ => None,
                };
                let point = number(&mut bytes)?.to_vec();
                curve.map(|curve| PublicKey::Ecdsa(curve, point))
            }
            22 => {
                let count = usize::from(bytes.byte()?);
                let is_ed25519 = bytes.take(count)? == [0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
                let point = number(&mut bytes)?.strip_prefix(&[0x40]);
                point.filter(|_| is_ed25519).map(|point| PublicKey::Ed25519(point.to_vec()))
            }
            27 => Some(PublicKey::Ed25519(bytes.take(32)?.to_vec())),
            _ => None,
        };
        Some(Self { body: body.to_vec(), created, algorithm, public })
    }

    /// What is hashed of it.
    pub fn hashed(&self) -> Vec<u8> {
        let length = u16::try_from(self.body.len()).unwrap_or(u16::MAX);
        let mut hashed = vec![0x99];
        hashed.extend(length.to_be_bytes());
        hashed.extend(&self.body);
        hashed
    }
}

/// A signature of version 4.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub kind: u8,
    algorithm: u8,
    hash: u8,
    /// From the version on, with what ends it: it is hashed behind the data.
    trailer: Vec<u8>,
    pub fields: Fields,
    numbers: Vec<u8>,
}

/// What a signature says of itself, as far as it counts here.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub created: Option<u32>,
    /// Seconds after `created`; 0: never.
    pub expires_after: u32,
    /// Seconds after the creation of the key that is signed; 0: never.
    pub key_expires_after: u32,
    pub key_flags: Option<u8>,
    /// A signature by the subkey itself.
    pub embedded: Option<Vec<u8>>,
    /// There is something without which it may not be understood, and it is not known here.
    pub is_beyond: bool,
}

/// Why a signature says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unlike {
    Garbled,
    Version,
}

impl Signature {
    pub fn parse(body: &[u8]) -> Result<Self, Unlike> {
        if body.first() != Some(&4) {
            return Err(Unlike::Version);
        }
        Self::parse_version_4(body).ok_or(Unlike::Garbled)
    }

    fn parse_version_4(body: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(body);
        let (_version, kind, algorithm, hash) = (bytes.byte()?, bytes.byte()?, bytes.byte()?, bytes.byte()?);
        let count = bytes.two()?;
        let hashed = bytes.take(count)?;
        let count_unhashed = bytes.two()?;
        let unhashed = bytes.take(count_unhashed)?;
        let _first_of_hash = bytes.two()?;
        let mut fields = Fields::default();
        fields.read(hashed, true)?;
        fields.read(unhashed, false)?;
        let mut trailer = body.get(..6 + count)?.to_vec();
        let length = u32::try_from(trailer.len()).ok()?;
        trailer.extend([4, 0xff]);
        trailer.extend(length.to_be_bytes());
        Some(Self { kind, algorithm, hash, trailer, fields, numbers: bytes.0.to_vec() })
    }

    /// The name of its hash, where it is one that counts.
    pub fn hash(&self) -> Option<Hash> {
        match self.hash {
            8 => Some(Hash::Sha256),
            9 => Some(Hash::Sha384),
            10 => Some(Hash::Sha512),
            _ => None,
        }
    }

    /// Whether the key signed this data so.
    pub fn is_by(&self, key: &Key, data: &[u8]) -> bool {
        let Some((hash, public)) = self.hash().zip(key.public.as_ref()) else { return false };
        let is_same_kind = self.algorithm == key.algorithm || matches!((self.algorithm, key.algorithm), (1 | 3, 1 | 3));
        if !is_same_kind || self.fields.is_beyond {
            return false;
        }
        let mut signed = data.to_vec();
        signed.extend(&self.trailer);
        let mut numbers = Bytes(&self.numbers);
        match public {
            PublicKey::Rsa { .. } => {
                number(&mut numbers).is_some_and(|number| public.signed_with_rsa(hash, &signed, number))
            }
            PublicKey::Ecdsa(curve, _) if curve.hash() == hash => {
                let both = number(&mut numbers).zip(number(&mut numbers));
                both.is_some_and(|both| public.signed_with_ecdsa(&signed, both))
            }
            PublicKey::Ecdsa(..) => false,
            PublicKey::Ed25519(_) => {
                let signature =
                    if self.algorithm == 27 { numbers.take(64).map(<[u8]>::to_vec) } else { both_halves(numbers) };
                signature.is_some_and(|signature| public.signed_with_ed25519(&hash.of(&signed), &signature))
            }
        }
    }
}

/// Two numbers of 32 bytes.
fn both_halves(mut numbers: Bytes<'_>) -> Option<Vec<u8>> {
    let (r, s) = (number(&mut numbers)?, number(&mut numbers)?);
    let mut both = padded(r, 32)?;
    both.extend(padded(s, 32)?);
    Some(both)
}

impl Fields {
    /// What is not hashed anybody may have written: of it only a signature that proves itself counts.
    fn read(&mut self, area: &[u8], is_hashed: bool) -> Option<()> {
        let mut bytes = Bytes(area);
        while !bytes.is_empty() {
            let first = usize::from(bytes.byte()?);
            let length = match first {
                0..192 => first,
                192..255 => ((first - 192) << 8) + usize::from(bytes.byte()?) + 192,
                _ => usize::try_from(bytes.four()?).ok()?,
            };
            let mut field = Bytes(bytes.take(length)?);
            let kind = field.byte()?;
            match kind & 0x7f {
                32 => self.embedded = Some(field.0.to_vec()),
                _ if !is_hashed => {}
                2 => self.created = Some(field.four()?),
                3 => self.expires_after = field.four()?,
                9 => self.key_expires_after = field.four()?,
                27 => self.key_flags = Some(field.byte().unwrap_or_default()),
                // Said of keys and people, and of no matter here.
                4..=7 | 11 | 12 | 16 | 21..=31 | 33 | 34 => {}
                _ => self.is_beyond |= kind & 0x80 != 0,
            }
        }
        Some(())
    }
}
