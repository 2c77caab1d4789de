//! What Flux is told, in the files themselves, to make of the definitions below a folder: the Kustomizations of
//! `kustomize.toolkit.fluxcd.io` that stand in the repository, which of them a folder is for, and what they put in the place of variables.
//!
//! Values come from `spec.postBuild.substitute`, and from the ConfigMaps of `substituteFrom` that stand in the files as well. A Secret is
//! never read: what only it knows has no value here.
//! Source: Flux, Kustomization, "Post build variable substitution".

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::document::{self, Document, Parsed, scalar};
use super::files;
use super::limits::FILE_BYTES;
use crate::api::kustomization::{folder, join};
use crate::api::source::{SourceFile, Standing};

/// The group of Flux's own Kustomization, which is no file of kustomize.
pub const GROUP: &str = "kustomize.toolkit.fluxcd.io";
/// Where [`FluxKustomization::document`] has patches, of the form that a file of kustomize has.
pub const PATCHES: &str = "spec/patches";

/// Where variables get their values: file, and line.
pub type Places = BTreeMap<String, (String, usize)>;

/// Variables and their values.
pub type Values = BTreeMap<String, String>;

/// A Kustomization of Flux that stands in the files.
#[derive(Clone, Debug)]
pub struct FluxKustomization {
    /// The document, with the place of each value. Its `spec.patches` are at [`PATCHES`].
    pub document: Document,
    /// The file that it stands in.
    pub file: String,
    /// What it builds, from the root of the repository; empty for the root.
    pub folder: String,
    /// What it puts in the place of variables, as far as the files say so.
    pub variables: Values,
    /// Where each of these variables is given.
    pub places: Places,
    /// All variables that it may have a value for, with those of ConfigMaps that are patches or are for other clusters.
    names: BTreeSet<String>,
    /// What it takes variables from without being read here: `Secret cluster-secrets`.
    pub unread: Vec<String>,
}

impl FluxKustomization {
    pub fn name(&self) -> &str {
        self.document.str("/metadata/name").unwrap_or_default()
    }

    /// Whether it replaces variables.
    fn is_told(&self) -> bool {
        [SUBSTITUTE, SUBSTITUTE_FROM].iter().any(|pointer| self.document.value.pointer(pointer).is_some())
    }
}

/// All Kustomizations of Flux, by the folder that they build.
#[derive(Clone, Debug, Default)]
pub struct FluxKustomizations {
    by_folder: BTreeMap<String, Vec<FluxKustomization>>,
    /// The Kustomizations that are for another cluster.
    of_others: Vec<FluxKustomization>,
    /// Whether something in the files, such as a patch, may tell the Kustomizations of more variables.
    may_be_told_more: bool,
}

impl FluxKustomizations {
    /// `parsed` has the documents of each of the files. Flux has already built what a cluster has.
    pub fn of(sources: &[&SourceFile], parsed: &[Parsed]) -> Self {
        let files = || sources.iter().zip(parsed).filter(|(source, _)| source.standing != Standing::Applied);
        let documents = || files().flat_map(|(source, parsed)| parsed.documents.iter().map(|it| (*source, it)));
        let mut found: Vec<FluxKustomization> =
            documents().filter_map(|(source, document)| kustomization(source, document)).collect();
        let is_taken = found.iter().any(|it| it.document.items(SUBSTITUTE_FROM).next().is_some());
        let maps = documents().filter(|_| is_taken).filter_map(|(source, document)| ConfigMap::of(source, document));
        let maps: Vec<ConfigMap<'_>> = maps.collect();
        found.iter_mut().for_each(|it| take_values(it, &maps));
        from_the_folder_read(&mut found, sources);
        let may_be_told_more = may_be_told_more(&found, sources);
        let mut by_folder: BTreeMap<String, Vec<FluxKustomization>> = BTreeMap::new();
        for kustomization in found {
            by_folder.entry(kustomization.folder.clone()).or_default().push(kustomization);
        }
        Self { by_folder, of_others: Vec::new(), may_be_told_more }
    }

    /// Finds the Kustomizations in files that are not parsed yet.
    pub fn in_files(files: &[SourceFile]) -> Self {
        let sources: Vec<&SourceFile> = files.iter().collect();
        let parse = |(index, source): (usize, &&SourceFile)| match may_tell(source) {
            true => document::parse(index, &Arc::from(str::from_utf8(&source.content).unwrap_or_default())),
            false => Parsed::default(),
        };
        let parsed: Vec<Parsed> = sources.iter().enumerate().map(parse).collect();
        Self::of(&sources, &parsed)
    }

    /// The Kustomizations that build a file, or what a kustomization of this path makes. They are those for the nearest
    /// folder around it that any is for. There is more than one where several clusters get the same folder.
    pub fn for_file(&self, path: &str) -> &[FluxKustomization] {
        files::nearest(&self.by_folder, path).map_or(&[], |(_, all)| all.as_slice())
    }

    /// The folder of the Kustomizations that build this path.
    pub fn folder_of(&self, path: &str) -> Option<&str> {
        files::nearest(&self.by_folder, path).map(|(folder, _)| folder)
    }

    /// Leaves, where several build a folder, those that are for this cluster, if it is known which ones are.
    pub fn keep(&mut self, cluster: Option<&str>) {
        for all in self.by_folder.values_mut() {
            self.of_others.extend(taken_of_others(all, cluster, |it| &it.file));
        }
    }

    /// The Kustomizations that are for another cluster.
    pub fn of_others(&self) -> &[FluxKustomization] {
        &self.of_others
    }

    /// All Kustomizations of Flux, by the folder that they build.
    pub fn folders(&self) -> impl Iterator<Item = (&str, &[FluxKustomization])> {
        self.by_folder.iter().map(|(folder, all)| (folder.as_str(), all.as_slice()))
    }

    /// What stands for variables below each of the folders. Where several clusters get a folder, these are the values
    /// that all of them say alike.
    pub fn values(&self) -> BTreeMap<String, Values> {
        let values = self.by_folder.iter().map(|(folder, all)| {
            let shared = all.iter().map(|it| it.variables.clone()).reduce(|one, other| {
                let is_alike = |(name, value): &(String, String)| other.get(name) == Some(value);
                one.into_iter().filter(is_alike).collect()
            });
            (folder.clone(), shared.unwrap_or_default())
        });
        values.collect()
    }

    /// Folders below which variables are replaced: Flux leaves them alone where it is told of none.
    pub fn substituted(&self) -> BTreeSet<String> {
        let folders = self.by_folder.iter().filter(|(_, all)| all.iter().any(FluxKustomization::is_told));
        folders.map(|(folder, _)| folder.clone()).collect()
    }

    /// All variables that have a value, by the folder. A folder is here where Flux replaces variables and the files say
    /// all that it is told: Flux writes nothing in the place of any other variable there. Where several clusters get a
    /// folder, the variables of all of them are in it.
    pub fn names_told(&self) -> BTreeMap<String, BTreeSet<String>> {
        let is_all_said = |it: &FluxKustomization| it.is_told() && it.unread.is_empty();
        let folders = self.by_folder.iter().filter(|(_, all)| !self.may_be_told_more && all.iter().all(is_all_said));
        folders.map(|(folder, all)| (folder.clone(), all.iter().flat_map(|it| it.names.clone()).collect())).collect()
    }

    /// Where the values of variables are given, by the folder that they are for.
    pub fn places(&self) -> BTreeMap<String, Places> {
        let places = |all: &[FluxKustomization]| all.iter().rev().flat_map(|it| it.places.clone()).collect();
        self.by_folder.iter().map(|(folder, all)| (folder.clone(), places(all))).collect()
    }

    /// What each Kustomization says of its folder, with its name and its file. Only folders of which several say
    /// different things are here.
    pub fn of_clusters(&self) -> BTreeMap<String, Vec<(String, Values)>> {
        let differ =
            |all: &[FluxKustomization]| all.iter().any(|it| Some(&it.variables) != all.first().map(|it| &it.variables));
        let said = |it: &FluxKustomization| (format!("`{}` in {}", it.name(), it.file), it.variables.clone());
        let folders = self.by_folder.iter();
        folders.map(|(folder, all)| (folder.clone(), all.iter().filter(|_| differ(all)).map(said).collect())).collect()
    }
}

/// Patches of kustomize and of Flux may add variables, too, in whatever form. So each word of a patch counts that is in
/// none of the Kustomizations.
fn may_be_told_more(found: &[FluxKustomization], sources: &[&SourceFile]) -> bool {
    const WORD: &str = "postBuild";
    let is_told = |it: &&FluxKustomization| it.document.value.pointer("/spec/postBuild").is_some();
    let known = found.iter().filter(is_told).count();
    let texts = || sources.iter().filter_map(|source| str::from_utf8(&source.content).ok());
    known > 0 && texts().map(|text| text.matches(WORD).count()).sum::<usize>() > known
}

/// Paths are from the root of the repository, and files from the folder that was asked for. The part of a path that
/// leads to that folder is taken off where more of the paths exist without it than with it. Each path is looked up once
/// for each folder around it.
fn from_the_folder_read(found: &mut Vec<FluxKustomization>, sources: &[&SourceFile]) {
    if found.is_empty() {
        return;
    }
    let folders: BTreeSet<String> = sources.iter().flat_map(|source| folders_around(&source.path)).collect();
    let is_there = |it: &str| !it.is_empty() && folders.contains(it);
    let paths = || found.iter().map(|it| it.folder.as_str());
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths() {
        let above = folders_around(path).filter(|above| below(path, above).is_some_and(is_there));
        above.for_each(|above| *there.entry(above).or_default() += 1);
    }
    let as_written = paths().filter(|path| is_there(path)).count();
    // The shorter one of two takes off less.
    let best = there.into_iter().max_by_key(|(above, count)| (*count, Reverse(above.len())));
    let Some((above, _)) = best.filter(|(_, count)| *count > as_written) else { return };
    found.retain_mut(|it| {
        let folder = below(&it.folder, &above).map(str::to_owned);
        let is_kept = folder.is_some() || it.folder.is_empty();
        it.folder = folder.unwrap_or_default();
        is_kept
    });
}

/// The folders around a path, from the nearest to the root.
fn folders_around(path: &str) -> impl Iterator<Item = String> + use<> {
    let nearest = Some(folder(path).to_owned());
    std::iter::successors(nearest, |it| (!it.is_empty()).then(|| folder(it).to_owned()))
}

/// `path` as it is called in the folder `above`.
fn below<'p>(path: &'p str, above: &str) -> Option<&'p str> {
    path.strip_prefix(above)?.strip_prefix('/')
}

/// Takes out what is told of one folder for other clusters. Where something lies in a folder of this cluster's name,
/// all that lies in none is for other clusters.
pub fn taken_of_others<T>(all: &mut Vec<T>, cluster: Option<&str>, file: impl Fn(&T) -> &str) -> Vec<T> {
    let is_own = |it: &T| cluster.is_some_and(|cluster| folder(file(it)).split('/').any(|part| part == cluster));
    let (own, others): (Vec<T>, Vec<T>) = std::mem::take(all).into_iter().partition(is_own);
    if own.is_empty() {
        *all = others;
        return Vec::new();
    }
    *all = own;
    others
}

/// Variables are few and short; what else is kept in ConfigMaps, such as dashboards, is not.
const MAP_BYTES_MAX: usize = 64 << 10;

/// Whether a file may have such a Kustomization, or what one takes values from.
pub fn may_tell(source: &SourceFile) -> bool {
    let text = str::from_utf8(&source.content).unwrap_or_default();
    let is_read = source.has_content() && source.standing != Standing::Applied && text.len() <= FILE_BYTES;
    is_read && (text.contains(GROUP) || (text.len() <= MAP_BYTES_MAX && text.contains("ConfigMap")))
}

/// Whether any of the files may have one.
pub fn is_told(sources: &[&SourceFile]) -> bool {
    let has_one = |it: &&SourceFile| str::from_utf8(&it.content).is_ok_and(|text| text.contains(GROUP));
    sources.iter().filter(|it| it.has_content()).any(has_one)
}

const SUBSTITUTE: &str = "/spec/postBuild/substitute";
const SUBSTITUTE_FROM: &str = "/spec/postBuild/substituteFrom";

/// A Kustomization that is not whole is a patch of another one.
fn kustomization(source: &SourceFile, document: &Document) -> Option<FluxKustomization> {
    let is_whole = ["/spec/path", "/spec/sourceRef"].iter().any(|it| document.value.pointer(it).is_some());
    if document.group() != GROUP || document.str("/kind") != Some("Kustomization") || document.broken || !is_whole {
        return None;
    }
    // A Kustomization without a path is for the root. A path that begins with a slash is from the root, too.
    let path = document.str("/spec/path").unwrap_or_default();
    let folder = join("", path.trim_start_matches('/')).filter(|it| !it.starts_with("..") && !it.contains("${"))?;
    let (file, document) = (source.path.clone(), document.clone());
    Some(FluxKustomization {
        document,
        file,
        folder,
        variables: Values::new(),
        places: Places::new(),
        names: BTreeSet::new(),
        unread: Vec::new(),
    })
}

struct ConfigMap<'d> {
    file: &'d str,
    document: &'d Document,
}

impl<'d> ConfigMap<'d> {
    fn of(source: &'d SourceFile, document: &'d Document) -> Option<Self> {
        let is_one = document.str("/apiVersion") == Some("v1") && document.str("/kind") == Some("ConfigMap");
        (is_one && !document.broken).then_some(Self { file: &source.path, document })
    }

    fn is_called(&self, name: &str, namespace: Option<&str>) -> bool {
        let own = self.document.str("/metadata/namespace");
        self.document.str("/metadata/name") == Some(name) && own.zip(namespace).is_none_or(|(own, of)| own == of)
    }

    fn values(&self) -> impl Iterator<Item = (String, String)> {
        self.document.members("/data").filter_map(|(_, name, value)| Some((name.to_owned(), text(value)?)))
    }
}

/// Variables that are written in the Kustomization come before those that it takes from ConfigMaps. A later ConfigMap
/// comes before an earlier one.
fn take_values(kustomization: &mut FluxKustomization, maps: &[ConfigMap<'_>]) {
    let document = kustomization.document.clone();
    let namespace = document.str("/metadata/namespace");
    for (_, from) in document.items(SUBSTITUTE_FROM) {
        let of = |field: &str| from.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (of("kind"), of("name"));
        let found = maps.iter().filter(|it| kind == "ConfigMap" && it.is_called(name, namespace));
        kustomization
            .names
            .extend(found.clone().flat_map(|it| it.document.members("/data")).map(|(_, name, _)| name.to_owned()));
        match meant(&kustomization.file, found) {
            Some(map) => {
                kustomization.variables.extend(map.values());
                kustomization.places.extend(places(map.file, map.document, "/data"));
            }
            None => kustomization.unread.push(format!("{kind} {name}")),
        }
    }
    let written = document.members(SUBSTITUTE).filter_map(|(_, name, value)| Some((name.to_owned(), text(value)?)));
    kustomization.variables.extend(written);
    kustomization.places.extend(places(&kustomization.file, &document, SUBSTITUTE));
    kustomization.names.extend(document.members(SUBSTITUTE).map(|(_, name, _)| name.to_owned()));
    // Nobody here knows what Flux replaces in such a value in its turn.
    kustomization.variables.retain(|_, value| !value.contains("${"));
}

/// Where the variables in a mapping of a file are given.
fn places<'d>(
    file: &'d str,
    document: &'d Document,
    pointer: &'d str,
) -> impl Iterator<Item = (String, (String, usize))> + 'd {
    document.lines_of_members(pointer).map(move |(name, line)| (name.to_owned(), (file.to_owned(), line)))
}

/// The ConfigMap that lies nearest to the file that names it, among those of one name for several clusters. `None`
/// where two are as near and say different things.
fn meant<'m, 'd: 'm>(file: &str, found: impl Iterator<Item = &'m ConfigMap<'d>>) -> Option<&'m ConfigMap<'d>> {
    let shared = |map: &ConfigMap<'_>| {
        let (one, other) = (folder(file).split('/'), folder(map.file).split('/'));
        let alike = one.zip(other).take_while(|(one, other)| one == other && !one.is_empty()).count();
        (map.file == file, folder(map.file) == folder(file), alike)
    };
    let found: Vec<&ConfigMap<'_>> = found.collect();
    let most = found.iter().map(|it| shared(it)).max()?;
    let mut near = found.into_iter().filter(|it| shared(it) == most);
    let first = near.next()?;
    let says = |map: &ConfigMap<'_>| map.values().collect::<BTreeSet<_>>();
    near.all(|it| says(it) == says(first)).then_some(first)
}

/// Flux takes line breaks out of values.
fn text(value: &Value) -> Option<String> {
    scalar(value).map(|text| text.replace('\n', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(path, text.as_bytes().to_vec())
    }

    fn flux(name: &str, path: &str, post_build: &str) -> String {
        format!(
            "apiVersion: {GROUP}/v1\nkind: Kustomization\nmetadata: {{ name: {name}, namespace: flux-system }}\n\
             spec:\n  path: {path}\n  sourceRef: {{ kind: GitRepository, name: flux-system }}\n  postBuild: {post_build}\n"
        )
    }

    fn config_map(data: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: settings }}\ndata: {data}\n")
    }

    fn values(files: &[SourceFile], folder: &str) -> Vec<(String, String)> {
        let values = FluxKustomizations::in_files(files).values();
        values.get(folder).into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_nearest_folder_around_a_file_counts() {
        let files = [
            file("clusters/one/all.yaml", &flux("all", "./", "{ substitute: { A: root } }")),
            file("clusters/one/pools.yaml", &flux("pools", "/infra/pools/", "{ substitute: { A: pools } }")),
        ];
        let found = FluxKustomizations::in_files(&files);
        let name_of = |path: &str| found.for_file(path).first().map(FluxKustomization::name);
        assert_eq!(name_of("infra/pools/deep/a.yaml"), Some("pools"));
        assert_eq!(name_of("infra/pools-old/a.yaml"), Some("all"));
        assert_eq!(name_of("a.yaml"), Some("all"));
        assert_eq!(values(&files, "infra/pools"), pairs(&[("A", "pools")]));
    }

    #[test]
    fn what_is_written_comes_before_what_it_is_taken_from() {
        let from = "{ substitute: { A: \"here\\n\", D: \"${E}\" }, substituteFrom: [{ kind: ConfigMap, name: settings }, \
                    { kind: Secret, name: secrets }, { kind: ConfigMap, name: absent, optional: true }] }";
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: secrets }\nstringData: { C: hidden }\n";
        let files = [
            file("clusters/one/pools.yaml", &flux("pools", "./pools", from)),
            file("clusters/one/settings.yaml", &config_map("{ A: there, B: \"5\" }")),
            file("clusters/two/settings.yaml", &config_map("{ A: elsewhere, B: \"6\" }")),
            file("clusters/one/secrets.yaml", secret),
        ];
        assert_eq!(values(&files, "pools"), pairs(&[("A", "here"), ("B", "5")]));
        let found = FluxKustomizations::in_files(&files);
        assert_eq!(found.for_file("pools/a.yaml")[0].unread, ["Secret secrets", "ConfigMap absent"]);
    }

    #[test]
    fn what_flux_has_no_value_for_is_known_where_the_files_say_all() {
        let names = |files: &[SourceFile]| {
            let names = FluxKustomizations::in_files(files).names_told();
            names.get("pools").map(|names| names.iter().cloned().collect::<Vec<String>>())
        };
        let of = |post_build: &str| vec![file("flux/pools.yaml", &flux("pools", "./pools", post_build))];
        let all = ["A".to_owned(), "D".to_owned()];
        assert_eq!(names(&of("{ substitute: { A: here, D: \"${E}\" } }")), Some(all.to_vec()));
        let from = "{ substitute: { A: here }, substituteFrom: [{ kind: ConfigMap, name: settings }] }";
        assert_eq!(names(&of(from)), None);
        let map = file("flux/settings.yaml", &config_map("{ D: there }"));
        let with_map = [of(from), vec![map]].concat();
        assert_eq!(names(&with_map), Some(all.to_vec()));
        let patch = file("flux/kustomization.yaml", "patches: [{ patch: \"spec: {postBuild: {}}\" }]\n");
        assert_eq!(names(&[with_map, vec![patch]].concat()), None);
        assert_eq!(names(&of("{}")), None);
    }

    #[test]
    fn what_clusters_say_differently_is_not_known() {
        let files = [
            file("clusters/one.yaml", &flux("one", "./pools", "{ substitute: { A: same, B: one, C: one } }")),
            file("clusters/two.yaml", &flux("two", "./pools", "{ substitute: { A: same, B: two } }")),
        ];
        assert_eq!(values(&files, "pools"), pairs(&[("A", "same")]));
        let from = "{ substituteFrom: [{ kind: ConfigMap, name: settings }] }";
        let files = [
            file("flux/pools.yaml", &flux("pools", "./pools", from)),
            file("one/settings.yaml", &config_map("{ A: one }")),
            file("two/settings.yaml", &config_map("{ A: two }")),
        ];
        assert!(values(&files, "pools").is_empty());
    }

    #[test]
    fn a_folder_of_the_repository_is_read_as_well() {
        let files = [
            file("flux/one.yaml", &flux("one", "./deploy/eu/pools", "{ substitute: { A: eu } }")),
            file("flux/two.yaml", &flux("two", "./other/pools", "{ substitute: { A: other } }")),
            file("eu/pools/pool.yaml", "kind: NodePool\n"),
        ];
        let found = FluxKustomizations::in_files(&files);
        let names: Vec<&str> = found.for_file("eu/pools/pool.yaml").iter().map(FluxKustomization::name).collect();
        assert_eq!((names, values(&files, "pools")), (vec!["one"], vec![]));
    }

    #[test]
    fn where_most_paths_lead_is_the_folder_that_is_read() {
        // Another repository has a folder of a name that is here as well.
        let mut files = vec![
            file("flux/one.yaml", &flux("one", "./deploy/eu/pools", "{ substitute: { A: eu } }")),
            file("flux/two.yaml", &flux("two", "./deploy/eu/classes", "{ substitute: { A: eu } }")),
            file("flux/other.yaml", &flux("other", "./flux", "{ substitute: { A: other } }")),
            file("pools/pool.yaml", "kind: NodePool\n"),
            file("classes/class.yaml", "kind: EC2NodeClass\n"),
        ];
        assert_eq!(values(&files, "pools"), pairs(&[("A", "eu")]));
        // From the root, all paths are as they are written.
        files.iter_mut().skip(3).for_each(|file| file.path.insert_str(0, "deploy/eu/"));
        assert_eq!(values(&files, "deploy/eu/pools"), pairs(&[("A", "eu")]));
        assert_eq!(values(&files, "flux"), pairs(&[("A", "other")]));
    }

    #[test]
    fn a_field_stands_where_its_value_is_given() {
        let from = "{ substitute: { weight: \"5\" }, substituteFrom: [{ kind: ConfigMap, name: settings }] }";
        let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: a }\nspec:\n  limits: { cpu: \"${CPU}\", memory: 5Gi }\n  \
                    template:\n    spec:\n      expireAfter: ${AGE:=720h}\n      requirements: [{ key: karpenter.sh/capacity-type, operator: In, values: [spot] }]\n      \
                    nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: a }\n";
        let files = [
            file("clusters/one/pools.yaml", &flux("pools", "./pools", from)),
            file("clusters/one/settings.yaml", &config_map("{ CPU: \"100\" }")),
            file("pools/pool.yaml", pool),
        ];
        let definitions = crate::definitions::read(&files, &crate::definitions::GivenVariables::default());
        let places = &definitions.node_pools[0].places;
        let place = |pointer: &str| places.get(pointer).map(|it| (it.file.as_str(), it.line));
        assert_eq!(place("/spec/limits/cpu"), Some(("clusters/one/settings.yaml", 4)));
        assert_eq!(place("/spec/limits/memory"), Some(("pools/pool.yaml", 5)));
        assert_eq!(place("/spec/template/spec/expireAfter"), Some(("pools/pool.yaml", 8)));
    }

    #[test]
    fn what_lies_in_a_folder_of_the_clusters_name_is_meant_for_it() {
        let files = [
            file("clusters/blue/pools.yaml", &flux("pools", "./pools", "{ substitute: { A: blue } }")),
            file("clusters/green/pools.yaml", &flux("pools", "./pools", "{ substitute: { A: green } }")),
        ];
        let of = |cluster: Option<&str>| {
            let mut found = FluxKustomizations::in_files(&files);
            found.keep(cluster);
            (found.values().remove("pools").unwrap().remove("A"), found.of_others().len())
        };
        assert_eq!(of(Some("green")), (Some("green".to_owned()), 1));
        assert_eq!(of(Some("red")), (None, 0));
        assert_eq!(of(Some("")), (None, 0));
        assert_eq!(of(None), (None, 0));
    }

    #[test]
    fn what_is_no_whole_kustomization_of_flux_says_nothing() {
        let patch = format!(
            "apiVersion: {GROUP}/v1\nkind: Kustomization\nmetadata: {{ name: pools }}\nspec: {{ postBuild: {{ substitute: {{ A: b }} }} }}\n"
        );
        let files = [
            file("patch.yaml", &patch),
            file("kustomization.yaml", "resources: [a.yaml]\n"),
            file("above.yaml", &flux("above", "../pools", "{ substitute: { A: b } }")),
            file("open.yaml", &flux("open", "./${CLUSTER}", "{ substitute: { A: b } }")),
        ];
        assert!(FluxKustomizations::in_files(&files).by_folder.is_empty());
    }
}
