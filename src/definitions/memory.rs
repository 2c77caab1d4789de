//! What is kept from one reading of a repository for the next, so that a change of one file costs that of one file. An editor asks
//! after each key that is pressed. The findings are those of a reading without it.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Context;
use super::document::Parsed;
use super::judging::Judged;
use crate::api::kustomization;
use crate::api::source::SourceFile;

/// Files as they were read last. It has no more of them than there were then.
#[derive(Debug, Default)]
pub struct Memory {
    frame: Frame,
    /// In the order of their paths, which gives each its index.
    files: Vec<Option<Remembered>>,
}

/// What all files are read by. With another one nothing that is known counts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Frame {
    variables: BTreeMap<String, String>,
    paths: Vec<String>,
    templates: BTreeSet<String>,
    has_kustomizations: bool,
}

/// Documents of a file that were judged alone, by their place in it.
pub type JudgedOfFile = BTreeMap<usize, Judged>;

#[derive(Debug)]
struct Remembered {
    path: String,
    content: Vec<u8>,
    parsed: Parsed,
    judged: JudgedOfFile,
}

impl Memory {
    /// Forgets everything when files are now read otherwise.
    pub fn begin(&mut self, sources: &[&SourceFile], context: &Context) {
        let frame = Frame {
            variables: context.variables.clone(),
            paths: context.paths.clone(),
            templates: context.templates.clone(),
            has_kustomizations: sources.iter().any(|source| kustomization::is_file(&source.path)),
        };
        if frame != self.frame {
            self.files.clear();
            self.frame = frame;
        }
    }

    /// What is known of a file that is what and where it was.
    pub fn recall(&mut self, index: usize, source: &SourceFile) -> Option<(Parsed, JudgedOfFile)> {
        let remembered = self.files.get_mut(index)?.take()?;
        let is_same = remembered.path == source.path && remembered.content == source.content;
        is_same.then_some((remembered.parsed, remembered.judged))
    }

    /// Takes the place of everything that was known.
    pub fn keep(&mut self, sources: &[&SourceFile], parsed: Vec<Parsed>, judged: Vec<JudgedOfFile>) {
        let files = sources.iter().zip(parsed.into_iter().zip(judged));
        let remembered = |(source, (parsed, judged)): (&&SourceFile, (Parsed, JudgedOfFile))| {
            let (path, content) = (source.path.clone(), source.content.clone());
            Some(Remembered { path, content, parsed, judged })
        };
        self.files = files.map(remembered).collect();
    }
}
