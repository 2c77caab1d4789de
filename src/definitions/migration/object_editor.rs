//! One object while it is rewritten: edits that are refused become something to do by hand.

use serde_json::Value;

use super::cut::Piece;
use super::editor::{EditRefusal, Editor, Spot};
use crate::definitions::document::spans;

/// What is said of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saying {
    pub is_by_hand: bool,
    /// Inside the document.
    pub pointer: String,
    pub message: String,
    pub hint: Option<String>,
}

pub struct ObjectEditor<'e> {
    pub editor: &'e mut Editor,
    /// Where in the document the object is: it may be an item of a list.
    root: &'e str,
    pub said: Vec<Saying>,
    /// A patch, which has only what it changes.
    pub is_partial: bool,
}

impl<'e> ObjectEditor<'e> {
    pub fn on(editor: &'e mut Editor, root: &'e str, is_partial: bool) -> Self {
        Self { editor, root, said: Vec::new(), is_partial }
    }

    pub fn in_document(&self, pointer: &str) -> String {
        format!("{}{pointer}", self.root)
    }

    /// `None` for what is not written, or is null.
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        self.editor.value().pointer(&self.in_document(pointer)).filter(|value| !value.is_null())
    }

    pub fn has(&self, pointer: &str) -> bool {
        self.get(pointer).is_some()
    }

    pub fn str(&self, pointer: &str) -> Option<&str> {
        self.get(pointer)?.as_str()
    }

    /// Something that is left to people.
    pub fn by_hand(&mut self, pointer: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.say(true, pointer, message.into(), Some(hint.into()));
    }

    /// Something that was decided, and that somebody may want to know.
    pub fn note(&mut self, pointer: &str, message: impl Into<String>) {
        self.say(false, pointer, message.into(), None);
    }

    fn say(&mut self, is_by_hand: bool, pointer: &str, message: String, hint: Option<String>) {
        let pointer = self.in_document(pointer);
        self.said.push(Saying { is_by_hand, pointer, message, hint });
    }

    /// Tries an edit of the field; whether it was made.
    pub fn edit(
        &mut self,
        pointer: &str,
        hint: &str,
        edit: impl FnOnce(&mut Editor, &str) -> Result<(), EditRefusal>,
    ) -> bool {
        let whole = self.in_document(pointer);
        match edit(self.editor, &whole) {
            Ok(()) => true,
            Err(refusal) => {
                let message = format!("`{}` is left as it is: {}", spans::field_path(pointer), refusal.because());
                self.by_hand(pointer, message, hint);
                false
            }
        }
    }

    pub fn set(&mut self, pointer: &str, new: impl Into<Value>) -> bool {
        let new = new.into();
        let hint = format!("write `{}`", new.as_str().map_or_else(|| new.to_string(), str::to_owned));
        self.edit(pointer, &hint, |editor, pointer| editor.set(pointer, &new))
    }

    pub fn rename(&mut self, pointer: &str, name: &str) -> bool {
        self.edit(pointer, &format!("it is now called `{name}`"), |editor, pointer| editor.rename(pointer, name))
    }

    /// Takes the field out.
    pub fn remove(&mut self, pointer: &str) -> bool {
        self.edit(pointer, "remove it: there is no such field any more", |editor, pointer| {
            editor.remove(pointer).map(drop)
        })
    }

    /// Takes the field to another place of the object.
    pub fn relocate(&mut self, from: &str, parent: &str, key: &str) -> bool {
        let whole = self.in_document(parent);
        let hint = format!("it is now `{}`", spans::field_path(&spans::join(parent, key)));
        self.edit(from, &hint, |editor, from| editor.relocate(from, &whole, key))
    }

    /// Writes a field that was not there.
    pub fn insert(&mut self, parent: &str, key: &str, value: impl Into<Value>, spot: Spot<'_>) -> bool {
        let piece = Piece::New(value.into());
        let whole = self.in_document(parent);
        // A mapping that is null or missing comes first.
        if self.editor.value().pointer(&whole).is_none() && !parent.is_empty() {
            let outer = spans::parent(parent).to_owned();
            if !self.insert(&outer, &spans::last(parent), Value::Object(serde_json::Map::new()), Spot::Last) {
                return false;
            }
        }
        let pointer = spans::join(parent, key);
        let hint = format!("add `{}`", spans::field_path(&pointer));
        let added = self.editor.insert(&whole, key, &piece, spot);
        if let Err(refusal) = added {
            let message = format!("`{}` is not added: {}", spans::field_path(&pointer), refusal.because());
            self.by_hand(parent, message, hint);
        }
        added.is_ok()
    }

    /// Writes another field in the place of this one.
    pub fn replace(&mut self, pointer: &str, key: &str, new: &Value) -> bool {
        let hint = format!("it is now `{key}`");
        self.edit(pointer, &hint, |editor, pointer| editor.replace(pointer, key, new))
    }

    /// Takes a mapping out that has nothing in it any more.
    pub fn remove_if_empty(&mut self, pointer: &str) {
        if self.get(pointer).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            self.remove(pointer);
        }
    }
}

impl EditRefusal {
    pub fn because(self) -> &'static str {
        match self {
            Self::Alias => "an anchor, an alias or a merge key has to do with it",
            Self::Comment => "a comment in it would be lost",
            Self::Taken => "something stands already where it belongs",
            Self::Form => "it is written in a form that can not be changed safely",
        }
    }
}
