//! The file of allowed signers, as OpenSSH has it: `ssh-keygen(1)`, section ALLOWED SIGNERS.
//!
//! The lines are read here, since `ssh-key` reads `authorized_keys` and `known_hosts` and not this file. The keys in them it reads.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ssh_key::PublicKey;
use ssh_key::public::KeyData;

use super::ssh::{NAMESPACE, is_key_type};

/// Lines that are read. Ten thousand people commit to no repository of definitions.
const LINES_MAX: usize = 10_000;

/// Why a line of the file can not be used. A file with one such line is not used at all: what is left out could be a limit.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LineError {
    #[error("there is no key: write `PRINCIPALS [OPTIONS] KEYTYPE KEY`")]
    NoKey,
    #[error("the key is no base64 of a key of type {0}")]
    NoSuchKey(String),
    #[error("cert-authority: certificates are not looked at, so name the keys themselves")]
    CertificateAuthority,
    #[error("there is no option `{0}`: cert-authority, namespaces, valid-after and valid-before are known")]
    UnknownOption(String),
    #[error("`{0}` is no time: write YYYYMMDD or YYYYMMDDHHMM[SS], both of UTC")]
    NoTime(String),
    #[error("a quote has no end")]
    NoEndOfQuote,
    #[error("there are more than {LINES_MAX} lines")]
    TooMany,
}

/// One key, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AllowedSigner {
    pub principals: Vec<String>,
    pub key: KeyData,
    pub limits: Limits,
}

/// The options of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    namespaces: Option<Vec<String>>,
    pub valid_after: Option<Timestamp>,
    pub valid_before: Option<Timestamp>,
}

impl AllowedSigner {
    /// Whether it may sign for Git.
    pub fn is_for_git(&self) -> bool {
        let Some(patterns) = &self.limits.namespaces else { return true };
        let is_named = |pattern: &str| fits(pattern, NAMESPACE);
        let is_denied = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(is_named);
        !is_denied && patterns.iter().any(|pattern| is_named(pattern))
    }

    /// Whether it may sign at this moment.
    pub fn is_valid_at(&self, moment: Timestamp) -> bool {
        let Limits { valid_after, valid_before, .. } = self.limits;
        valid_after.is_none_or(|after| moment >= after) && valid_before.is_none_or(|before| moment <= before)
    }
}

/// The lines of the file; of the first that can not be used its number, from 1, and why.
pub(super) fn parse(text: &str) -> Result<Vec<AllowedSigner>, (usize, LineError)> {
    let mut signers = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if index >= LINES_MAX {
            return Err((index + 1, LineError::TooMany));
        }
        if !line.is_empty() && !line.starts_with('#') {
            signers.push(signer(line).map_err(|error| (index + 1, error))?);
        }
    }
    Ok(signers)
}

fn signer(line: &str) -> Result<AllowedSigner, LineError> {
    let mut words = Words(line);
    // A key alone is nobody's.
    let principals = words.next_word()?.filter(|word| !is_key_type(word)).ok_or(LineError::NoKey)?;
    let mut limits = Limits::default();
    let first = words.next_word()?.ok_or(LineError::NoKey)?;
    // No option has the name of a type of keys.
    let key_type = if is_key_type(&first) {
        first
    } else {
        limits.take_options(&first)?;
        words.next_word()?.filter(|word| is_key_type(word)).ok_or(LineError::NoKey)?
    };
    let key = words.next_word()?.ok_or(LineError::NoKey)?;
    let parsed = PublicKey::from_openssh(&format!("{key_type} {key}"));
    let key = parsed.map_err(|_| LineError::NoSuchKey(key_type))?.key_data().clone();
    let principals = list(&principals);
    if principals.is_empty() {
        return Err(LineError::NoKey);
    }
    Ok(AllowedSigner { principals, key, limits })
}

fn list(words: &str) -> Vec<String> {
    words.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Limits {
    fn take_options(&mut self, options: &str) -> Result<(), LineError> {
        for option in split_options(options) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = value.trim_matches('"');
            match name.to_ascii_lowercase().as_str() {
                "cert-authority" => return Err(LineError::CertificateAuthority),
                "namespaces" => self.namespaces = Some(list(value)),
                "valid-after" => self.valid_after = Some(moment(value)?),
                "valid-before" => self.valid_before = Some(moment(value)?),
                _ => return Err(LineError::UnknownOption(name.to_owned())),
            }
        }
        Ok(())
    }
}

/// Commas inside quotes separate nothing.
fn split_options(options: &str) -> Vec<&str> {
    let mut is_quoted = false;
    options
        .split(|character| {
            is_quoted ^= character == '"';
            character == ',' && !is_quoted
        })
        .filter(|option| !option.is_empty())
        .collect()
}

/// As OpenSSH writes times. What it takes for local time is UTC here, as it is in a container.
fn moment(text: &str) -> Result<Timestamp, LineError> {
    let error = || LineError::NoTime(text.to_owned());
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error());
    }
    let whole = match digits.len() {
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        14 => digits.to_owned(),
        _ => return Err(error()),
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", &whole).map_err(|_| error())?;
    time.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| error())
}

/// Words between blanks. Blanks inside quotes belong to a word; quotes around a whole word do not.
struct Words<'a>(&'a str);

impl Words<'_> {
    fn next_word(&mut self) -> Result<Option<String>, LineError> {
        let text = self.0.trim_start();
        let mut is_quoted = false;
        let end = text.find(|character: char| {
            is_quoted ^= character == '"';
            character.is_whitespace() && !is_quoted
        });
        if is_quoted && end.is_none() {
            return Err(LineError::NoEndOfQuote);
        }
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.0 = rest;
        let inside = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
        let word = inside.filter(|inside| !inside.contains('"')).unwrap_or(word);
        Ok((!word.is_empty()).then(|| word.to_owned()))
    }
}

/// Whether a text fits a pattern of OpenSSH: `*` is any characters, `?` is one. `globset` takes further signs for patterns, which are
/// themselves here.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut position) = (0, 0);
    // Where the last `*` stands, and up to where it reaches.
    let mut star: Option<(usize, usize)> = None;
    while position < text.len() {
        let fits_one = pattern.get(at).is_some_and(|it| *it == '?' || Some(it) == text.get(position));
        if pattern.get(at) == Some(&'*') {
            star = Some((at, position));
            at += 1;
        } else if fits_one {
            (at, position) = (at + 1, position + 1);
        } else if let Some((of_star, reached)) = star {
            star = Some((of_star, reached + 1));
            (at, position) = (of_star + 1, reached + 1);
        } else {
            return false;
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr1nzrCXFp6QBrcXr7b0L9MVNcR1CHGRkW3V0dW0nAZ";

    fn one(line: &str) -> AllowedSigner {
        parse(line).unwrap().remove(0)
    }

    #[test]
    fn lines_are_those_of_openssh() {
        let signer = one(&format!("ada@example.com,*@platform.example.com {KEY} her laptop"));
        assert_eq!(signer.principals, ["ada@example.com", "*@platform.example.com"]);
        assert!(signer.is_for_git() && signer.is_valid_at(Timestamp::UNIX_EPOCH));
        let line = format!(
            "\"ada lovelace\" namespaces=\"git,file\",valid-after=\"20260101\",valid-before=202702011230Z {KEY}"
        );
        let signer = one(&line);
        assert_eq!(signer.principals, ["ada lovelace"]);
        let at = |text: &str| signer.is_valid_at(text.parse().unwrap());
        assert!(signer.is_for_git() && at("2026-01-01T00:00:00Z") && at("2027-02-01T12:30:00Z"));
        assert!(!at("2025-12-31T23:59:59Z") && !at("2027-02-01T12:30:01Z"));
        for (namespaces, expected) in [
            ("file", false),
            ("*", true),
            ("g?t", true),
            ("*,!git", false),
            ("!file", false),
            ("", false),
            ("g*t", true),
            ("**", true),
            ("gi", false),
            ("gi*t?", false),
            ("[g]it", false),
            ("{git,file}", false),
            ("\\git", false),
        ] {
            assert_eq!(one(&format!("a namespaces=\"{namespaces}\" {KEY}")).is_for_git(), expected, "{namespaces}");
        }
        assert_eq!(parse(&format!("\n# nobody\n  \na {KEY}\n")).unwrap().len(), 1);
    }

    #[test]
    fn each_mistake_is_named_with_its_line() {
        for (line, error) in [
            ("ada@example.com".to_owned(), LineError::NoKey),
            (KEY.to_owned(), LineError::NoKey),
            (format!("a cert-authority {KEY}"), LineError::CertificateAuthority),
            (format!("a no-touch-required {KEY}"), LineError::UnknownOption("no-touch-required".to_owned())),
            (format!("a valid-after=tomorrow {KEY}"), LineError::NoTime("tomorrow".to_owned())),
            (format!("a valid-before=20261332 {KEY}"), LineError::NoTime("20261332".to_owned())),
            (format!("a valid-before=\"2026 {KEY}"), LineError::NoEndOfQuote),
            ("a ssh-ed25519 !!".to_owned(), LineError::NoSuchKey("ssh-ed25519".to_owned())),
            (KEY.replace("ssh-ed25519", "a ssh-rsa"), LineError::NoSuchKey("ssh-rsa".to_owned())),
        ] {
            assert_eq!(parse(&format!("# first\n{line}\n")), Err((2, error)), "{line}");
        }
        assert_eq!(parse(&"\n".repeat(LINES_MAX + 5)).unwrap_err(), (LINES_MAX + 1, LineError::TooMany));
    }

    #[test]
    fn a_pattern_does_not_take_long() {
        assert!(!fits(&"*a".repeat(2_000), &"a".repeat(1_000)));
        assert!(fits("*@example.com", "ada@example.com") && !fits("?", "") && fits("**", ""));
    }
}
