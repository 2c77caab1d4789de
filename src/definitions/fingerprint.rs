//! What a finding is called from one run to the next, so that a baseline and a forge know it again when its line has moved.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::diagnostic::Diagnostic;

/// Bytes of the hash that are shown: enough that no two of a million findings share one.
const SHOWN: usize = 16;

/// Gives each diagnostic its fingerprint: over the code, the file, the object and the text of the line, with how many of the same there
/// were before. `source` gives the text of a file by the path in the findings, and `known_as` the path that counts. Nothing in it counts
/// lines.
pub fn assign<'d, 's>(
    diagnostics: impl Iterator<Item = &'d mut Diagnostic>,
    source: impl Fn(&str) -> Option<&'s str>,
    mut known_as: impl FnMut(&str) -> String,
) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for diagnostic in diagnostics {
        let line = source(&diagnostic.file).map(|text| line_at(text, diagnostic.span.start_byte)).unwrap_or_default();
        let object = diagnostic.object.as_deref().unwrap_or_default();
        let file = known_as(&diagnostic.file);
        let file = file.strip_prefix("./").unwrap_or(&file);
        let base = hash(&[&diagnostic.code, file, object, &line]);
        let before = seen.entry(base.clone()).or_default();
        diagnostic.fingerprint = if *before == 0 { base } else { hash(&[&base, &before.to_string()]) };
        *before += 1;
    }
}

/// The words of the line with this byte, a blank between each: nothing changes when it is indented otherwise.
fn line_at(text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each part is preceded by its length, so that no two lists give the same input.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().take(SHOWN).fold(String::new(), |mut text, byte| {
        // Writing to a string can not fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
