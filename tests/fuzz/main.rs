//! The corpus of the fuzzer, and pieces of it, as a test. How to run the fuzzer itself: `.github/CONTRIBUTING.md`.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the corpus is in files")]

mod targets;

use std::path::Path;

/// Every file of a corpus whole, and cut where a reader may stumble.
#[test]
fn no_input_of_the_corpus_breaks_its_target() {
    for (name, target) in targets::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} has nothing", folder.display());
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            target(&bytes);
            for part in 1..8 {
                target(&bytes[..bytes.len() * part / 8]);
                target(&bytes[bytes.len() * part / 8..]);
            }
        }
    }
}

/// A target that the fuzzer does not know would never be fuzzed.
#[test]
fn every_target_can_be_fuzzed() {
    let manifest = include_str!("Cargo.toml");
    for (name, _) in targets::ALL {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is missing in tests/fuzz/Cargo.toml");
    }
}
