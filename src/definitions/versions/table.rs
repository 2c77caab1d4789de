//! The table of what each version knows, as it is in `karpenter.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::KarpenterVersion;

/// A schema pointer: `[]` is an entry of a list, `{}` a member of a mapping.
pub type Pointers = BTreeMap<&'static str, Vec<Fact>>;

pub struct Table {
    /// Minor versions.
    pub oldest: u32,
    pub newest: u32,
    /// By the kind, `karpenter.sh/v1/NodePool`, and the pointer.
    pub kinds: BTreeMap<&'static str, Pointers>,
    /// Lines that are not of its form: none.
    pub unread: Vec<&'static str>,
}

/// Something that held from one version on, and to another if it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    since: u32,
    until: Option<u32>,
    pub what: FactKind,
    pub name: &'static str,
}

/// What a fact says of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactKind {
    Kind,
    Field,
    /// A word that a field takes.
    Value,
    /// A word that a field takes before the `@`.
    Family,
    /// A domain of which only some keys may be used,
    Domain,
    /// these,
    Key,
    /// and those of domains that end so.
    Subdomain,
    /// A field that can not be changed.
    Immutable,
    /// Fields of which one that is there stays there: `role|instanceProfile`.
    Stays,
}

impl FactKind {
    const ALL: [Self; 9] = [
        Self::Kind,
        Self::Field,
        Self::Value,
        Self::Family,
        Self::Domain,
        Self::Key,
        Self::Subdomain,
        Self::Immutable,
        Self::Stays,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Field => "field",
            Self::Value => "value",
            Self::Family => "family",
            Self::Domain => "domain",
            Self::Key => "key",
            Self::Subdomain => "subdomain",
            Self::Immutable => "immutable",
            Self::Stays => "stays",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.word() == word)
    }
}

impl Fact {
    pub fn holds_in(&self, version: KarpenterVersion) -> bool {
        self.since <= version.minor && self.until.is_none_or(|until| version.minor <= until)
    }

    /// Holds in the newest version.
    pub fn is_current(&self) -> bool {
        self.until.is_none()
    }

    pub fn since(&self) -> KarpenterVersion {
        KarpenterVersion { minor: self.since }
    }
}

pub static TABLE: LazyLock<Table> = LazyLock::new(|| read(include_str!("karpenter.txt")));

fn read(text: &'static str) -> Table {
    let mut table = Table { oldest: 0, newest: 0, kinds: BTreeMap::new(), unread: Vec::new() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(versions) = line.strip_prefix("versions ") {
            let minors = versions.split(' ').filter_map(|version| minor(version.split('=').next()?));
            (table.oldest, table.newest) = minors.fold((u32::MAX, 0), |(low, high), it| (low.min(it), high.max(it)));
        } else if let Some((kind, pointer, fact)) = row(line) {
            table.kinds.entry(kind).or_default().entry(pointer).or_default().push(fact);
        } else {
            table.unread.push(line);
        }
    }
    table
}

/// `SINCE UNTIL KIND POINTER WHAT [NAME]`
fn row(line: &'static str) -> Option<(&'static str, &'static str, Fact)> {
    let mut words = line.split(' ');
    let since = minor(words.next()?)?;
    let until = match words.next()? {
        "-" => None,
        until => Some(minor(until)?),
    };
    let (kind, pointer) = (words.next()?, words.next()?);
    let what = FactKind::of(words.next()?)?;
    let name = words.next().unwrap_or_default();
    words.next().is_none().then_some((kind, pointer, Fact { since, until, what, name }))
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.parse().ok()
}
