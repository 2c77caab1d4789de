//! All files that are migrated together: their documents, the objects in them, and what is said of each.

use std::ops::Range;

use serde_json::Value;

use super::cut::{Cut, Piece};
use super::editor::{EditRefusal, Editor, Spot};
use super::object_editor::{ObjectEditor, Saying};
use super::{Remark, tree};
use crate::definitions::kinds::OldKind;

#[derive(Debug)]
pub struct EditedFile {
    pub path: String,
    pub before: String,
    documents: Vec<EditedDocument>,
}

/// A document: where it stands in the file, as it was, and as it is now. One that can not be edited has no editor.
#[derive(Clone, Debug)]
struct EditedDocument {
    range: Range<usize>,
    was: Option<Editor>,
    is: Option<Editor>,
}

#[derive(Debug)]
pub struct Object {
    file: usize,
    document: usize,
    root: String,
    pub kind: String,
    pub name: String,
    pub old: Option<&'static OldKind>,
    /// A patch.
    pub is_partial: bool,
    said: Vec<Saying>,
}

#[derive(Debug, Default)]
pub struct FileSet {
    pub files: Vec<EditedFile>,
    pub objects: Vec<Object>,
}

impl EditedFile {
    /// `None` where the text is no YAML.
    pub fn of(path: &str, text: &str) -> Option<Self> {
        let documents = tree::documents(text)?.into_iter().map(|range| {
            let editor = text.get(range.clone()).and_then(Editor::of);
            EditedDocument { range, was: editor.clone(), is: editor }
        });
        Some(Self { path: path.to_owned(), before: text.to_owned(), documents: documents.collect() })
    }

    /// The objects in it: pointer of each, and what it is.
    pub fn values(&self) -> impl Iterator<Item = (usize, String, &Value)> {
        let values = self.documents.iter().enumerate().filter_map(|(index, it)| Some((index, it.is.as_ref()?.value())));
        values.flat_map(|(index, value)| {
            let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
            match value.get("items").and_then(Value::as_array).filter(|_| is_list) {
                Some(items) => {
                    items.iter().enumerate().map(|(item, value)| (index, format!("/items/{item}"), value)).collect()
                }
                None => vec![(index, String::new(), value)],
            }
        })
    }

    /// Lines of documents that can not be edited: before each, and its text.
    pub fn unread(&self) -> impl Iterator<Item = (usize, &str)> {
        let unread = self.documents.iter().filter(|it| it.is.is_none());
        unread.filter_map(|it| Some((lines_to(&self.before, it.range.start), self.before.get(it.range.clone())?)))
    }

    pub fn after(&self) -> String {
        let mut text = String::with_capacity(self.before.len());
        let mut done = 0;
        for document in &self.documents {
            let Some(editor) = &document.is else { continue };
            text.push_str(self.before.get(done..document.range.start).unwrap_or_default());
            text.push_str(editor.text());
            done = document.range.end;
        }
        text + self.before.get(done..).unwrap_or_default()
    }

    /// Lines before each document, as the file was and as it is now.
    fn starts(&self) -> Vec<(usize, usize)> {
        let (mut done, mut before, mut after) = (0, 0, 0);
        let mut starts = Vec::with_capacity(self.documents.len());
        for document in &self.documents {
            let between = newlines(self.before.get(done..document.range.start).unwrap_or_default());
            (before, after) = (before + between, after + between);
            starts.push((before, after));
            let was = newlines(self.before.get(document.range.clone()).unwrap_or_default());
            before += was;
            after += document.is.as_ref().map_or(was, |it| newlines(it.text()));
            done = document.range.end;
        }
        starts
    }

    /// Lines of what the pointer points at, before and after.
    fn lines(&self, document: usize, pointer: &str, starts: &[(usize, usize)]) -> (usize, usize) {
        let Some((edited, (before, after))) = self.documents.get(document).zip(starts.get(document)) else {
            return (1, 1);
        };
        let place = |it: &Option<Editor>| it.as_ref().map_or(0, |it| lines_to(it.text(), it.tree().place(pointer)));
        (before + place(&edited.was) + 1, after + place(&edited.is) + 1)
    }
}

/// Line ends before the byte.
fn lines_to(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, newlines)
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

impl Object {
    pub fn new(file: usize, (document, root): (usize, String), value: &Value, old: Option<&'static OldKind>) -> Self {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        Self { file, document, root, kind, name, old, is_partial: false, said: Vec::new() }
    }

    fn label(&self) -> String {
        if self.name.is_empty() { self.kind.clone() } else { format!("{}/{}", self.kind, self.name) }
    }
}

impl FileSet {
    pub fn path(&self, object: usize) -> &str {
        let file = self.objects.get(object).and_then(|object| self.files.get(object.file));
        file.map_or("", |file| file.path.as_str())
    }

    pub fn name(&self, object: usize) -> String {
        self.objects.get(object).map(Object::label).unwrap_or_default()
    }

    pub fn is_old(&self, object: usize) -> bool {
        self.objects.get(object).is_some_and(|object| object.old.is_some())
    }

    /// `None` for what is not written, or is null.
    pub fn get(&self, object: usize, pointer: &str) -> Option<&Value> {
        let object = self.objects.get(object)?;
        let document = self.files.get(object.file)?.documents.get(object.document)?;
        let value = document.is.as_ref()?.value().pointer(&format!("{}{pointer}", object.root));
        value.filter(|value| !value.is_null())
    }

    /// Works on one object.
    pub fn with(&mut self, object: usize, work: impl FnOnce(&mut ObjectEditor<'_>)) {
        let Some(object) = self.objects.get_mut(object) else { return };
        let document = self.files.get_mut(object.file).and_then(|it| it.documents.get_mut(object.document));
        let Some(editor) = document.and_then(|it| it.is.as_mut()) else { return };
        let mut edited = ObjectEditor::on(editor, &object.root, object.is_partial);
        work(&mut edited);
        let said = edited.said;
        object.said.extend(said);
    }

    pub fn by_hand(&mut self, object: usize, pointer: &str, message: String, hint: String) {
        self.with(object, |edited| edited.by_hand(pointer, message, hint));
    }

    pub fn cut(&mut self, object: usize, pointer: &str) -> Result<Cut, EditRefusal> {
        let (editor, root) = self.editor(object).ok_or(EditRefusal::Form)?;
        editor.remove(&format!("{root}{pointer}"))
    }

    pub fn insert(
        &mut self,
        object: usize,
        parent: &str,
        key: &str,
        piece: &Piece,
        spot: Spot<'_>,
    ) -> Result<(), EditRefusal> {
        let (editor, root) = self.editor(object).ok_or(EditRefusal::Form)?;
        editor.insert(&format!("{root}{parent}"), key, piece, spot)
    }

    fn editor(&mut self, object: usize) -> Option<(&mut Editor, &str)> {
        let object = self.objects.get(object)?;
        let document = self.files.get_mut(object.file)?.documents.get_mut(object.document)?;
        Some((document.is.as_mut()?, object.root.as_str()))
    }

    /// The documents of these objects as they are, to be put back.
    pub fn keep(&mut self, objects: impl Iterator<Item = usize>) -> Vec<(usize, Editor)> {
        objects.filter_map(|object| Some((object, self.editor(object)?.0.clone()))).collect()
    }

    pub fn put_back(&mut self, kept: Vec<(usize, Editor)>) {
        for (object, was) in kept {
            if let Some((editor, _)) = self.editor(object) {
                *editor = was;
            }
        }
    }

    /// Whether anything was said to be done by hand of the object in this file, by the name that it has now.
    pub fn is_left_by_hand(&self, path: &str, label: &str) -> bool {
        let is_it = |(index, object): (usize, &Object)| {
            let now = object.old.map_or(object.kind.as_str(), |old| match old.kind {
                "Provisioner" => "NodePool",
                "AWSNodeTemplate" => "EC2NodeClass",
                kind => kind,
            });
            let is_named = label.split_once('/') == Some((now, &object.name)) || label == now;
            is_named && self.path(index) == path && object.said.iter().any(|it| it.is_by_hand)
        };
        self.objects.iter().enumerate().any(is_it)
    }

    /// Everything that was said: of notes and of what is left to people.
    pub fn remarks(&self) -> (Vec<Remark>, Vec<Remark>) {
        let (mut notes, mut by_hand) = (Vec::new(), Vec::new());
        let starts: Vec<Vec<(usize, usize)>> = self.files.iter().map(EditedFile::starts).collect();
        for object in &self.objects {
            let Some((file, starts)) = self.files.get(object.file).zip(starts.get(object.file)) else { continue };
            for saying in &object.said {
                let (line, line_after) = file.lines(object.document, &saying.pointer, starts);
                let remark = Remark {
                    file: file.path.clone(),
                    line,
                    line_after,
                    object: Some(object.label()),
                    message: saying.message.clone(),
                    hint: saying.hint.clone(),
                };
                if saying.is_by_hand { by_hand.push(remark) } else { notes.push(remark) }
            }
        }
        (notes, by_hand)
    }

    /// Objects that are of version 1 now.
    pub fn migrated(&self) -> usize {
        let is_new = |object: usize| {
            let version = self.get(object, "/apiVersion").and_then(Value::as_str);
            self.objects.get(object).and_then(|it| it.old).is_some_and(|old| Some(old.api_version) != version)
        };
        (0..self.objects.len()).filter(|object| is_new(*object)).count()
    }
}
