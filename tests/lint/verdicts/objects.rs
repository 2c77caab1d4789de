//! Objects, and what a real API server says of them. The objects are the YAML files of this folder, one for each subject; what the
//! server says stands beside each in a file `.verdicts`, which `UPDATE=1 make e2e CASES=verdicts` writes.
//!
//! An entry of `objects` is the least that its kind needs (`bases.yaml`), changed:
//!
//! ```yaml
//! - name: what it shows
//!   with: { /spec/weight: 10 }      # put in, by JSON pointer; what is missing on the way is made
//!   without: [/spec/limits]         # left out
//!   before: { /spec/replicas: 3 }   # what was there before, in the same words: the object is an update of it
//! - at: /spec/weight                # one object for each of the values, named for place and value
//!   values: [1, 100, 0, 101]
//!   times: 31                       # what the first list or mapping there holds, or the text, so many times
//!   counted: /index                 # the entries of that list count themselves in this member
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One object that the server was asked about.
pub struct Object {
    pub name: String,
    pub kind: String,
    pub value: Value,
    /// What was there before.
    pub before: Option<Value>,
}

/// The objects of one file, and its name without `.yaml`.
pub struct Subject {
    pub name: String,
    pub objects: Vec<Object>,
}

/// What the server has against an object; nothing where it accepts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub causes: Vec<Cause>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// As the server writes it; empty where it names none.
    pub field: String,
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: String,
    objects: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    at: Option<String>,
    values: Option<Vec<Value>>,
    times: Option<usize>,
    counted: Option<String>,
    #[serde(default)]
    with: Map<String, Value>,
    #[serde(default)]
    without: Vec<String>,
    before: Option<Map<String, Value>>,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/verdicts")
}

/// All of them, in the order of the files' names.
pub fn subjects() -> Vec<Subject> {
    let bases = bases();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "yaml") && !path.ends_with("bases.yaml"));
    paths.sort();
    paths.iter().map(|path| subject(path, &bases)).collect()
}

fn bases() -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join("bases.yaml")).unwrap();
    let all = serde_yaml::Deserializer::from_str(&text).map(|document| Value::deserialize(document).unwrap());
    all.filter(|value| !value.is_null()).collect()
}

fn subject(path: &Path, bases: &[Value]) -> Subject {
    let text = std::fs::read_to_string(path).unwrap();
    let file: File = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let base = bases.iter().find(|base| base["kind"] == file.kind).unwrap();
    let objects: Vec<Object> = file.objects.iter().flat_map(|entry| objects(entry, &file.kind, base)).collect();
    let mut names: Vec<&str> = objects.iter().map(|object| object.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "{}: two objects of one name", path.display());
    Subject { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), objects }
}

fn objects(entry: &Entry, kind: &str, base: &Value) -> Vec<Object> {
    let changed = |changes: &Map<String, Value>| {
        let mut value = base.clone();
        entry.without.iter().for_each(|pointer| remove(&mut value, pointer));
        changes.iter().for_each(|(pointer, new)| put(&mut value, pointer, new.clone()));
        value
    };
    let before = entry.before.as_ref().map(&changed);
    let object = |name: String, value: Value| Object { name, kind: kind.to_owned(), value, before: before.clone() };
    let Some((at, values)) = entry.at.as_ref().zip(entry.values.as_ref()) else {
        return vec![object(
            entry.name.clone().expect("an object has a name, or `at` and `values`"),
            changed(&entry.with),
        )];
    };
    let given: Vec<String> = entry.with.iter().map(|(pointer, new)| format!("{} = {new}", path_of(pointer))).collect();
    let without = entry.without.iter().map(|pointer| format!("no {}", path_of(pointer)));
    let given: Vec<String> = given.into_iter().chain(without).collect();
    let beside = if given.is_empty() { String::new() } else { format!(" beside {}", given.join(", ")) };
    let of_value = |value: &Value| {
        let mut name = format!("{} = {value}", path_of(at));
        if let Some(times) = entry.times {
            let counted = entry.counted.as_ref().map(|it| format!(", counted in {it}")).unwrap_or_default();
            name = format!("{name}, {times} times{counted}");
        }
        let value = match entry.times {
            Some(times) => repeated(value, times, entry.counted.as_deref()),
            None => value.clone(),
        };
        let mut whole = changed(&entry.with);
        put(&mut whole, at, value);
        object(name + &beside, whole)
    };
    values.iter().map(of_value).collect()
}

/// The text, the first entry of the list or of the mapping, so many times.
fn repeated(value: &Value, times: usize, counted: Option<&str>) -> Value {
    match value {
        Value::String(text) => Value::String(text.repeat(times)),
        Value::Array(items) => {
            let one = |index: usize| {
                let mut item = items[0].clone();
                counted.into_iter().for_each(|pointer| put(&mut item, pointer, json!(index)));
                item
            };
            Value::Array((0..times).map(one).collect())
        }
        Value::Object(members) => {
            let (key, value) = members.iter().next().unwrap();
            Value::Object((0..times).map(|index| (format!("{key}-{index}"), value.clone())).collect())
        }
        other => other.clone(),
    }
}

fn put(whole: &mut Value, pointer: &str, new: Value) {
    let parts: Vec<String> = pointer.split('/').skip(1).map(|it| it.replace("~1", "/").replace("~0", "~")).collect();
    let mut here = whole;
    for part in &parts {
        let index = part.parse::<usize>().ok();
        if here.is_null() {
            *here = if index.is_some() { json!([]) } else { json!({}) };
        }
        here = match (here, index) {
            (Value::Array(items), Some(index)) => {
                while items.len() <= index {
                    items.push(Value::Null);
                }
                &mut items[index]
            }
            (Value::Object(members), _) => members.entry(part.clone()).or_insert(Value::Null),
            (other, _) => panic!("{pointer} goes through {other}"),
        };
    }
    *here = new;
}

fn remove(whole: &mut Value, pointer: &str) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let removed = whole.pointer_mut(parent).and_then(|it| it.as_object_mut()).and_then(|it| it.remove(last));
    assert!(removed.is_some(), "{pointer} is not there");
}

/// `/spec/list/0/key` as the server writes it.
pub fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        step(&mut path, &part.replace("~1", "/").replace("~0", "~"));
    }
    path
}

fn step(path: &mut String, part: &str) {
    match part.parse::<usize>() {
        Ok(index) => write!(path, "[{index}]").unwrap(),
        Err(_) if path.is_empty() => path.push_str(part),
        Err(_) => write!(path, ".{part}").unwrap(),
    }
}

/// What the server said of the objects of a subject, by their names.
pub fn recorded(subject: &str) -> BTreeMap<String, Verdict> {
    let path = folder().join(format!("{subject}.verdicts"));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut verdicts: BTreeMap<String, Verdict> = BTreeMap::new();
    let mut last = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("accepted: ").or_else(|| line.strip_prefix("refused: ")) {
            verdicts.insert(name.to_owned(), Verdict::default());
            last = Some(name);
        } else if let Some((field, message)) = line.strip_prefix("  ").and_then(|it| it.split_once(": ")) {
            let verdict = last.and_then(|name| verdicts.get_mut(name)).unwrap();
            verdict.causes.push(Cause { field: field.to_owned(), message: message.to_owned() });
        }
    }
    verdicts
}

/// Objects of which Karpenter's own definitions say something else than ours: whether they refuse it, its subject, its name.
pub fn karpenters() -> Vec<(bool, String, String)> {
    let text = std::fs::read_to_string(folder().join("karpenter.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let different = |line: &str| {
        let mut parts = line.splitn(3, ": ").map(str::to_owned);
        let (word, subject, name) = (parts.next()?, parts.next()?, parts.next()?);
        ["refused", "accepted"].contains(&word.as_str()).then(|| (word == "refused", subject, name))
    };
    lines.map(|line| different(line).unwrap_or_else(|| panic!("karpenter.txt: {line}"))).collect()
}
