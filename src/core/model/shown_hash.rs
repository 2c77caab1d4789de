//! Hashes as they stand in what is shown to others. Who guesses a short secret would see by a whole hash that the guess is right; by a few
//! digits of it many guesses look right. A secret of which there are only some thousands is not hidden by that.

use sha2::{Digest, Sha256};

use super::hexadecimal;

/// No whole hash begins so.
const MARK: &str = "short:";
/// One guess of 4,096 has the same digits, and so has one change of as many, which then is not seen.
const DIGITS: usize = 3;

/// What is shown of a hash; of one that is shown already, the same.
pub fn shown(hash: &str) -> String {
    if hash.starts_with(MARK) {
        return hash.to_owned();
    }
    let digits: String = hexadecimal(Sha256::digest(hash)).chars().take(DIGITS).collect();
    format!("{MARK}{digits}")
}

/// Whether two hashes are the same, as far as can be told where one of them is a shown one.
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || ([one, other].iter().any(|hash| hash.starts_with(MARK)) && shown(one) == shown(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_hash_tells_a_change_and_many_guesses_look_right() {
        let (one, other) = ("9087126487112640317", "9087126487112640318");
        assert!(is_same(one, &shown(one)) && is_same(&shown(one), one) && is_same(&shown(one), &shown(one)));
        assert!(!is_same(one, other) && !is_same(one, &shown(other)) && !is_same(&shown(one), &shown(other)));
        assert_eq!(shown(&shown(one)), shown(one));
        let guesses = (0..100_000).filter(|guess: &u32| shown(&guess.to_string()) == shown(one)).count();
        assert!((10..60).contains(&guesses), "{guesses} guesses look right");
    }
}
