//! Secrets that this process has read, and what others repeat of them: a gateway may put the headers of a request into its answer, and what
//! a server says stands in messages, logs and comments.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Shorter ones are words of others.
const SECRET_BYTES_MIN: usize = 8;
/// Kept at most: of tokens that are made for an hour the oldest are worth nothing any more.
const SECRETS_MAX: usize = 1_000;
/// What stands in the place of one.
const HIDDEN: &str = "***";
/// What stands before one in a header.
const SCHEMES: [&str; 3] = ["bearer ", "basic ", "token "];

static KNOWN: Mutex<Known> = Mutex::new(Known(VecDeque::new()));

/// Each with its Base64, those that were read last at the end.
struct Known(VecDeque<[String; 2]>);

impl Known {
    fn remember(&mut self, secret: &str) {
        // Files are read again and again.
        self.0.retain(|[before, _]| before != secret);
        self.0.push_back([secret.to_owned(), BASE64_STANDARD.encode(secret)]);
        if self.0.len() > SECRETS_MAX {
            self.0.pop_front();
        }
    }
}

/// From now on no message repeats it, nor its Base64.
pub fn remember_secret(secret: &str) {
    let secret = secret.trim();
    if secret.len() >= SECRET_BYTES_MIN {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).remember(secret);
    }
}

/// The same of a user's password, which a header holds together with the name.
pub fn remember_password(user: &str, password: &str) {
    remember_secret(password);
    remember_secret(&format!("{user}:{password}"));
}

/// The text without secrets that were read, and without what looks like one behind the name of a scheme.
pub fn without_secrets(text: &str) -> String {
    let mut text = behind_schemes(text);
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Longest first: one may be a part of another.
    let mut found: Vec<&String> = known.0.iter().flatten().filter(|secret| text.contains(secret.as_str())).collect();
    found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    for secret in found {
        text = text.replace(secret.as_str(), HIDDEN);
    }
    text
}

/// `Bearer abc.DEF123`: a word of letters alone is part of a sentence.
fn behind_schemes(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if !SCHEMES.iter().any(|scheme| lower.contains(scheme)) {
        return text.to_owned();
    }
    let is_of_word = |character: char| character.is_ascii_alphanumeric() || "-._~+/=:".contains(character);
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(begin) = next_word(&lower, at) {
        let rest = text.get(begin..).unwrap_or_default();
        let word = rest.get(..rest.find(|it| !is_of_word(it)).unwrap_or(rest.len())).unwrap_or_default();
        // What ends the sentence.
        let word = word.trim_end_matches(['.', ':']);
        let is_secret = word.len() >= SECRET_BYTES_MIN && word.chars().any(|it| !it.is_ascii_lowercase() && it != '.');
        shown.push_str(text.get(at..begin).unwrap_or_default());
        shown.push_str(if is_secret { HIDDEN } else { word });
        at = begin + word.len();
    }
    shown + text.get(at..).unwrap_or_default()
}

/// Where the word behind the next scheme begins.
fn next_word(lower: &str, from: usize) -> Option<usize> {
    let rest = lower.get(from..)?;
    let ends = SCHEMES.iter().filter_map(|scheme| rest.find(scheme).map(|at| from + at + scheme.len()));
    ends.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_not_repeated() {
        remember_password("bob", "s3cret-of-bob");
        remember_secret("  glpat-of-a-test\n");
        remember_secret("short");
        let basic = BASE64_STANDARD.encode("bob:s3cret-of-bob");
        for (text, shown) in [
            ("no access for s3cret-of-bob at all", "no access for *** at all"),
            (format!("got authorization: Basic {basic}.").as_str(), "got authorization: Basic ***."),
            (basic.as_str(), "***"),
            ("private-token: glpat-of-a-test", "private-token: ***"),
            ("a short word", "a short word"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    /// A process that runs for months reads another token each hour.
    #[test]
    fn the_oldest_give_way_to_what_is_read_now() {
        let mut known = Known(VecDeque::new());
        known.remember("read-each-time");
        (0..2 * SECRETS_MAX).for_each(|hour| {
            known.remember(&format!("of-the-hour-{hour}"));
            known.remember("read-each-time");
        });
        let raw: Vec<&str> = known.0.iter().map(|[raw, _]| raw.as_str()).collect();
        assert_eq!((raw.len(), raw[SECRETS_MAX - 1]), (SECRETS_MAX, "read-each-time"));
        assert_eq!((raw[0], raw[SECRETS_MAX - 2]), ("of-the-hour-1001", "of-the-hour-1999"));
    }

    #[test]
    fn what_looks_like_one_is_not_shown() {
        for (text, shown) in [
            ("Bearer eyJhbGciOi.J9 is expired", "Bearer *** is expired"),
            ("\"Authorization\":\"Bearer kube-TOKEN-1\"", "\"Authorization\":\"Bearer ***\""),
            ("token AbcDef123456, bearer XYZ12345678", "token ***, bearer ***"),
            ("basic authentication failed", "basic authentication failed"),
            ("the token expired.", "the token expired."),
            ("bearer ", "bearer "),
            ("Töken é Bearer ÄÖÜ12345", "Töken é Bearer ÄÖÜ12345"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
