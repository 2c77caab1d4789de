//! What the generators of an ApplicationSet put in the place of parameters, as far as the files tell. What clusters, forges and plugins
//! give stands in no file, and nothing is guessed of it.
//! Source: Argo CD, "Generators".

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::document::{self, Document};
use super::files::folders_around;
use super::globs::Glob;
use crate::api::kustomization;
use crate::api::source::{SourceFile, Standing};

/// Parameters, and what is looked at for them, in all sets together. A generator within another one is asked for each of the Applications of
/// that one, so that a short text may ask for more than anybody can make.
const WORK_MAX: usize = 500_000;
/// So many bytes, or paths that are held against a pattern, take as long as one parameter.
const LOOKS_FOR_ONE: usize = 16;
/// A pattern that is made takes as long as so many parameters.
const WORK_OF_PATTERN: usize = 100;
/// Generators in generators. Argo CD takes one in another, and one in that.
const DEPTH_MAX: usize = 4;
/// Bytes of a parameter, and of a text with its parameters. The path of no folder is longer.
const TEXT_MAX: usize = 1024;

/// What is known of one Application: the parameters by their names, as a template writes them. Others may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(BTreeMap<String, String>);

/// Which language templates are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `{{path.basename}}`
    Plain,
    /// `{{ .path.basename }}`
    Go,
}

impl Language {
    pub fn of(set: &Document) -> Self {
        match set.value.pointer("/spec/goTemplate") == Some(&Value::Bool(true)) {
            true => Self::Go,
            false => Self::Plain,
        }
    }

    /// The parameter that is asked for between braces. `None` for what asks for more than one.
    fn name(self, expression: &str) -> Option<String> {
        let is_name = |text: &str| text.chars().all(|it| it.is_alphanumeric() || ['.', '_', '-'].contains(&it));
        match self {
            Self::Plain => Some(expression.trim().to_owned()),
            Self::Go => {
                let words: Vec<&str> = expression.split_whitespace().collect();
                let joined = match words.as_slice() {
                    [name] => (*name).to_owned(),
                    ["index", list, place] if place.parse::<usize>().is_ok() => format!("{list}.{place}"),
                    _ => return None,
                };
                joined.strip_prefix('.').filter(|name| is_name(name)).map(str::to_owned)
            }
        }
    }
}

impl Parameters {
    /// The text with the parameters in their places. `None` where one is not known.
    pub fn fill(&self, text: &str, language: Language) -> Option<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            let (expression, after) = behind.split_once("}}")?;
            filled.push_str(before);
            filled.push_str(self.0.get(&language.name(expression)?)?);
            if filled.len() > TEXT_MAX {
                return None;
            }
            rest = after;
        }
        filled.push_str(rest);
        Some(filled)
    }

    /// How much there is of them.
    fn weight(&self) -> usize {
        self.0.iter().map(|(name, value)| 1 + (name.len() + value.len()) / LOOKS_FOR_ONE).sum()
    }

    fn and(&self, other: &Self) -> Self {
        let both = self.0.iter().chain(&other.0);
        Self(both.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Adds what is in a value, by the way to it. Of nothing nothing is known.
    fn add(&mut self, name: &str, value: &Value) {
        let below = |member: &str| if name.is_empty() { member.to_owned() } else { format!("{name}.{member}") };
        match value {
            Value::Object(members) => members.iter().for_each(|(member, value)| self.add(&below(member), value)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| self.add(&below(&index.to_string()), value));
            }
            Value::String(text) if text.len() <= TEXT_MAX => drop(self.0.insert(name.to_owned(), text.clone())),
            Value::Bool(_) | Value::Number(_) => drop(self.0.insert(name.to_owned(), value.to_string())),
            Value::Null | Value::String(_) => {}
        }
    }
}

/// The files that generators look at, and how much was made of all sets.
pub struct Repository<'f> {
    sources: &'f [&'f SourceFile],
    /// Those of the files. Others have nothing that counts here.
    folders: OnceCell<BTreeSet<&'f str>>,
    work: Cell<usize>,
}

impl<'f> Repository<'f> {
    pub fn of(sources: &'f [&'f SourceFile]) -> Self {
        Self { sources, folders: OnceCell::new(), work: Cell::new(0) }
    }

    /// The Applications of a set, with what is known of each. There is one of which nothing is known where a generator asks for what stands
    /// in no file.
    pub fn applications(&self, set: &Document) -> Vec<Parameters> {
        let maker = Maker { repository: self, language: Language::of(set) };
        let generators = set.value.pointer("/spec/generators").and_then(Value::as_array);
        generators.into_iter().flatten().flat_map(|generator| maker.generator(generator, 0)).collect()
    }

    fn own(&self) -> impl Iterator<Item = &'f SourceFile> {
        self.sources.iter().copied().filter(|source| source.standing != Standing::Applied)
    }

    fn folders(&self) -> &BTreeSet<&'f str> {
        self.folders.get_or_init(|| self.own().flat_map(|source| folders_around(&source.path)).collect())
    }

    /// Counts what is made more. Whether that is more than is made at all.
    pub fn is_too_much(&self, more: usize) -> bool {
        self.work.set(self.work.get().saturating_add(more));
        self.work.get() > WORK_MAX
    }

    /// The same for paths that are held against the patterns of so many entries.
    fn is_too_much_to_look_at(&self, paths: usize, entries: usize) -> bool {
        let looks = paths.saturating_mul(entries) / LOOKS_FOR_ONE;
        self.is_too_much(looks.saturating_add(entries.saturating_mul(WORK_OF_PATTERN)))
    }
}

struct Maker<'m, 'f> {
    repository: &'m Repository<'f>,
    language: Language,
}

impl Maker<'_, '_> {
    fn generator(&self, generator: &Value, depth: usize) -> Vec<Parameters> {
        let known = generator.as_object().filter(|_| depth <= DEPTH_MAX && !self.repository.is_too_much(1));
        let known = known.and_then(|members| {
            // Which of its Applications a selector takes, and what a template of its own changes, is not worked out.
            let mut members = members.iter();
            let (Some((kind, value)), None) = (members.next(), members.next()) else { return None };
            if value.get("template").is_some_and(|template| template.get("spec").is_some()) {
                return None;
            }
            match kind.as_str() {
                "list" => Some(self.list(value)),
                "git" => self.git(value),
                "matrix" => self.matrix(value, depth),
                "merge" => self.merge(value, depth),
                _ => None,
            }
        });
        known.filter(|_| !self.repository.is_too_much(0)).unwrap_or_else(|| vec![Parameters::default()])
    }

    fn list(&self, list: &Value) -> Vec<Parameters> {
        let elements = list.get("elements").and_then(Value::as_array).into_iter().flatten();
        let mut all: Vec<Parameters> = self.of_values(elements).collect();
        // What a template makes of parameters to be a list.
        all.extend(list.get("elementsYaml").map(|_| Parameters::default()));
        all
    }

    fn git(&self, git: &Value) -> Option<Vec<Parameters>> {
        let prefix = git.get("pathParamPrefix").and_then(Value::as_str).unwrap_or_default();
        let name = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
        let mut all = match (git.get("directories"), git.get("files")) {
            (Some(folders), None) => self.folders(folders.as_array()?, &name)?,
            (None, Some(files)) => self.files(files.as_array()?, &name)?,
            _ => return None,
        };
        let values = git.get("values").and_then(Value::as_object).into_iter().flatten();
        let values: Vec<(&String, &str)> = values.filter_map(|(name, value)| Some((name, value.as_str()?))).collect();
        for of_one in &mut all {
            let filled = values
                .iter()
                .filter_map(|(name, text)| Some((format!("values.{name}"), of_one.fill(text, self.language)?)));
            let filled: Vec<(String, String)> = filled.collect();
            of_one.0.extend(filled);
        }
        Some(all)
    }

    /// What each of the values says, as far as all of them may be looked at.
    fn of_values<'v>(&self, values: impl Iterator<Item = &'v Value>) -> impl Iterator<Item = Parameters> {
        let parameters = |value: &Value| {
            let mut all = Parameters::default();
            all.add("", value);
            all
        };
        values.map(parameters).take_while(|it| !self.repository.is_too_much(1 + it.weight()))
    }

    /// Those that a pattern takes, and none leaves out.
    fn folders(&self, entries: &[Value], name: &str) -> Option<Vec<Parameters>> {
        let all = self.repository.folders();
        if self.repository.is_too_much_to_look_at(all.len(), entries.len()) {
            return None;
        }
        let patterns = patterns(entries, Glob::of_folders)?;
        let fits = |folder: &str, leaves_out: bool| {
            patterns.iter().any(|(glob, is_exclude)| *is_exclude == leaves_out && glob.has(folder))
        };
        let taken = all.iter().copied().filter(|folder| fits(folder, false) && !fits(folder, true));
        Some(taken.map(|folder| self.of_folder(folder, name)).collect())
    }

    /// Those that are taken however Argo CD was told to read patterns, with what is in them.
    fn files(&self, entries: &[Value], name: &str) -> Option<Vec<Parameters>> {
        if self.repository.is_too_much_to_look_at(self.repository.sources.len(), entries.len().saturating_mul(2)) {
            return None;
        }
        let (as_git, by_parts) = (patterns(entries, Glob::of_files)?, patterns(entries, Glob::of_files_by_parts)?);
        let fits = |globs: &[(Glob, bool)], path: &str, leaves_out: bool| {
            globs.iter().any(|(glob, is_exclude)| *is_exclude == leaves_out && glob.has(path))
        };
        let is_taken = |source: &&SourceFile| {
            let path = source.path.as_str();
            let is_named = fits(&as_git, path, false) && fits(&by_parts, path, false);
            source.has_content() && is_named && !fits(&as_git, path, true) && !fits(&by_parts, path, true)
        };
        let mut all = Vec::new();
        for source in self.repository.own().filter(is_taken) {
            if self.repository.is_too_much(source.content.len() / LOOKS_FOR_ONE) {
                return None;
            }
            let of_path = self.of_folder(kustomization::folder(&source.path), name);
            let text: Arc<str> = str::from_utf8(&source.content).unwrap_or_default().into();
            let Some(document) = document::parse(0, &text).documents.into_iter().next() else { continue };
            let values =
                document.value.as_array().map_or_else(|| vec![&*document.value], |items| items.iter().collect());
            all.extend(self.of_values(values.into_iter()).map(|it| it.and(&of_path)));
        }
        Some(all)
    }

    /// What a template may ask of a folder.
    fn of_folder(&self, folder: &str, name: &str) -> Parameters {
        let parts: Vec<&str> = folder.split('/').collect();
        let last = parts.last().copied().unwrap_or_default();
        let mut all = Parameters::default();
        let mut add = |name: String, value: &str| drop(all.0.insert(name, value.to_owned()));
        let is_go = self.language == Language::Go;
        add(if is_go { format!("{name}.path") } else { name.to_owned() }, folder);
        add(format!("{name}.basename"), last);
        // What is no name of an object is changed into one.
        if last.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit()) {
            add(format!("{name}.basenameNormalized"), last);
        }
        for (place, part) in parts.iter().enumerate() {
            add(if is_go { format!("{name}.segments.{place}") } else { format!("{name}[{place}]") }, part);
        }
        all
    }

    /// Each Application of the first generator with each of the second, which may ask for what the first gives.
    fn matrix(&self, matrix: &Value, depth: usize) -> Option<Vec<Parameters>> {
        let [first, second] = &matrix.get("generators")?.as_array()?[..] else { return None };
        let work_of_second = second.to_string().len() / LOOKS_FOR_ONE;
        let mut all = Vec::new();
        for of_first in self.generator(first, depth + 1) {
            if self.repository.is_too_much(work_of_second) {
                return None;
            }
            let second = filled(second, &of_first, self.language);
            for of_second in self.generator(&second, depth + 1) {
                if self.repository.is_too_much(1 + of_first.weight() + of_second.weight()) {
                    return None;
                }
                all.push(of_first.and(&of_second));
            }
        }
        Some(all)
    }

    /// The Applications of the first generator, with what the others say of those that have the same keys.
    fn merge(&self, merge: &Value, depth: usize) -> Option<Vec<Parameters>> {
        let keys: Vec<&str> = merge.get("mergeKeys")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let key_of = |of_one: &Parameters| -> Option<Vec<String>> {
            keys.iter().map(|key| of_one.0.get(*key).cloned()).collect()
        };
        let (first, others) = merge.get("generators")?.as_array()?.split_first()?;
        let mut all = self.generator(first, depth + 1);
        for other in others {
            let of_other = self.generator(other, depth + 1).into_iter();
            let by_key: Option<BTreeMap<Vec<String>, Parameters>> =
                of_other.map(|it| Some((key_of(&it)?, it))).collect();
            let by_key = by_key?;
            for of_one in &mut all {
                if let Some(more) = by_key.get(&key_of(of_one)?) {
                    *of_one = of_one.and(more);
                }
            }
        }
        Some(all)
    }
}

/// Patterns, and whether each leaves out what it fits. `None` where one is not known, or is no pattern.
fn patterns(entries: &[Value], glob: fn(&str) -> Option<Glob>) -> Option<Vec<(Glob, bool)>> {
    let of_entry = |entry: &Value| {
        let path = entry.get("path")?.as_str().filter(|path| !path.contains("{{"))?;
        Some((glob(path)?, entry.get("exclude") == Some(&Value::Bool(true))))
    };
    entries.iter().map(of_entry).collect()
}

/// The value with the parameters in all texts that ask for nothing else.
fn filled(value: &Value, with: &Parameters, language: Language) -> Value {
    match value {
        Value::String(text) => Value::String(with.fill(text, language).unwrap_or_else(|| text.clone())),
        Value::Array(items) => items.iter().map(|item| filled(item, with, language)).collect(),
        Value::Object(members) => {
            let each = members.iter().map(|(name, member)| (name.clone(), filled(member, with, language)));
            Value::Object(each.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 5] = [
        ("clusters/blue/a.yaml", "{}"),
        ("clusters/blue/config.json", "{ \"cluster\": { \"name\": \"b\" }, \"folder\": \"pools/b\" }"),
        ("clusters/green/a.yaml", "{}"),
        ("clusters/green/deep/config.json", "[{ \"folder\": \"pools/one\" }, { \"folder\": \"pools/two\" }]"),
        ("pools/b/a.yaml", "{}"),
    ];

    /// What each Application has in the place of the text. `?` where it is not known.
    fn folders(generators: &str, text: &str, is_go: bool) -> Vec<String> {
        let sources: Vec<SourceFile> = FILES.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let sources: Vec<&SourceFile> = sources.iter().collect();
        let set = format!("spec: {{ goTemplate: {is_go}, generators: [{generators}] }}");
        let set = document::parse(0, &Arc::from(set.as_str())).documents.remove(0);
        let all = Repository::of(&sources).applications(&set).into_iter();
        all.map(|it| it.fill(text, Language::of(&set)).unwrap_or_else(|| "?".to_owned())).collect()
    }

    #[test]
    fn what_the_files_tell_is_known() {
        let list = "{ list: { elements: [{ name: a, values: { folder: x } }, { name: b, values: { folder: y } }] } }";
        let git = "{ git: { directories: [{ path: clusters/* }, { path: '*/green', exclude: true }] } }";
        let of_files = "{ git: { files: [{ path: 'clusters/*/config.json' }] } }";
        let both = format!("{{ matrix: {{ generators: [{list}, {git}] }} }}");
        let asked = "{ git: { directories: [{ path: '{{path}}/*' }], pathParamPrefix: inner } }";
        let nested = format!(
            "{{ matrix: {{ generators: [{{ git: {{ directories: [{{ path: 'clusters/*' }}] }} }}, {asked}] }} }}"
        );
        let merged = format!(
            "{{ merge: {{ mergeKeys: [name], generators: [{list}, {{ list: {{ elements: [{{ name: b, values: {{ folder: z }} }}] }} }}] }} }}"
        );
        let with_values = git.replace("directories:", "values: { at: 'pools/{{path.basename}}' }, directories:");
        for (generators, text, expected) in [
            (list, "{{name}}/{{ values.folder }}", &["a/x", "b/y"][..]),
            (git, "{{path}}", &["clusters/blue"]),
            (git, "pools/{{path.basename}}/{{path[0]}}", &["pools/blue/clusters"]),
            (&with_values, "{{values.at}}", &["pools/blue"]),
            // Argo CD may have been told to read the star in another way, by which there is one more.
            (of_files, "{{folder}} {{cluster.name}} {{path}}", &["pools/b b clusters/blue"]),
            (&both, "{{name}}/{{path.basename}}", &["a/blue", "b/blue"]),
            (&nested, "{{inner.path}}", &["clusters/green/deep"]),
            (&merged, "{{name}}/{{values.folder}}", &["a/x", "b/z"]),
        ] {
            assert_eq!(folders(generators, text, false), expected, "{generators} {text}");
        }
        let deep = "{ git: { files: [{ path: clusters/green/deep/config.json }] } }";
        assert_eq!(folders(deep, "{{ .folder }} {{ .path.basename }}", true), ["pools/one deep", "pools/two deep"]);
        assert_eq!(folders(git, "{{.path.path}} {{ index .path.segments 1 }}", true), ["clusters/blue blue"]);
    }

    #[test]
    fn nobody_makes_more_than_a_repository_has() {
        let elements: Vec<String> = (0..1000).map(|number| format!("{{ name: a{number} }}")).collect();
        let list = format!("{{ list: {{ elements: [{}] }} }}", elements.join(", "));
        let both = format!("{{ matrix: {{ generators: [{list}, {list}] }} }}");
        assert_eq!(folders(&list, "{{name}}", false).len(), 1000);
        assert_eq!(folders(&both, "{{name}}", false), ["?"]);
        let long = format!("{{ list: {{ elements: [{{ name: {} }}] }} }}", "a".repeat(2000));
        assert_eq!(folders(&long, "{{name}}", false), ["?"]);
    }

    #[test]
    fn what_no_file_tells_is_not_guessed() {
        let git = "{ git: { directories: [{ path: clusters/blue }] } }";
        let with_clusters = format!("{{ matrix: {{ generators: [{{ clusters: {{}} }}, {git}] }} }}");
        assert_eq!(folders(&with_clusters, "{{path}}", false), ["clusters/blue"]);
        for (generators, text, is_go) in [
            ("{ clusters: {} }", "pools/{{name}}", false),
            ("{ pullRequest: {} }", "{{branch}}", false),
            ("{ plugin: {} }", "{{path}}", false),
            (&with_clusters, "{{path}}/{{name}}", false),
            ("{ git: { directories: [{ path: clusters/blue }] }, selector: {} }", "{{path}}", false),
            (
                "{ git: { directories: [{ path: clusters/blue }], template: { spec: { source: { path: x } } } } }",
                "{{path}}",
                false,
            ),
            ("{ list: { elementsYaml: '{{ x }}' } }", "{{path}}", false),
            (git, "{{ .path.basename | lower }}", true),
            (git, "{{path", false),
        ] {
            assert_eq!(folders(generators, text, is_go), ["?"], "{generators} {text}");
        }
    }
}
