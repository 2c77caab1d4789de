//! "Did you mean". What is alike enough to be named in a hint ([`nearest`]), and what is nothing but a slip of the fingers
//! ([`is_slip`]): only that may be written into a file.

use std::cmp::Reverse;
use std::fmt;

/// What to do about a mistake, in words, and what the words ask about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hint {
    pub text: String,
    /// Whether the text asks if something else was meant.
    pub asks: bool,
    /// What was probably meant, the likeliest first. Empty where the text does not ask, or knows of another cause as well.
    pub meant: Vec<String>,
}

impl Hint {
    /// The question whether one of these was meant.
    pub fn question(meant: &[&str]) -> Self {
        let names: Vec<String> = meant.iter().map(|name| format!("`{name}`")).collect();
        let text = format!("did you mean {}?", names.join(" or "));
        Self { text, asks: true, meant: meant.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// What was probably meant, where it is one thing.
    pub fn only_meant(&self) -> Option<&str> {
        match self.meant.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self { text, asks: false, meant: Vec::new() }
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The candidate that is most like `text`, if any is alike enough to be a slip of the fingers.
pub fn nearest<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let folded = folded(text);
    candidates
        .filter(|candidate| *candidate != text)
        .filter_map(|candidate| Some((distance(&folded, &self::folded(candidate))?, candidate)))
        // Of those that are as near, the one that is alike for longer, and in the next letter: `gp3` for `gp4`.
        .min_by_key(|(distance, candidate)| (*distance, unlikeness(&folded, candidate), *candidate))
        .map(|(_, candidate)| candidate)
}

/// Whether the texts are alike as a whole, as names of several words may be: `karpenter.io` for `karpenter.sh`.
pub fn is_like(text: &str, known: &str) -> bool {
    is_near(&folded(text), &folded(known))
}

/// The question whether the nearest candidate was meant. Where it is a slip of one, and as good as one of another, it names both: then nobody
/// knows.
pub fn did_you_mean<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<Hint> {
    let candidates: Vec<&str> = candidates.collect();
    let best = nearest(text, candidates.iter().copied())?;
    let others: Vec<&str> = candidates.into_iter().filter(|other| *other != best).collect();
    let rival =
        nearest(text, others.iter().copied()).filter(|rival| is_slip(text, best) && is_as_near(text, rival, best));
    Some(match rival {
        Some(rival) => Hint::question(&[best, rival]),
        None => Hint::question(&[best]),
    })
}

/// Whether `rival` explains the text as well as `best` does, or is a slip of it too.
fn is_as_near(text: &str, rival: &str, best: &str) -> bool {
    let of = |other: &str| distance(&folded(text), &folded(other)).unwrap_or(usize::MAX);
    // What differs in nothing but its case, or in signs between words, is no guess beside what differs in letters.
    of(rival) <= of(best) || (of(best) > 0 && is_slip(text, rival))
}

/// Whether one is the other but for a slip of the fingers, so surely that it may be written in its place: another case, a sign between words, or
/// letters of one long word. Another number is none: `gp4` may be any of `gp2` and `gp3`; nor is another letter of a short word, or
/// another first letter: `gpu` is no slip of `cpu`.
pub fn is_slip(text: &str, meant: &str) -> bool {
    let (text, meant) = (folded(text), folded(meant));
    if digits(&text) != digits(&meant) {
        return false;
    }
    if letters(&text) == letters(&meant) {
        return true;
    }
    let differing = || words(&text).zip(words(&meant)).filter(|(one, other)| one != other);
    let is_one = words(&text).count() == words(&meant).count() && differing().count() == 1;
    is_one && differing().all(|(one, other)| is_slip_of_word(one, other))
}

fn is_slip_of_word(word: &str, meant: &str) -> bool {
    /// Of shorter words every other word is one letter away.
    const LETTERS_MIN: usize = 4;
    /// Two slips in a shorter word make another word.
    const LETTERS_OF_TWO_SLIPS: usize = 8;
    let (length, length_meant) = (word.chars().count(), meant.chars().count());
    let allowed = if length_meant >= LETTERS_OF_TWO_SLIPS { 2 } else { 1 };
    length.max(length_meant) >= LETTERS_MIN
        && length.abs_diff(length_meant) <= allowed
        && strsim::damerau_levenshtein(word, meant) <= allowed
        && !has_other_first_letter(word, meant)
}

/// How many slips are between two texts, both folded; `None` where they are not alike.
fn distance(text: &str, candidate: &str) -> Option<usize> {
    if letters(text) == letters(candidate) {
        return Some(0);
    }
    let is_alike = is_near(text, candidate)
        && (words(text).count() != words(candidate).count()
            || words(text).zip(words(candidate)).all(|(word, other)| is_near(word, other) && !is_another(word, other)));
    is_alike.then(|| strsim::damerau_levenshtein(text, candidate))
}

/// Whether no more than a third of the letters differ, at least one and at most three.
fn is_near(text: &str, candidate: &str) -> bool {
    let allowed = (candidate.len() / 3).clamp(1, 3);
    // Each letter more or less is a change of its own; so a long text is not compared with everything.
    text.chars().count().abs_diff(candidate.chars().count()) <= allowed
        && strsim::damerau_levenshtein(text, candidate) <= allowed
}

/// Whether a short word is another one, and not a slip: `gpu` and `cpu`, `k` and `m`.
fn is_another(word: &str, other: &str) -> bool {
    const SHORT: usize = 3;
    word != other && word.chars().count() <= SHORT && has_other_first_letter(word, other)
}

/// Whether the first letter was replaced: not left out, come twice, or changed places with the next.
fn has_other_first_letter(word: &str, meant: &str) -> bool {
    let mut word = word.chars();
    let mut meant = meant.chars();
    word.next() != meant.next() && word.as_str() == meant.as_str()
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// Without the signs between words.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// In small letters, and those of other alphabets that look like Latin ones as these: nobody sees which they are.
fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).map(latin).collect()
}

fn latin(letter: char) -> char {
    match letter {
        'а' | 'α' => 'a',
        'в' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ι' | 'ı' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'м' => 'm',
        'ո' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' => 'v',
        'х' | 'χ' => 'x',
        'у' => 'y',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        // Full width.
        '\u{ff01}'..='\u{ff5e}' => u32::from(letter).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(letter),
        _ => letter,
    }
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
    fn a_short_word_with_another_first_letter_is_another_word() {
        let resources: &[&str] = &["cpu", "memory", "pods"];
        let letters: &[&str] = &["c", "i", "m", "z"];
        let types: &[&str] = &["m6i.large", "c7g.large", "c7g.xlarge"];
        let labels: &[&str] = &["instance-cpu", "instance-size", "instance-category", "instance-gpu-count"];
        for (text, candidates, expected) in [
            ("gpu", resources, None),
            ("k", letters, None),
            ("m6i.huge", types, None),
            ("m7g.large", types, None),
            ("c7gxlarge", types, Some("c7g.xlarge")),
            ("instance-gpu", labels, None),
            ("instance-type", labels, None),
            ("instance-name", labels, None),
            ("instance-catgory", labels, Some("instance-category")),
            ("\u{441}", letters, Some("c")),
        ] {
            assert_eq!(nearest(text, candidates.iter().copied()), expected, "{text}");
        }
    }

    #[test]
    fn names_both_where_nobody_knows() {
        let ask = |text, candidates: &[&str]| did_you_mean(text, candidates.iter().copied()).map(|hint| hint.text);
        assert_eq!(ask("larg", &["large", "xlarge"]).as_deref(), Some("did you mean `large`?"));
        assert_eq!(
            ask("us1-az1", &["use1-az1", "usw1-az1"]).as_deref(),
            Some("did you mean `use1-az1` or `usw1-az1`?")
        );
        // The case alone is no guess, whatever else is near.
        assert_eq!(ask("Large", &["large", "larger"]).as_deref(), Some("did you mean `large`?"));
        assert_eq!(ask("nothing", &["large"]), None);
    }

    #[test]
    fn what_may_be_written_is_no_guess() {
        for (text, meant) in [
            ("m5.larg", "m5.large"),
            ("wieght", "weight"),
            ("cpus", "cpu"),
            ("CPU", "cpu"),
            ("spto", "spot"),
            ("useast1", "us-east-1"),
            ("c7gxlarge", "c7g.xlarge"),
            ("instance-catagory", "instance-category"),
            ("\u{441}", "c"),
        ] {
            assert!(is_slip(text, meant), "{text} {meant}");
        }
        for (text, meant) in [
            ("gp4", "gp2"),
            ("A10", "a100"),
            ("gpu", "cpu"),
            ("k", "m"),
            ("ids", "id"),
            ("Is", "In"),
            ("m6i.huge", "m6i.large"),
            ("instance-gpu", "instance-cpu"),
            ("instance-type", "instance-size"),
            ("us-east-1g", "us-east-1f"),
            ("target", "NodePool"),
        ] {
            assert!(!is_slip(text, meant), "{text} {meant}");
        }
    }

    /// Whatever one letter is typed wrong, nothing is written where another word explains the text as well.
    #[test]
    fn never_sure_where_two_are_equally_near() {
        let lists: [&[&str]; 6] = [
            &["a", "c", "d", "g", "i", "m", "p", "r", "t", "x", "z"],
            &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"],
            &["on-demand", "reserved", "spot"],
            &["gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"],
            &["nano", "micro", "small", "medium", "large", "xlarge", "2xlarge", "metal"],
            &["NoSchedule", "NoExecute", "PreferNoSchedule"],
        ];
        let mut sure = 0;
        for list in lists {
            for typed in list.iter().flat_map(|word| edits(word)).filter(|typed| !list.contains(&typed.as_str())) {
                let hint = did_you_mean(&typed, list.iter().copied()).unwrap_or_default();
                let Some(meant) = hint.only_meant().filter(|meant| is_slip(&typed, meant)) else { continue };
                let of = |other: &str| strsim::damerau_levenshtein(&typed.to_lowercase(), &other.to_lowercase());
                let rival = list.iter().find(|other| **other != meant && of(other) <= of(meant));
                assert_eq!(rival, None, "{typed} may be {meant}, and as well this");
                sure += 1;
            }
        }
        assert!(sure > 500, "most slips of long words are sure: {sure}");
    }

    /// All texts that differ from the word in one letter: left out, come twice, swapped, replaced.
    fn edits(word: &str) -> Vec<String> {
        let letters: Vec<char> = word.chars().collect();
        let mut typed = Vec::new();
        for place in 0..letters.len() {
            let with = |change: &dyn Fn(&mut Vec<char>)| {
                let mut changed = letters.clone();
                change(&mut changed);
                changed.into_iter().collect::<String>()
            };
            typed.push(with(&|it| {
                it.remove(place);
            }));
            typed.push(with(&|it| it.insert(place, letters[place])));
            typed.push(with(&|it| it.swap(place, (place + 1).min(letters.len() - 1))));
            typed.extend(('a'..='z').map(|other| with(&|it| it[place] = other)));
        }
        typed
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
