//! What stands at a place of a text that may be broken there: in which mapping or list, as key or value, beside what.
//!
//! The parser is asked, with the text up to the place and a mark behind it: a document that ends in the middle of a word is the usual
//! one while somebody types. Where a line further up is broken as well, only the lines that the place is indented under are read.

mod lines;
mod walk;

use std::collections::BTreeMap;

use super::super::limits;

/// A place, and what is around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditPlace {
    /// From the root of the document: keys, and numbers of entries. Of a key that is typed: the mapping that it is in.
    pub path: Vec<String>,
    pub role: Role,
    /// The word that is typed, as far as the place.
    pub word: String,
    /// Its bytes in the text, to its end behind the place.
    pub start: usize,
    pub end: usize,
    /// The word stands in quotes.
    pub quote: Option<char>,
    /// A colon follows the word.
    pub has_colon: bool,
    /// Nothing stands before it on its line but blanks and the dashes of lists.
    pub begins_line: bool,
    /// For each mapping on the path, beginning with the root: its members that are known, with their values where those are scalars.
    /// Lists have none.
    pub members: Vec<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Of a mapping.
    #[default]
    Key,
    /// Of a member of a mapping, an entry of a list, or all of a document. It may become a mapping.
    Value,
}

/// How much of the text is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Up to the place: what is behind it in its word may be replaced.
    ToPlace,
    /// To the end of the word.
    WholeWord,
}

impl EditPlace {
    /// `None` inside a comment or a block of text, and where nothing can be made of what is above.
    pub fn at(text: &str, offset: usize, extent: Extent) -> Option<Self> {
        if text.len() > limits::FILE_BYTES {
            return None;
        }
        let offset = text.floor_char_boundary(offset);
        let start_of_document = lines::start_of_document(text, offset);
        let end_of_document = lines::end_of_document(text, offset);
        let before = text.get(start_of_document..offset)?;
        let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        let start = offset - lines::word_before(line).len();
        let end = offset + lines::word_behind(text.get(offset..end_of_document)?).len();
        let cut = if extent == Extent::WholeWord { end } else { offset };
        let prefix = text.get(start_of_document..cut)?;
        let quote = text.get(..start)?.chars().next_back().filter(|last| matches!(last, '"' | '\''));
        let found = walk::find(prefix, quote).or_else(|| walk::find(&lines::ancestors(prefix), quote))?;
        let rest = text.get(end..end_of_document)?;
        let has_colon = rest.strip_prefix(['"', '\'']).unwrap_or(rest).starts_with(':');
        let mut place = Self {
            path: found.path,
            role: found.role,
            word: text.get(start..cut)?.to_owned(),
            start,
            end,
            quote,
            has_colon,
            begins_line: false,
            members: found.members,
        };
        let column = (start + line.len()).saturating_sub(offset + usize::from(quote.is_some()));
        place.add_members_below(line, column, rest);
        place.add_members_of_root(text.get(start_of_document..end_of_document)?, text.get(start..end)?);
        Some(place)
    }

    /// The mapping that the place is in, or that it may become.
    pub fn siblings(&self) -> Option<&BTreeMap<String, String>> {
        self.members.get(self.path.len())
    }

    /// The members of the mapping around, so many levels up: 0 is the one that holds the value.
    pub fn around(&self, levels: usize) -> Option<&BTreeMap<String, String>> {
        self.members.get(self.path.len().checked_sub(levels + 1)?)
    }

    /// Members of the root, such as `kind`.
    pub fn of_root(&self, key: &str) -> Option<&str> {
        self.members.first()?.get(key).map(String::as_str)
    }

    /// What the parser was not shown: members that stand below in the same mapping.
    fn add_members_below(&mut self, line: &str, column: usize, rest: &str) {
        self.begins_line = line.get(..column).is_some_and(|before| before.chars().all(|it| matches!(it, ' ' | '-')));
        // A value that may become a mapping has the members below it, too.
        let depth = self.path.len();
        if self.members.len() <= depth {
            self.members.resize(depth + 1, BTreeMap::new());
        }
        if self.begins_line
            && let Some(members) = self.members.get_mut(depth)
        {
            for (key, value) in lines::members_below(rest, column) {
                members.entry(key).or_insert(value);
            }
        }
    }

    /// What kind of document it is may be said below, or above a line that can not be read.
    fn add_members_of_root(&mut self, document: &str, typed: &str) {
        let is_typed = |key: &str| self.path.is_empty() && key == typed;
        let found = lines::members_of_root(document).into_iter().filter(|(key, _)| !is_typed(key)).collect::<Vec<_>>();
        if let Some(root) = self.members.first_mut() {
            for (key, value) in found {
                root.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
