//! Versions of Karpenter: what of a definition the one that is installed does not know. Lint judges by the newest that is known, and
//! holds documents against an older one where somebody says that it is installed.
//!
//! What a version knows is data, `karpenter.txt`: it is written by `make karpenter-versions` from the custom resource definitions that
//! each version installs, and read by `table`. What `check` says follows from it. What only a newer version refuses stays a mistake: it
//! is refused after the next upgrade.

mod check;
mod table;

use std::fmt;
use std::str::FromStr;

pub use check::{check, unreleased};
pub use table::FactKind;
use table::TABLE;

/// A minor version of Karpenter 1 that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KarpenterVersion {
    minor: u32,
}

impl KarpenterVersion {
    pub fn oldest() -> Self {
        Self { minor: TABLE.oldest }
    }

    pub fn newest() -> Self {
        Self { minor: TABLE.newest }
    }

    /// This one, and those that came after it.
    fn and_later(self) -> impl Iterator<Item = Self> {
        (self.minor..=TABLE.newest).map(|minor| Self { minor })
    }
}

impl fmt::Display for KarpenterVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "1.{}", self.minor)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Karpenter {oldest} to {newest} are known", oldest = KarpenterVersion::oldest(), newest = KarpenterVersion::newest())]
pub struct UnknownVersion;

impl FromStr for KarpenterVersion {
    type Err = UnknownVersion;

    /// `1.9`, `v1.9`, `1.9.2`: which patch it is changes nothing.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            let is_written_so =
                text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
            text.parse::<u32>().ok().filter(|_| is_written_so)
        };
        let text = text.strip_prefix('v').unwrap_or(text);
        let (minor, patch) = match text.strip_prefix("1.").ok_or(UnknownVersion)?.split_once('.') {
            Some((minor, patch)) => (minor, patch),
            None => (text.strip_prefix("1.").unwrap_or_default(), "0"),
        };
        let minor = number(minor).filter(|minor| (TABLE.oldest..=TABLE.newest).contains(minor));
        minor.filter(|_| number(patch).is_some()).map(|minor| Self { minor }).ok_or(UnknownVersion)
    }
}

/// The version that definitions are for, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    pub version: KarpenterVersion,
    pub said_by: SaidBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    CommandLine,
    Settings,
}

impl fmt::Display for Installed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said_by = match self.said_by {
            SaidBy::CommandLine => "--karpenter-version",
            SaidBy::Settings => "spec.lint.karpenterVersion",
        };
        write!(formatter, "{said_by} is {}", self.version)
    }
}

#[cfg(test)]
mod tests;
