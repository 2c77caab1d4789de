//! Whether a comment of ours still says what it said: whoever may write on a forge may edit it there, and it keeps our name.
//!
//! The last line is a hash over those before it. It is no signature: who knows how it is made can make one. It tells apart what this
//! program wrote and what somebody put in its place, so that the latter does not stay.

use aws_lc_rs::digest::{SHA256, digest};

use crate::ports::pull_requests::Seal;

const BEGIN: &str = "<!-- cutlist:seal:v1 ";
const END: &str = " -->";
/// Bytes of the hash that are written.
const HASH_BYTES: usize = 8;

/// The body with its seal.
pub fn sealed(body: &str) -> String {
    let body = unsealed(body);
    format!("{}\n{BEGIN}{}{END}\n", body.trim_end(), hash(&body))
}

/// The body without it.
pub fn unsealed(body: &str) -> String {
    let body = body.replace("\r\n", "\n");
    match last_line(&body) {
        Some((before, _)) => format!("{}\n", before.trim_end()),
        None => body,
    }
}

/// What the seal of a body says of it.
pub fn seal_of(body: &str) -> Seal {
    let body = body.replace("\r\n", "\n");
    match last_line(&body) {
        Some((before, said)) if said == hash(before) => Seal::Whole,
        Some(_) => Seal::Broken,
        None => Seal::Missing,
    }
}

/// What stands before the seal, and the hash in it.
fn last_line(body: &str) -> Option<(&str, &str)> {
    let (before, line) = body.trim_end().rsplit_once('\n')?;
    Some((before, line.strip_prefix(BEGIN)?.strip_suffix(END)?))
}

/// Spaces at the ends of lines are the forge's.
fn hash(body: &str) -> String {
    let lines: Vec<&str> = body.trim_end().lines().map(str::trim_end).collect();
    let whole = digest(&SHA256, lines.join("\n").as_bytes());
    whole.as_ref().iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::pull_requests::SEAL_CHARACTERS;

    #[test]
    fn what_somebody_edited_is_told() {
        let body = "<!-- marker -->\n<!-- data -->\n### Nodes of a\n\n3 removed \n";
        let written = sealed(body);
        assert!(written.starts_with(body.trim_end()), "{written}");
        assert!(written.chars().count() <= body.chars().count() + SEAL_CHARACTERS);
        assert_eq!(sealed(&written), written);
        assert_eq!(unsealed(&written).trim_end(), body.trim_end());
        for same in
            [written.clone(), written.replace('\n', "\r\n"), written.trim_end().to_owned(), format!("{written}\n")]
        {
            assert_eq!(seal_of(&same), Seal::Whole, "{same:?}");
        }
        assert_eq!(seal_of(&written.replace("3 removed", "All fine")), Seal::Broken);
        assert_eq!(seal_of(body), Seal::Missing);
        assert_eq!(seal_of(&format!("{written}All fine\n")), Seal::Missing);
    }
}
