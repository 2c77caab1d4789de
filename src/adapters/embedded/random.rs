//! Choices from a seed, independent of each other: one more object somewhere does not shift the names of all others.

/// Letters and digits that Kubernetes uses in generated names: no vowels, so that no words appear.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A stream of numbers for one purpose and one name.
pub struct Random(u64);

impl Random {
    /// The stream for `purpose` (such as `pod`) and `name`; the same three give the same numbers.
    pub fn new(seed: u64, purpose: &str, name: &str) -> Self {
        // FNV-1a over the parts, then SplitMix64 below spreads the bits.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in purpose.bytes().chain([0]).chain(name.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(hash)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high.saturating_sub(low) + 1)
    }

    /// `length` characters as Kubernetes appends them to generated names.
    pub fn suffix(&mut self, length: usize) -> String {
        let mut pick = || NAME_ALPHABET.get(usize::try_from(self.next() % 27).unwrap_or(0)).copied().unwrap_or(b'x');
        (0..length).map(|_| char::from(pick())).collect()
    }

    /// `length` hexadecimal digits.
    pub fn hexadecimal(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from_digit(u32::try_from(self.next() % 16).unwrap_or(0), 16).unwrap_or('0')).collect()
    }

    /// In the form of a UID.
    pub fn uid(&mut self) -> String {
        let mut part = |length| self.hexadecimal(length);
        format!("{}-{}-4{}-8{}-{}", part(8), part(4), part(3), part(3), part(12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_are_independent() {
        let name = |seed, purpose, name| Random::new(seed, purpose, name).suffix(5);
        assert_eq!(name(0, "pod", "inflate"), name(0, "pod", "inflate"));
        assert_ne!(name(0, "pod", "inflate"), name(1, "pod", "inflate"));
        assert_ne!(name(0, "pod", "inflate"), name(0, "pod", "inflatf"));
        assert_eq!(Random::new(0, "object", "a").uid().len(), 36);
    }
}
