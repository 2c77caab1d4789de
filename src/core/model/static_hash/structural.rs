//! Hashes over values as the Go library `hashstructure` computes them (format 2; slices as sets, zero values ignored, nil
//! as zero), with its peculiarities: FNV-1, not FNV-1a; a struct is hardened again after every field, so the order of its
//! fields counts though each is mixed in without order; sets are not hardened, so two equal elements cancel out.

/// The name of a field in Go, and the hash of its value; `None` for a zero value, which is left out.
pub(super) type Field<'a> = (&'a str, Option<u64>);

pub(super) fn text(value: &str) -> u64 {
    bytes(value.as_bytes())
}

/// FNV-1, 64 bits.
pub(super) fn bytes(value: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    value.iter().fold(OFFSET_BASIS, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

pub(super) fn integer(value: i64) -> u64 {
    bytes(&value.to_le_bytes())
}

pub(super) fn integer32(value: i32) -> u64 {
    bytes(&value.to_le_bytes())
}

pub(super) fn boolean(value: bool) -> u64 {
    bytes(&[u8::from(value)])
}

/// Entries are pairs of hashes.
pub(super) fn map(entries: impl Iterator<Item = (u64, u64)>) -> u64 {
    harden(entries.fold(0, |hash, (key, value)| hash ^ ordered(key, value)))
}

pub(super) fn set(elements: impl Iterator<Item = u64>) -> u64 {
    elements.fold(0, |hash, element| hash ^ element)
}

/// A list at the root is a set as well.
pub(super) fn list<const COUNT: usize>(elements: [u64; COUNT]) -> u64 {
    set(elements.into_iter())
}

/// `fields` in the order of the Go type, without those that it marks as ignored.
pub(super) fn structure<'a>(name: &str, fields: impl IntoIterator<Item = Field<'a>>) -> u64 {
    fields.into_iter().fold(text(name), |hash, (field, value)| match value {
        Some(value) => harden(hash ^ ordered(text(field), value)),
        None => hash,
    })
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut both = [0; 16];
    let (left, right) = both.split_at_mut(8);
    left.copy_from_slice(&first.to_le_bytes());
    right.copy_from_slice(&second.to_le_bytes());
    bytes(&both)
}

fn harden(hash: u64) -> u64 {
    bytes(&hash.to_le_bytes())
}
