//! What is kept from one reading of a repository for the next, so that a change of one file costs that of one file. An editor asks
//! after each key that is pressed. The findings are those of a reading without it.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{Context, Flux};
use super::document::{Document, Parsed};
use super::judging::Judged;
use super::versions::Installed;
use crate::api::kustomization;
use crate::api::source::SourceFile;

/// The files as they were read last, and no others.
#[derive(Debug, Default)]
pub struct Memory {
    frame: Frame,
    /// The files in the order of their paths, which gives each its index.
    files: Vec<Option<Remembered>>,
    built: JudgedOfBuilds,
    /// What Flux put in the place of variables.
    of_flux: Flux,
}

/// What all files are read by. Once it changes, nothing that was known counts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Frame {
    variables: BTreeMap<String, String>,
    paths: Vec<String>,
    templates: BTreeSet<String>,
    has_kustomizations: bool,
    karpenter: Option<Installed>,
    baseline: Option<String>,
}

/// Documents of a file that were judged alone, by their place in it.
pub type JudgedOfFile = BTreeMap<usize, Judged>;

/// Objects that kustomizations built, as they were built and judged, by the path of the kustomization and the place of
/// the object in it.
pub type JudgedOfBuilds = BTreeMap<(String, usize), (Document, Judged)>;

/// What is known of documents while they are judged, and is kept for the next time.
#[derive(Debug, Default)]
pub struct KnownJudged {
    /// The documents of each file, by the index of the file.
    pub files: Vec<JudgedOfFile>,
    pub built: JudgedOfBuilds,
    /// The objects that kustomizations built last time.
    built_before: JudgedOfBuilds,
}

impl KnownJudged {
    /// What was found in an object that a kustomization built. An object that it built before, the same and from the
    /// same places, is not judged again.
    pub fn of_built(&mut self, by: &str, number: usize, document: &Document, judge: impl FnOnce() -> Judged) -> Judged {
        let key = (by.to_owned(), number);
        let known = self.built_before.remove(&key).filter(|(before, _)| before.is_same(document));
        let judged = known.map_or_else(judge, |(_, judged)| judged);
        self.built.insert(key, (document.clone(), judged.clone()));
        judged
    }
}

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
            karpenter: context.karpenter,
            baseline: context.baseline.clone(),
        };
        if frame != self.frame {
            self.files.clear();
            self.built.clear();
            self.frame = frame;
        }
    }

    /// What is known of a file whose path and content did not change.
    pub fn recall(&mut self, index: usize, source: &SourceFile) -> Option<(Parsed, JudgedOfFile)> {
        let remembered = self.files.get_mut(index)?.take()?;
        let is_same = remembered.path == source.path && remembered.content == source.content;
        is_same.then_some((remembered.parsed, remembered.judged))
    }

    /// What is known of documents. It is forgotten where Flux now has other values for variables.
    pub fn judged(&mut self, mut files: Vec<JudgedOfFile>, of_flux: &Flux) -> KnownJudged {
        let mut built_before = std::mem::take(&mut self.built);
        if self.of_flux != *of_flux {
            self.of_flux.clone_from(of_flux);
            files.iter_mut().for_each(JudgedOfFile::clear);
            built_before.clear();
        }
        KnownJudged { files, built: JudgedOfBuilds::new(), built_before }
    }

    /// Takes the place of everything that was known.
    pub fn keep(&mut self, sources: &[&SourceFile], parsed: Vec<Parsed>, judged: KnownJudged) {
        self.built = judged.built;
        let files = sources.iter().zip(parsed.into_iter().zip(judged.files));
        let remembered = |(source, (parsed, judged)): (&&SourceFile, (Parsed, JudgedOfFile))| {
            let (path, content) = (source.path.clone(), source.content.clone());
            Some(Remembered { path, content, parsed, judged })
        };
        self.files = files.map(remembered).collect();
    }
}
