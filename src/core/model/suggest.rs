//! "Did you mean".

use std::cmp::Reverse;

/// The candidate that is most like `text`, if any is alike enough to be a slip of the fingers.
pub fn nearest<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let folded = text.to_lowercase();
    let length = folded.chars().count();
    candidates
        .filter(|candidate| *candidate != text)
        // Each letter more or less is a change of its own; so a long text is not compared with everything.
        .filter(|candidate| candidate.to_lowercase().chars().count().abs_diff(length) <= 3)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.to_lowercase()), candidate))
        // A third of the letters, at least one and at most three.
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).clamp(1, 3))
        // Of those that are as near, the one that is alike for longer, and in the next letter: `gp3` for `gp4`.
        .min_by_key(|(distance, candidate)| (*distance, unlikeness(&folded, candidate), *candidate))
        .map(|(_, candidate)| candidate)
}

/// How early the texts part, and how far apart the letters are at which they do.
fn unlikeness(text: &str, candidate: &str) -> (Reverse<usize>, u32) {
    let mut pairs = text.chars().zip(candidate.chars().flat_map(char::to_lowercase)).enumerate();
    match pairs.find(|(_, (one, other))| one != other) {
        Some((alike, (one, other))) => (Reverse(alike), u32::from(one).abs_diff(u32::from(other))),
        None => (Reverse(usize::MAX), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_that_are_as_near_takes_the_likeliest() {
        assert_eq!(nearest("gp4", ["gp2", "gp3", "io2"].into_iter()), Some("gp3"));
        assert_eq!(nearest("gp0", ["gp3", "gp2"].into_iter()), Some("gp2"));
        assert_eq!(nearest("m7i", ["c7i", "m7g", "m7a", "r7i"].into_iter()), Some("m7g"));
    }

    #[test]
    fn finds_slips_and_nothing_else() {
        let names = ["metadata", "resources", "weight", "terminationGracePeriodSeconds", "id", "tags"];
        for (text, expected) in [
            ("metadate", Some("metadata")),
            ("resoutces", Some("resources")),
            ("weigth", Some("weight")),
            ("terminateionGracePeriodSeconds", Some("terminationGracePeriodSeconds")),
            ("Tags", Some("tags")),
            ("labels", None),
            ("x", None),
        ] {
            assert_eq!(nearest(text, names.into_iter()), expected, "{text}");
        }
    }
}
