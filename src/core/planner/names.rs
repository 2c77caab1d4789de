//! Names of nodes to come: the pool and five characters, as the API server would make them, but the same each time.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// The characters that Kubernetes uses for generated names: no vowels, nothing that looks like something else.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// A name may have 63 characters, since it is also a label value.
const PREFIX_LENGTH_MAX: usize = 63 - SUFFIX_LENGTH - 1;

/// Makes names that no claim or node has.
pub struct Names {
    taken: BTreeSet<String>,
    seed: u64,
}

impl Names {
    pub fn new<'a>(taken: impl Iterator<Item = &'a str>, seed: u64) -> Self {
        Self { taken: taken.map(str::to_owned).collect(), seed }
    }

    /// A name for a node of the pool that is created for these pods.
    pub fn node_claim(&mut self, pool: &str, pods: &[String]) -> String {
        let prefix: String = pool.chars().take(PREFIX_LENGTH_MAX).collect();
        let mut attempt: u64 = 0;
        loop {
            let mut hash = Sha256::new();
            hash.update(self.seed.to_le_bytes());
            hash.update(attempt.to_le_bytes());
            hash.update(pool);
            for pod in pods {
                hash.update(pod);
                hash.update([0]);
            }
            let digest = hash.finalize();
            let suffix: String = digest
                .iter()
                .take(SUFFIX_LENGTH)
                .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
                .collect();
            let name = format!("{prefix}-{suffix}");
            if self.taken.insert(name.clone()) {
                return name;
            }
            attempt += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_each_time_and_never_taken() {
        let pods = ["shop/web-1".to_owned()];
        let first = Names::new(std::iter::empty(), 7).node_claim("default", &pods);
        assert_eq!(Names::new(std::iter::empty(), 7).node_claim("default", &pods), first);
        let second = Names::new(std::iter::once(first.as_str()), 7).node_claim("default", &pods);
        assert_ne!(first, second);
        assert_eq!(Names::new(std::iter::empty(), 7).node_claim(&"p".repeat(80), &pods).len(), 63);
    }
}
