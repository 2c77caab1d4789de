//! Which files are read: what lies in the folder that was asked for, what links stand for, and what kustomizations name.
//!
//! The same walk over a folder on disk and over the tree of a commit. Paths have `/` between their parts; those of
//! [`Files`] are relative to the root of everything that may be reached, those of [`Found`] to the folder that was asked for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::collect::{Collector, Content, LeftOut, LimitError};
use crate::api::kustomization::{self, join};
use crate::api::source::{Standing, may_hold_definitions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Submodule,
}

pub(super) struct Entry {
    pub name: String,
    pub kind: Kind,
}

/// A name that several entries of a folder are shown by, since they are no text: only one of them could be read by it.
pub(super) fn alike(entries: &[Entry]) -> Option<&str> {
    let odd = entries.iter().filter(|entry| entry.name.contains(char::REPLACEMENT_CHARACTER));
    let mut names = BTreeSet::new();
    odd.map(|entry| entry.name.as_str()).find(|name| !names.insert(*name))
}

/// Where files lie.
pub(super) trait Files {
    type Error: From<LimitError>;
    /// What is in a folder, itself no link; nothing if it is gone.
    fn entries(&self, folder: &str) -> Result<Vec<Entry>, Self::Error>;
    /// What the path leads to when every link in it is followed. `None`: nowhere, or out of what may be reached.
    fn resolve(&self, path: &str) -> Result<Option<(String, Kind)>, Self::Error>;
    /// The content of a file, itself no link; `None` if it is gone.
    fn content(&self, path: &str, known_as: &str) -> Result<Option<Content>, Self::Error>;
    /// What a submodule is at, where that is known.
    fn commit_of(&self, _place: &str) -> Option<String> {
        None
    }
    /// Whether the repository holds the file, so that who wrote the definitions has it anyway. Of any other file somebody might make the
    /// machine on which it is read say what stands in it.
    fn is_of_repository(&self, place: &str) -> bool;
}

/// Where a walk begins, and how far it may go.
pub(super) struct WalkScope {
    /// The folder that was asked for, itself no link.
    pub root: String,
    /// Links are followed within this folder.
    pub links: String,
}

/// Whether the file may be read because a link leads to it: the repository's own, and what the walk comes by anyway.
fn may_be_linked<F: Files>(files: &F, scope: &WalkScope, place: &str) -> bool {
    is_within(&scope.links, place) && (holds_definitions(&scope.root, place) || files.is_of_repository(place))
}

/// Whether the file may be read because the kustomization at `by` names it: also what lies in its own folder, which is as far as `kustomize
/// build` goes.
fn may_be_named<F: Files>(files: &F, scope: &WalkScope, by: &str, place: &str) -> bool {
    let is_beside = holds_definitions(&scope.root, place) || holds_definitions(kustomization::folder(by), place);
    is_beside || files.is_of_repository(place)
}

/// Whether the file lies in the folder, and a walk from there would read it.
fn holds_definitions(folder: &str, place: &str) -> bool {
    let rest = if folder.is_empty() {
        Some(place)
    } else {
        place.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'))
    };
    // Kubernetes mounts a ConfigMap as links into a folder `..2026_11_27`.
    let is_of_mount = |part: &&str| part.len() > 2 && part.starts_with("..");
    let without = |rest: &str| rest.split('/').filter(|part| !is_of_mount(part)).collect::<Vec<_>>().join("/");
    rest.is_some_and(|rest| may_hold_definitions(&without(rest)))
}

/// A file to read.
#[derive(Debug)]
pub(super) struct Found {
    /// Where it lies, itself no link.
    pub place: String,
    pub standing: Standing,
}

/// By path.
pub(super) type Finds = BTreeMap<String, Found>;

struct Walk<'f, F: Files> {
    files: &'f F,
    scope: &'f WalkScope,
    collector: &'f mut Collector,
    finds: Finds,
    /// Path of the find that lies there.
    by_place: BTreeMap<String, String>,
    entered: BTreeSet<String>,
    /// Links to follow, by path.
    links: BTreeMap<String, (String, Kind, usize)>,
    /// Folders that were entered by another way, by path.
    again: Vec<(String, String)>,
}

/// Finds everything that belongs to the folder.
pub(super) fn find<F: Files>(files: &F, scope: &WalkScope, collector: &mut Collector) -> Result<Finds, F::Error> {
    let mut walk = Walk::new(files, scope, collector);
    walk.folder(scope.root.clone(), String::new(), 0)?;
    walk.follow()?;
    walk.complete()?;
    walk.mark_templates()?;
    Ok(walk.finds)
}

/// Finds one file of the folder, and what says how it is used: the kustomization beside it.
pub(super) fn find_one<F: Files>(
    files: &F,
    scope: &WalkScope,
    (name, place): (String, String),
    collector: &mut Collector,
) -> Result<Finds, F::Error> {
    let mut walk = Walk::new(files, scope, collector);
    walk.add(name, place, Standing::Own);
    walk.kustomization_of("")?;
    walk.complete()?;
    walk.mark_templates()?;
    Ok(walk.finds)
}

/// Hands the content of the files to the collector.
pub(super) fn collect<F: Files>(
    files: &F,
    scope: &WalkScope,
    finds: Finds,
    collector: &mut Collector,
) -> Result<(), F::Error> {
    let is_link = |found: &Found| matches!(found.standing, Standing::LinkTo(_));
    let places = finds.iter().filter(|(_, found)| !is_link(found));
    let mut by_place: BTreeMap<String, String> =
        places.map(|(path, found)| (found.place.clone(), path.clone())).collect();
    for (path, found) in finds {
        if is_link(&found) {
            collector.add(path, Content::nothing(), found.standing)?;
            continue;
        }
        let Some(content) = files.content(&found.place, &path)? else { continue };
        let Some(target) = link_as_text(files, scope, &found.place, content.bytes())? else {
            collector.add(path, content, found.standing)?;
            continue;
        };
        if let Some(first) = by_place.get(&target) {
            collector.add(path, Content::nothing(), Standing::LinkTo(first.clone()))?;
        } else if let Some(content) = files.content(&target, &path)? {
            by_place.insert(target, path.clone());
            collector.add(path, content, found.standing)?;
        }
    }
    Ok(())
}

/// Longer than any path that somebody links to.
pub(super) const LINK_BYTES_MAX: usize = 1024;

/// The file that a link leads to which is a file with the path as its only text: what Git makes of a link where the file
/// system has none, and what is left of one that was copied by such a program.
pub(super) fn link_as_text<F: Files>(
    files: &F,
    scope: &WalkScope,
    place: &str,
    content: &[u8],
) -> Result<Option<String>, F::Error> {
    let text = std::str::from_utf8(content).ok().filter(|text| text.len() <= LINK_BYTES_MAX);
    let text = text.filter(|text| text.contains('/') || text.contains('.'));
    let Some(text) = text.filter(|text| !text.contains(|c: char| c.is_whitespace() || c == ':')) else {
        return Ok(None);
    };
    let target = join(kustomization::folder(place), text).filter(|path| !path.starts_with("..") && path != place);
    let Some(target) = target.filter(|target| may_hold_definitions(target)) else { return Ok(None) };
    let found = files.resolve(&target)?;
    let target = found.filter(|(_, kind)| *kind == Kind::File).map(|(target, _)| target);
    Ok(target.filter(|target| may_be_linked(files, scope, target)))
}

/// Links in links; a circle of them ends here.
const LINKS_MAX: usize = 40;

/// What stands at a path, links not followed.
pub(super) enum Step {
    There(Kind),
    LeadsTo(String),
}

/// Follows every link of a path within everything that may be reached. `None`: it leads nowhere, or out.
pub(super) fn followed<E>(
    path: &str,
    mut step: impl FnMut(&str) -> Result<Option<Step>, E>,
) -> Result<Option<(String, Kind)>, E> {
    let mut place = String::new();
    let mut kind = Kind::Folder;
    let mut rest: Vec<String> = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop() {
        let Some(next) = join(&place, &part).filter(|next| kind == Kind::Folder && !next.starts_with("..")) else {
            return Ok(None);
        };
        match step(&next)? {
            None => return Ok(None),
            Some(Step::There(next_kind)) => (place, kind) = (next, next_kind),
            Some(Step::LeadsTo(target)) => {
                links += 1;
                if links > LINKS_MAX || target.starts_with('/') {
                    return Ok(None);
                }
                rest.extend(parts(&target));
            }
        }
    }
    Ok(Some((place, kind)))
}

/// The parts of a path, the first one last.
fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}

fn is_within(folder: &str, path: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl<'f, F: Files> Walk<'f, F> {
    fn new(files: &'f F, scope: &'f WalkScope, collector: &'f mut Collector) -> Self {
        let (finds, by_place, entered, links, again) = Default::default();
        Self { files, scope, collector, finds, by_place, entered, links, again }
    }

    /// A file that was found before counts once.
    fn add(&mut self, path: String, place: String, standing: Standing) {
        let standing = match self.by_place.get(&place) {
            Some(first) if *first == path => return,
            Some(first) => Standing::LinkTo(first.clone()),
            None => standing,
        };
        if !matches!(standing, Standing::LinkTo(_)) {
            self.by_place.insert(place.clone(), path.clone());
        }
        self.finds.entry(path).or_insert(Found { place, standing });
    }

    /// Everything in a folder but its links, which wait until all that lies there by itself is found.
    fn folder(&mut self, place: String, path: String, depth: usize) -> Result<(), F::Error> {
        let mut folders = vec![(place, path, depth)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            if !self.entered.insert(folder.clone()) {
                self.again.push((prefix, folder));
                continue;
            }
            for Entry { name, kind } in self.files.entries(&folder)? {
                let (path, place) = (below(&prefix, &name), below(&folder, &name));
                self.collector.enter(&path, depth)?;
                if name.starts_with('.') {
                    continue;
                }
                match kind {
                    Kind::Folder => folders.push((place, path, depth + 1)),
                    // What a link to a folder leads to is judged file by file.
                    Kind::File if may_hold_definitions(&path) && may_be_linked(self.files, self.scope, &place) => {
                        self.add(path, place, Standing::Own);
                    }
                    Kind::File => {}
                    Kind::Submodule => {
                        let commit = self.files.commit_of(&place);
                        self.collector.leave_out(&path, LeftOut::Submodule { commit })?;
                    }
                    Kind::Link => match self.files.resolve(&place)? {
                        Some((target, kind)) if self.may_follow(&target, kind) => {
                            self.links.insert(path, (target, kind, depth));
                        }
                        _ => self.collector.leave_out(&path, LeftOut::SymbolicLink)?,
                    },
                }
            }
        }
        Ok(())
    }

    fn may_follow(&self, target: &str, kind: Kind) -> bool {
        is_within(&self.scope.links, target) && (kind != Kind::File || may_be_linked(self.files, self.scope, target))
    }

    /// Follows links, in the order of their paths. Ends, since no folder is entered twice.
    fn follow(&mut self) -> Result<(), F::Error> {
        while let Some((path, (target, kind, depth))) = self.links.pop_first() {
            match kind {
                Kind::File if may_hold_definitions(&path) => self.add(path, target, Standing::Own),
                Kind::Folder => self.folder(target, path, depth + 1)?,
                Kind::File | Kind::Link | Kind::Submodule => {}
            }
        }
        for (path, folder) in std::mem::take(&mut self.again) {
            let beginning = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let places = self.by_place.range(beginning.clone()..);
            let inside = places.take_while(|(place, _)| place.starts_with(&beginning));
            let names: Vec<String> = inside.map(|(place, _)| place.clone()).collect();
            for place in names {
                let Some(rest) = place.strip_prefix(&beginning) else { continue };
                let path = below(&path, rest);
                self.collector.enter(&path, 0)?;
                self.add(path, place, Standing::Own);
            }
        }
        Ok(())
    }

    /// Adds what kustomizations name and the walk did not come by.
    fn complete(&mut self) -> Result<(), F::Error> {
        let is_kustomization = |path: &&String| kustomization::is_file(path);
        let mut waiting: BTreeSet<String> = self.finds.keys().filter(is_kustomization).cloned().collect();
        let mut seen = waiting.clone();
        while let Some(path) = waiting.pop_first() {
            for reference in self.references(&path)? {
                let target = join(kustomization::folder(&path), &reference);
                let Some(target) = target.filter(|_| !kustomization::is_remote(&reference)) else { continue };
                self.collector.enter(&target, 0)?;
                if let Some(found) = self.named(target, &path)?
                    && seen.insert(found.clone())
                {
                    waiting.insert(found);
                }
            }
        }
        Ok(())
    }

    /// What the kustomization names; nothing for what is none.
    fn references(&self, path: &str) -> Result<Vec<String>, F::Error> {
        let Some(found) = self.finds.get(path) else { return Ok(Vec::new()) };
        let content = self.files.content(&found.place, path)?.unwrap_or(Content::TooLarge);
        let text = String::from_utf8_lossy(content.bytes());
        let first = serde_yaml::Deserializer::from_str(&text).next();
        let value = first.and_then(|document| serde_json::Value::deserialize(document).ok());
        let references = value.as_ref().map(kustomization::references).unwrap_or_default();
        Ok(references.into_iter().map(|reference| reference.path).collect())
    }

    /// Adds what is named by this path, and gives the path of the kustomization if it is a folder with one.
    fn named(&mut self, path: String, by: &str) -> Result<Option<String>, F::Error> {
        if self.finds.contains_key(&path) {
            return Ok(None);
        }
        match self.reach(&path)? {
            Some((place, Kind::File)) => {
                let by = self.finds.get(by).map(|found| found.place.as_str()).unwrap_or_default();
                if may_be_named(self.files, self.scope, by, &place) {
                    self.add(path, place, Standing::Named);
                }
                Ok(None)
            }
            Some((_, Kind::Folder)) => self.kustomization_of(&path),
            _ => Ok(None),
        }
    }

    fn kustomization_of(&mut self, folder: &str) -> Result<Option<String>, F::Error> {
        for name in kustomization::FILE_NAMES {
            let path = below(folder, name);
            if self.finds.contains_key(&path) {
                return Ok(Some(path));
            }
            if let Some((place, Kind::File)) = self.reach(&path)?
                && (kustomization::is_file(&place) || self.files.is_of_repository(&place))
            {
                self.add(path.clone(), place, Standing::Named);
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// What was asked for may lie in a chart, whose Chart.yaml is not among it.
    fn mark_templates(&mut self) -> Result<(), F::Error> {
        let mut folder = self.scope.root.as_str();
        while !folder.is_empty() {
            let (above, name) = folder.rsplit_once('/').unwrap_or(("", folder));
            let is_of_chart = name == "templates"
                && matches!(self.files.resolve(&below(above, "Chart.yaml"))?, Some((_, Kind::File)));
            for found in self.finds.values_mut().filter(|it| is_of_chart && it.standing == Standing::Own) {
                if is_within(folder, &found.place) {
                    found.standing = Standing::Template;
                }
            }
            folder = above;
        }
        Ok(())
    }

    /// Where a path that is relative to the folder that was asked for leads.
    fn reach(&self, path: &str) -> Result<Option<(String, Kind)>, F::Error> {
        let Some(whole) = join(&self.scope.root, path).filter(|whole| !whole.starts_with("..")) else {
            return Ok(None);
        };
        self.files.resolve(&whole)
    }
}
