//! "Did you mean".

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
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

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
