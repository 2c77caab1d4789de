//! The forms of `${}` beside the plain one, read and carried out as Flux does: it takes those of a shell, and not all of them mean what a
//! shell means by them (`:+` and `:?` stand for a default, a replacement is text and no pattern).
//! Source: github.com/fluxcd/pkg/envsubst, version 1.7.

/// Longer texts are not trimmed: each of their beginnings is held against the pattern.
const TRIMMED_MAX: usize = 1024;

/// What a form does with the value of its variable. Arguments are as written: a variable may stand for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form<'t> {
    Plain,
    /// What stands there where the variable has no value, or an empty one.
    Default(&'t str),
    Length,
    Case(Case),
    Substring {
        offset: &'t str,
        length: Option<&'t str>,
    },
    /// What the pattern matches is taken off.
    Trim {
        side: Side,
        is_longest: bool,
        pattern: &'t str,
    },
    /// `new` is none where the form ends behind the second slash.
    Replace {
        what: Replaced,
        old: &'t str,
        new: Option<&'t str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    LowerFirst,
    Upper,
    UpperFirst,
    /// Words that Flux reads, and does nothing for.
    AsItIs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Begin,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    First,
    All,
    AtBegin,
    AtEnd,
}

/// Reads what stands between the braces. Gives the name of the variable, and the form; `None` where Flux can not read it, and builds
/// nothing.
pub(super) fn read(inner: &str) -> Option<(&str, Form<'_>)> {
    if let Some(name) = inner.strip_prefix('#') {
        let (name, rest) = split_name(name);
        return (!name.is_empty() && rest.is_empty()).then_some((name, Form::Length));
    }
    let (name, operation) = split_name(inner);
    if name.is_empty() {
        return None;
    }
    Some((name, form(operation)?))
}

fn form(operation: &str) -> Option<Form<'_>> {
    if operation.is_empty() {
        return Some(Form::Plain);
    }
    let default = ["=", ":=", ":-", ":?", ":+"].iter().find_map(|operator| operation.strip_prefix(operator));
    if let Some(default) = default {
        return Some(Form::Default(default));
    }
    match operation.as_bytes().first()? {
        b',' | b'^' => case(operation).map(Form::Case),
        b':' => substring(operation.strip_prefix(':')?),
        b'#' => trim(operation, '#', Side::Begin),
        b'%' => trim(operation, '%', Side::End),
        b'/' => replace(operation.strip_prefix('/')?),
        _ => None,
    }
}

fn case(operation: &str) -> Option<Case> {
    match operation {
        "," => Some(Case::LowerFirst),
        ",," => Some(Case::Lower),
        "^" => Some(Case::UpperFirst),
        "^^" => Some(Case::Upper),
        ",^" | "^," => Some(Case::AsItIs),
        _ => None,
    }
}

fn substring(arguments: &str) -> Option<Form<'_>> {
    let (offset, length) = match arguments.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim_start_matches(':'))),
        None => (arguments, None),
    };
    let is_there = is_one_argument(offset) && length.is_none_or(is_one_argument);
    is_there.then_some(Form::Substring { offset, length })
}

fn trim(operation: &str, sign: char, side: Side) -> Option<Form<'_>> {
    let once = operation.strip_prefix(sign)?;
    let (is_longest, pattern) = match once.strip_prefix(sign) {
        Some(twice) => (true, twice),
        None => (false, once),
    };
    is_one_argument(pattern).then_some(Form::Trim { side, is_longest, pattern })
}

fn replace(arguments: &str) -> Option<Form<'_>> {
    let (what, arguments) = match arguments.as_bytes().first()? {
        b'/' => (Replaced::All, arguments.strip_prefix('/')?),
        b'#' => (Replaced::AtBegin, arguments.strip_prefix('#')?),
        b'%' => (Replaced::AtEnd, arguments.strip_prefix('%')?),
        _ => (Replaced::First, arguments),
    };
    let slash = first_bare_slash(arguments)?;
    let (old, new) = arguments.split_at_checked(slash)?;
    // Any number of slashes separates the two.
    let new = Some(new.trim_start_matches('/')).filter(|new| !new.is_empty());
    let is_there = is_one_argument(old) && new.is_none_or(is_one_argument);
    is_there.then_some(Form::Replace { what, old, new })
}

/// Where a slash stands that no backslash is before, and that is of no variable.
fn first_bare_slash(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let mut open = 0_usize;
    let mut before = ' ';
    for (index, character) in text.char_indices() {
        match character {
            '{' if before == '$' => open += 1,
            '}' => open = open.saturating_sub(1),
            '/' if !is_escaped && open == 0 => return Some(index),
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
        before = character;
    }
    None
}

/// Whether the text is one word, or one variable alone: Flux takes no mixture, but for defaults.
fn is_one_argument(text: &str) -> bool {
    match text.strip_prefix("${") {
        Some(inner) => !inner.contains("${") && inner.find('}') == inner.len().checked_sub(1),
        None => !text.is_empty() && !text.contains("${"),
    }
}

/// The length of a text, as Flux counts it.
pub(super) fn length(value: &str) -> String {
    value.len().to_string()
}

pub(super) fn in_case(value: &str, case: Case) -> String {
    let first = |change: fn(char) -> String| {
        let mut characters = value.chars();
        let first = characters.next().map(change).unwrap_or_default();
        first + characters.as_str()
    };
    match case {
        Case::Lower => value.to_lowercase(),
        Case::Upper => value.to_uppercase(),
        Case::LowerFirst => first(|character| character.to_lowercase().collect()),
        Case::UpperFirst => first(|character| character.to_uppercase().collect()),
        Case::AsItIs => value.to_owned(),
    }
}

/// By bytes; what is negative counts from the end, and what is no number leaves the value as it is. `None`: what is left is no text.
pub(super) fn part(value: &str, offset: &str, length: Option<&str>) -> Option<String> {
    let of_value = i64::try_from(value.len()).ok()?;
    let Ok(offset) = offset.parse::<i64>() else { return Some(value.to_owned()) };
    let begin = if offset < 0 { of_value.saturating_add(offset).max(0) } else { offset };
    let end = match length.map(str::parse::<i64>) {
        None => of_value,
        Some(Err(_)) => return Some(value.to_owned()),
        Some(Ok(length)) if length < 0 => of_value.saturating_add(length),
        Some(Ok(length)) => begin.saturating_add(length).min(of_value),
    };
    if begin >= end {
        return Some(String::new());
    }
    value.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?).map(str::to_owned)
}

pub(super) fn replaced(value: &str, what: Replaced, old: &str, new: Option<&str>) -> String {
    let (old, given) = (without_escapes(old), new.map(without_escapes));
    let new = given.as_deref().unwrap_or_default();
    match what {
        Replaced::First => value.replacen(&old, new, 1),
        Replaced::All => value.replace(&old, new),
        // Without anything in its place it stays.
        Replaced::AtBegin | Replaced::AtEnd if given.is_none() => value.to_owned(),
        Replaced::AtBegin => value.strip_prefix(old.as_str()).map_or(value.to_owned(), |rest| format!("{new}{rest}")),
        Replaced::AtEnd => value.strip_suffix(old.as_str()).map_or(value.to_owned(), |rest| format!("{rest}{new}")),
    }
}

/// `\/` is a slash, `\\` a backslash and `$$` a dollar.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_escape = match characters.peek() {
            Some('/' | '\\') => character == '\\',
            Some('$') => character == '$',
            _ => false,
        };
        match is_escape.then(|| characters.next()).flatten() {
            Some(escaped) => out.push(escaped),
            None => out.push(character),
        }
    }
    out
}

/// `None` for what is too long to be tried.
pub(super) fn trimmed(value: &str, side: Side, is_longest: bool, pattern: &str) -> Option<String> {
    if value.len() > TRIMMED_MAX || pattern.len() > TRIMMED_MAX {
        return None;
    }
    // As Flux does it: of the end, all is turned round, the pattern as well.
    let turned = |text: &str| match side {
        Side::Begin => text.chars().collect::<Vec<char>>(),
        Side::End => text.chars().rev().collect(),
    };
    let (text, pattern) = (turned(value), turned(pattern));
    let mut taken = 0;
    for end in (1..=text.len()).rev() {
        match matches(&pattern, text.get(..end)?) {
            None => return Some(value.to_owned()),
            Some(true) if is_longest => {
                taken = end;
                break;
            }
            Some(true) => taken = end,
            Some(false) => {}
        }
    }
    let rest = text.get(taken..)?.iter();
    Some(match side {
        Side::Begin => rest.collect(),
        Side::End => rest.rev().collect(),
    })
}

/// Whether the pattern is all of the text: `*` is any text, `?` a character, `[a-z]` and `[^a-z]` one of some. `None` where it is no pattern.
fn matches(pattern: &[char], text: &[char]) -> Option<bool> {
    let (mut at, mut read) = (0, 0);
    // Where the last star stood, and how far what it stands for goes.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, read));
                at += 1;
                continue;
            }
            None if read == text.len() => return Some(true),
            None => None,
            Some(_) => match text.get(read) {
                Some(character) => one(pattern.get(at..)?, *character)?,
                None => None,
            },
        };
        match (step, star) {
            (Some(length), _) => {
                at += length;
                read += 1;
            }
            (None, Some((behind, until))) if until < text.len() => {
                star = Some((behind, until + 1));
                at = behind;
                read = until + 1;
            }
            (None, _) => return Some(false),
        }
    }
}

/// How many characters of the pattern stand for this one; the inner is none where they stand for another, the outer where they are no pattern.
fn one(pattern: &[char], character: char) -> Option<Option<usize>> {
    match pattern.first()? {
        '?' => Some(Some(1)),
        '\\' => pattern.get(1).map(|escaped| (*escaped == character).then_some(2)),
        '[' => class(pattern, character),
        literal => Some((*literal == character).then_some(1)),
    }
}

fn class(pattern: &[char], character: char) -> Option<Option<usize>> {
    let mut at = 1;
    let is_negated = pattern.get(at) == Some(&'^');
    at += usize::from(is_negated);
    let (mut is_in, mut ranges) = (false, 0);
    while ranges == 0 || pattern.get(at) != Some(&']') {
        let (low, next) = of_class(pattern, at)?;
        at = next;
        let high = match pattern.get(at) {
            Some('-') => {
                let (high, next) = of_class(pattern, at + 1)?;
                at = next;
                high
            }
            _ => low,
        };
        is_in |= (low..=high).contains(&character);
        ranges += 1;
    }
    Some((is_in != is_negated).then_some(at + 1))
}

/// A character of a class, and where the next one stands. It can not be the last of the pattern.
fn of_class(pattern: &[char], at: usize) -> Option<(char, usize)> {
    let (character, next) = match pattern.get(at)? {
        '-' | ']' => return None,
        '\\' => (*pattern.get(at + 1)?, at + 2),
        character => (*character, at + 1),
    };
    (next < pattern.len()).then_some((character, next))
}

/// Splits off `[_A-Za-z][_A-Za-z0-9]*` at the start.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let (name, rest) = text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""));
    if name.starts_with(|first: char| first.is_ascii_digit()) { ("", text) } else { (name, rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands for the text between the braces, where the variable has the value; its arguments are words.
    fn made(inner: &str, value: &str) -> Option<String> {
        let (_, form) = read(inner)?;
        match form {
            Form::Plain => Some(value.to_owned()),
            Form::Default(default) => Some(if value.is_empty() { default } else { value }.to_owned()),
            Form::Length => Some(length(value)),
            Form::Case(case) => Some(in_case(value, case)),
            Form::Substring { offset, length } => part(value, offset, length),
            Form::Trim { side, is_longest, pattern } => trimmed(value, side, is_longest, pattern),
            Form::Replace { what, old, new } => Some(replaced(value, what, old, new)),
        }
    }

    /// As envsubst of Flux makes them, version 1.7.1; `None` where it ends with an error.
    #[test]
    fn forms_make_what_flux_makes() {
        for (inner, value, expected) in [
            ("N", "abc", Some("abc")),
            ("N:-x", "", Some("x")),
            ("N:+x", "", Some("x")),
            ("N:+x", "abc", Some("abc")),
            ("N:?x", "", Some("x")),
            ("N=x", "", Some("x")),
            ("N-x", "", None),
            ("N?x", "", None),
            ("N[@]", "abc", None),
            ("!N", "abc", None),
            ("", "abc", None),
            ("#N", "éa", Some("3")),
            ("#N:1", "abc", None),
            ("N^", "éa b", Some("Éa b")),
            ("N^^", "Abc Def", Some("ABC DEF")),
            ("N,", "Abc Def", Some("abc Def")),
            ("N,,", "Abc Def", Some("abc def")),
            ("N,^", "Abc Def", Some("Abc Def")),
            ("N^^^", "abc", None),
            ("N:1", "abc", Some("bc")),
            ("N:0:2", "abc", Some("ab")),
            ("N:1:-1", "abc", Some("b")),
            ("N:4:-4", "ab.cd.ef", Some("")),
            ("N: -2", "abc", Some("abc")),
            ("N:9", "abc", Some("")),
            ("N:a", "abc", Some("abc")),
            ("N:1:", "abc", None),
            ("N:", "abc", None),
            ("N#*/", "a/b/c", Some("b/c")),
            ("N##*/", "a/b/c", Some("c")),
            ("N%/*", "a/b/c", Some("a/b")),
            ("N%%/*", "a/b/c", Some("a")),
            ("N#?", "abc", Some("bc")),
            ("N#[a-c]", "bcd", Some("cd")),
            ("N#[^a]", "abc", Some("abc")),
            ("N#[a", "abc", Some("abc")),
            ("N#*", "abc", Some("bc")),
            ("N##*", "abc", Some("")),
            ("N##", "abc", None),
            ("N/b/x", "abcb", Some("axcb")),
            ("N//b/x", "abcb", Some("axcx")),
            ("N//./-", "m7i.large", Some("m7i-large")),
            ("N/#a/x", "aba", Some("xba")),
            ("N/%a/x", "aba", Some("abx")),
            ("N/b/", "abcb", Some("acb")),
            ("N/#a/", "aba", Some("aba")),
            ("N/b", "abc", None),
            ("N//b", "abc", None),
            ("N/\\//-", "a/b/c", Some("a-b/c")),
            ("N/*/x", "a*b", Some("axb")),
        ] {
            assert_eq!(made(inner, value).as_deref(), expected, "{inner} of {value}");
        }
    }

    #[test]
    fn an_argument_is_one_word_or_one_variable() {
        for inner in ["N/a/x${M}", "N/${M}b/x", "N:${M}1", "N##${M}*", "N/${A}${B}/x"] {
            assert_eq!(read(inner), None, "{inner}");
        }
        for inner in ["N/${M}/${O}", "N:${M}:${O}", "N##${M}", "N:=a${M}b"] {
            assert!(read(inner).is_some(), "{inner}");
        }
        assert_eq!(trimmed(&"a".repeat(TRIMMED_MAX + 1), Side::Begin, true, "a"), None);
    }
}
