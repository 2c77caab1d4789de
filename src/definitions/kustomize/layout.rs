//! Which files are kustomizations, and what the other files are to them.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::kustomization::{self, Purpose, Reference, folder, is_remote, join};
use crate::api::source::{SourceFile, Standing};
use crate::definitions::document::{Document, Parsed};
use crate::definitions::files;
use crate::definitions::roots::Roots;

use super::unreadable;

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    File(usize),
    Kustomization(usize),
    /// A folder without a kustomization.
    Folder,
    Remote,
    /// Not there, or not to be read.
    Missing,
}

/// What a file is to the kustomizations around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No kustomization has to do with it.
    Plain,
    Kustomization,
    /// A kustomization takes objects from it.
    Resource,
    /// The same, and Flux or Argo CD applies its objects as they are.
    Applied,
    Patch,
    /// Replacements or a configuration.
    Part,
    /// A kustomization that can not be read takes it, or may.
    Unbuilt,
    /// It lies beside a kustomization, or below one, that does not name it.
    Apart,
}

pub struct Layout<'a> {
    sources: &'a [&'a SourceFile],
    by_path: BTreeMap<&'a str, usize>,
    /// By index of the file.
    kustomizations: BTreeMap<usize, &'a Document>,
    /// Files of their name with nothing in them.
    empty: BTreeSet<usize>,
    /// Those that can not be read and concern definitions, with what they name.
    unreadable: BTreeMap<usize, Vec<Target>>,
    /// Files of Flux and Argo CD that can not be read and concern definitions.
    of_delivery: BTreeSet<usize>,
    roles: BTreeMap<usize, Role>,
    /// Those that no other one takes resources from, and those that Flux or Argo CD builds by themselves.
    pub tops: Vec<usize>,
}

impl<'a> Layout<'a> {
    pub fn of(
        sources: &'a [&'a SourceFile],
        links: &'a [&'a SourceFile],
        parsed: &'a [Parsed],
        (paths, roots): (&[String], &Roots),
    ) -> Self {
        let mut by_path: BTreeMap<&str, usize> =
            sources.iter().enumerate().map(|(index, source)| (source.path.as_str(), index)).collect();
        for link in links {
            if let Standing::LinkTo(target) = &link.standing
                && let Some(index) = by_path.get(target.as_str()).copied()
            {
                by_path.entry(link.path.as_str()).or_insert(index);
            }
        }
        let kustomizations = sources.iter().zip(parsed).enumerate().filter_map(|(index, (source, parsed))| {
            let document = parsed.documents.first().filter(|_| kustomization::is_file(&source.path))?;
            is_kustomization(document).then_some((index, document))
        });
        let kustomizations = kustomizations.collect();
        let named_so = sources.iter().enumerate().filter(|(_, source)| kustomization::is_file(&source.path));
        let empty = named_so.filter(|(_, source)| says_nothing(source)).map(|(index, _)| index).collect();
        let mut layout = Self {
            sources,
            by_path,
            kustomizations,
            empty,
            unreadable: BTreeMap::new(),
            of_delivery: BTreeSet::new(),
            roles: BTreeMap::new(),
            tops: Vec::new(),
        };
        if parsed.iter().any(Parsed::lacks_some) {
            let with_definitions = sources.iter().zip(parsed).filter(|(_, parsed)| unreadable::has_definition(parsed));
            let definitions: Vec<&str> = with_definitions.map(|(source, _)| source.path.as_str()).collect();
            layout.of_delivery = unreadable::of_delivery(sources, parsed, &definitions);
            layout.unreadable = layout.unreadable_of_ours(parsed, &definitions);
        }
        layout.assign_roles(paths, roots);
        layout
    }

    /// A repository has kustomizations of other programs as well: one is ours where definitions lie beside or below it, or in what it names.
    fn unreadable_of_ours(&self, parsed: &[Parsed], definitions: &[&str]) -> BTreeMap<usize, Vec<Target>> {
        let are_below = |file: usize| definitions.iter().any(|path| files::covers(folder(self.path(file)), path));
        let named = |file: usize, words: Vec<&str>| {
            let around = folder(self.path(file));
            words.into_iter().map(|word| self.target(around, word)).collect::<Vec<Target>>()
        };
        let is_of_ours = |target: &Target| match target {
            Target::File(file) => definitions.contains(&self.path(*file)),
            Target::Kustomization(other) => are_below(*other),
            Target::Folder | Target::Remote | Target::Missing => false,
        };
        let unreadable = unreadable::of(self.sources, parsed).into_iter();
        let with_targets = unreadable.map(|(file, words)| (file, named(file, words)));
        with_targets.filter(|(file, targets)| are_below(*file) || targets.iter().any(is_of_ours)).collect()
    }

    pub fn document(&self, kustomization: usize) -> Option<&'a Document> {
        self.kustomizations.get(&kustomization).copied()
    }

    /// Whether the file is called like a kustomization, and nothing stands in it.
    pub fn is_empty(&self, file: usize) -> bool {
        self.empty.contains(&file)
    }

    /// Whether it tells Flux or Argo CD of definitions, and can not be read.
    pub fn is_unreadable_delivery(&self, file: usize) -> bool {
        self.of_delivery.contains(&file)
    }

    /// Those of the empty ones that are asked for.
    pub fn empty_ones<'s>(&'s self, paths: &'s [String]) -> impl Iterator<Item = usize> + use<'s, 'a> {
        self.empty.iter().copied().filter(|file| self.is_asked_for(*file, paths))
    }

    fn is_asked_for(&self, file: usize, paths: &[String]) -> bool {
        let is_selected =
            |source: &&SourceFile| source.standing == Standing::Own && files::is_selected(&source.path, paths);
        self.sources.get(file).is_some_and(is_selected)
    }

    pub fn path(&self, file: usize) -> &'a str {
        self.sources.get(file).map_or("", |source| source.path.as_str())
    }

    pub fn role(&self, file: usize) -> Role {
        self.roles.get(&file).copied().unwrap_or(Role::Plain)
    }

    /// Whether the folder that was asked for is one that is built.
    pub fn of_root(&self) -> Option<usize> {
        self.tops.iter().copied().find(|top| folder(self.path(*top)).is_empty())
    }

    /// The folder of a kustomization as people call it.
    pub fn name(&self, kustomization: usize) -> &'a str {
        match folder(self.path(kustomization)) {
            "" => ".",
            folder => folder,
        }
    }

    pub fn references(&self, kustomization: usize) -> Vec<(Reference, Target)> {
        let Some(document) = self.document(kustomization) else { return Vec::new() };
        let around = folder(self.path(kustomization));
        let references = kustomization::references(&document.value).into_iter();
        references.map(|reference| (reference.clone(), self.target(around, &reference.path))).collect()
    }

    pub fn target(&self, around: &str, path: &str) -> Target {
        if is_remote(path) {
            return Target::Remote;
        }
        let Some(path) = join(around, path) else { return Target::Missing };
        if let Some(index) = self.by_path.get(path.as_str()) {
            return Target::File(*index);
        }
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let of_folder = kustomization::FILE_NAMES.iter().find_map(|name| self.by_path.get(inside(name).as_str()));
        if let Some(index) = of_folder {
            return Target::Kustomization(*index);
        }
        let below = inside("");
        let mut after = self.by_path.range(below.as_str()..);
        let is_folder = after.next().is_some_and(|(path, _)| path.starts_with(&below));
        if is_folder { Target::Folder } else { Target::Missing }
    }

    fn assign_roles(&mut self, paths: &[String], roots: &Roots) {
        let mut roles: BTreeMap<usize, Role> =
            self.kustomizations.keys().map(|index| (*index, Role::Kustomization)).collect();
        let mut taken = BTreeSet::new();
        let mut takers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for kustomization in self.kustomizations.keys() {
            for (reference, target) in self.references(*kustomization) {
                match (reference.purpose, target) {
                    (Purpose::Resource | Purpose::Component, Target::Kustomization(other)) => {
                        taken.insert(other);
                        takers.entry(other).or_default().push(*kustomization);
                    }
                    (Purpose::Resource, Target::File(file)) => {
                        roles.entry(file).or_insert(Role::Resource);
                        takers.entry(file).or_default().push(*kustomization);
                    }
                    (Purpose::Patch, Target::File(file)) => {
                        // A file can be named for both; then it is an object, too.
                        roles.entry(file).or_insert(Role::Patch);
                    }
                    (Purpose::Replacement | Purpose::Configuration, Target::File(file)) => {
                        roles.entry(file).or_insert(Role::Part);
                    }
                    _ => {}
                }
            }
        }
        let governed: BTreeMap<&str, ()> = self.kustomizations.keys().map(|it| (folder(self.path(*it)), ())).collect();
        for (file, takers) in &takers {
            if !self.is_applied_as_it_is(*file, takers, &governed, roots) {
                continue;
            }
            match roles.get_mut(file) {
                Some(role) if *role == Role::Resource => *role = Role::Applied,
                _ => {
                    taken.remove(file);
                }
            }
        }
        self.take_for_unreadable(&mut roles, &mut taken);
        for (index, source) in self.sources.iter().enumerate() {
            let is_governed = || files::nearest(&governed, &source.path).is_some();
            if !roles.contains_key(&index) && !files::is_of_root(&source.path) && is_governed() {
                roles.insert(index, Role::Apart);
            }
        }
        let is_component = |document: &Document| document.str("/kind") == Some("Component");
        let asked_for: Vec<usize> = self
            .kustomizations
            .iter()
            .filter(|(index, document)| self.is_asked_for(**index, paths) && !is_component(document))
            .map(|(index, _)| *index)
            .collect();
        self.tops = asked_for.iter().copied().filter(|index| !taken.contains(index)).collect();
        // What no top leads to goes round in a circle, or is taken by nothing that is asked for: the first of each shows it.
        let mut reached = BTreeSet::new();
        self.tops.iter().for_each(|top| self.reach(*top, &mut reached));
        self.leave_unbuilt(&mut roles, &mut reached);
        for kustomization in asked_for {
            if !reached.contains(&kustomization) {
                self.tops.push(kustomization);
                self.reach(kustomization, &mut reached);
            }
        }
        self.tops.sort_unstable();
        self.roles = roles;
    }

    /// Whether Flux or Argo CD applies the file, or builds the kustomization, by itself, whatever the `takers` make of it: its folder is
    /// named, or lies in one that is, without a kustomization around it. What takes from one folder twice is no such setup.
    fn is_applied_as_it_is(&self, file: usize, takers: &[usize], governed: &BTreeMap<&str, ()>, roots: &Roots) -> bool {
        let path = self.path(file);
        let own = folder(path);
        let is_kustomization = self.kustomizations.contains_key(&file);
        if is_kustomization && roots.is_one(own) {
            return true;
        }
        let inner = if is_kustomization { own } else { path };
        let Some(root) = roots.around(path) else { return false };
        let is_within = |path: &str| files::covers(root, path);
        let mut between = files::folders_around(inner).take_while(|it| is_within(it));
        !between.any(|it| governed.contains_key(it)) && !takers.iter().any(|taker| is_within(self.path(*taker)))
    }

    /// Gives its role to each file that a kustomization takes which can not be read: those that it names, and those beside it.
    fn take_for_unreadable(&self, roles: &mut BTreeMap<usize, Role>, taken: &mut BTreeSet<usize>) {
        roles.extend(self.unreadable.keys().map(|file| (*file, Role::Kustomization)));
        let folders: BTreeSet<&str> = self.unreadable.keys().map(|file| folder(self.path(*file))).collect();
        let beside = |(_, source): &(usize, &&SourceFile)| {
            folders.contains(folder(&source.path)) && !files::is_of_root(&source.path)
        };
        for (file, _) in self.sources.iter().enumerate().filter(beside) {
            roles.entry(file).or_insert(Role::Unbuilt);
        }
        for target in self.unreadable.values().flatten() {
            match target {
                Target::File(file) if !files::is_of_root(self.path(*file)) => {
                    roles.entry(*file).or_insert(Role::Unbuilt);
                }
                Target::Kustomization(other) => {
                    taken.insert(*other);
                }
                _ => {}
            }
        }
    }

    /// What only kustomizations take that can not be read is built by nobody, whatever other ones stand between.
    fn leave_unbuilt(&self, roles: &mut BTreeMap<usize, Role>, reached: &mut BTreeSet<usize>) {
        let mut below = BTreeSet::new();
        for target in self.unreadable.values().flatten() {
            if let Target::Kustomization(other) = target {
                self.reach(*other, &mut below);
            }
        }
        let files_of = |kustomizations: &BTreeSet<usize>| -> BTreeSet<usize> {
            let targets = kustomizations.iter().flat_map(|it| self.references(*it)).map(|(_, target)| target);
            targets.filter_map(|target| if let Target::File(file) = target { Some(file) } else { None }).collect()
        };
        let built = files_of(reached);
        let unbuilt = files_of(&below.difference(reached).copied().collect());
        for file in unbuilt.difference(&built).filter(|file| !self.kustomizations.contains_key(file)) {
            roles.insert(*file, Role::Unbuilt);
        }
        reached.extend(below);
    }

    /// The kustomizations, and all that they take from.
    pub fn below(&self, kustomizations: &[usize]) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        kustomizations.iter().for_each(|it| self.reach(*it, &mut reached));
        reached
    }

    /// Adds the kustomization, and all that it takes from.
    fn reach(&self, kustomization: usize, reached: &mut BTreeSet<usize>) {
        let mut next = vec![kustomization];
        while let Some(file) = next.pop() {
            if !reached.insert(file) {
                continue;
            }
            let taken = self.references(file).into_iter().filter_map(|(reference, target)| match target {
                Target::Kustomization(other) => {
                    matches!(reference.purpose, Purpose::Resource | Purpose::Component).then_some(other)
                }
                _ => None,
            });
            next.extend(taken);
        }
    }
}

/// Flux has a kind of the same name, which is no such file. One of another kind, or none, that says that it is of kustomize is a mistake to be
/// named.
fn is_kustomization(document: &Document) -> bool {
    let group = document.str("/apiVersion").map(|text| text.split('/').next().unwrap_or(text));
    let kind = document.str("/kind").unwrap_or("Kustomization");
    let is_of_kind = ["Kustomization", "Component"].iter().any(|it| it.eq_ignore_ascii_case(kind));
    document.value.is_object() && group.map_or(is_of_kind, |group| group == kustomization::GROUP)
}

/// Nothing but comments.
fn says_nothing(source: &SourceFile) -> bool {
    let Ok(text) = str::from_utf8(&source.content) else { return false };
    let is_nothing = |line: &str| line.is_empty() || line.starts_with('#') || line == "---";
    source.has_content() && text.trim_start_matches('\u{feff}').lines().all(|line| is_nothing(line.trim()))
}
