//! What is fuzzed: one function for each target. It takes any bytes, and panics where an answer is wrong. The fuzzer calls it through
//! `fuzz_targets`, and the tests call it with the corpus.

use std::str::FromStr;

use cutlist::api::duration::NillableDuration;
use cutlist::api::node_pool::{NodeSelectorRequirement, Operator};
use cutlist::api::source::SourceFile;
use cutlist::cli::lsp::converse;
use cutlist::core::disrupt::windows::{Firing, firing};
use cutlist::core::model::quantity::Quantity;
use cutlist::core::model::requirements::Requirements;
use cutlist::core::snapshot::{Snapshot, read, write};
use cutlist::definitions::{self, Definitions, GivenVariables, Severity};
use cutlist::render::diagnostics::{self, LintReport};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Takes any bytes.
pub type Target = fn(&[u8]);

/// Name and function of every target; the name is also that of its corpus.
pub const ALL: [(&str, Target); 9] = [
    ("definitions", definitions),
    ("repository", repository),
    ("substitution", substitution),
    ("schedule", schedule),
    ("quantity", quantity),
    ("requirements", requirements),
    ("forms", forms),
    ("snapshot", snapshot),
    ("lsp", lsp),
];

const FILE: &str = "nodepool.yaml";

fn lint(files: &[SourceFile], given: &GivenVariables) -> Definitions {
    let found = definitions::lint(files, given);
    for diagnostic in &found.diagnostics {
        assert!(diagnostic.span.line > 0 && diagnostic.span.column > 0, "no place: {diagnostic:?}");
        assert!(!diagnostic.code.is_empty() && !diagnostic.message.is_empty(), "nothing said: {diagnostic:?}");
    }
    found
}

/// One file. What a fix makes of it can be read, and the fix is not wanted again and again.
pub fn definitions(bytes: &[u8]) {
    let files = [SourceFile::new(FILE, bytes)];
    let found = lint(&files, &GivenVariables::default());
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert_eq!(found.count(Severity::Error), usize::from(found.count(Severity::Error) > 0), "one error says it");
        return;
    };
    for fix in found.diagnostics.iter().filter_map(|it| it.fix.as_ref()) {
        let (start, end) = (fix.span.start_byte, fix.span.end_byte);
        assert!(text.get(start..end).is_some(), "{start}..{end} is no place in the file");
    }
}

/// Several files, among them kustomizations. Each begins after a line `-- PATH --`.
pub fn repository(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut files: Vec<SourceFile> = Vec::new();
    for line in text.split_inclusive('\n') {
        let path = line.trim_end().strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --"));
        match path {
            Some(path) if files.iter().all(|file| file.path != path) => files.push(SourceFile::new(path, "")),
            Some(_) => {}
            None => files.last_mut().into_iter().for_each(|file| file.content.extend(line.bytes())),
        }
    }
    lint(&files, &GivenVariables::default());
    definitions::read(&files, &GivenVariables::default());
}

/// Lines `NAME=VALUE`, an empty line, and a file in which the names stand.
pub fn substitution(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (values, file) = text.split_once("\n\n").unwrap_or(("", &text));
    let values = values.lines().filter_map(|line| line.split_once('='));
    let typed = values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    lint(&[SourceFile::new(FILE, file)], &GivenVariables { typed, ..GivenVariables::default() });
}

/// A schedule, a duration and a time zone, a line each.
pub fn schedule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let schedule = lines.next().unwrap_or_default();
    let duration = lines.next().and_then(|line| NillableDuration::from_str(line).ok());
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    let written = (schedule, duration.as_ref(), lines.next());
    let first = firing(written, now);
    assert_eq!(first, firing(written, now), "the same question, another answer");
    if first == Firing::Within {
        assert!(duration.is_some(), "a window without a duration is open");
    }
}

/// Two quantities, a line each. Longer ones do not become smaller.
pub fn quantity(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read: Vec<Quantity> = text.lines().filter_map(|line| Quantity::from_str(line).ok()).collect();
    for quantity in &read {
        assert!(quantity.units().saturating_mul(1000) >= quantity.milli() || quantity.units() == i64::MAX);
        assert_eq!(quantity.is_negative(), *quantity < Quantity::ZERO);
    }
    for pair in read.windows(2) {
        let [one, other] = pair else { continue };
        if one <= other {
            assert!(one.milli() <= other.milli() && one.units() <= other.units(), "rounding turned {pair:?} around");
        }
    }
}

/// Lines `KEY OPERATOR VALUE VALUE …`; of the even lines one set is made, and of the odd ones another.
pub fn requirements(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let entries: Vec<NodeSelectorRequirement> = text.lines().filter_map(entry).collect();
    let every_second = |first| Requirements::from_entries(entries.iter().skip(first).step_by(2));
    let (one, other) = (every_second(0), every_second(1));
    let mut both = one.clone();
    both.extend(&other);
    let mut turned = other.clone();
    turned.extend(&one);
    assert_eq!(one.conflict(&other).is_none(), other.conflict(&one).is_none(), "which comes first counts");
    for (key, requirement) in both.iter() {
        let of = |set: &Requirements, value: &str| set.get(key).is_none_or(|it| it.allows(value));
        let written = entries.iter().flat_map(|entry| entry.values.iter().map(String::as_str));
        for value in written.chain(["", "0", "-1", "9223372036854775808"]) {
            assert_eq!(requirement.allows(value), of(&one, value) && of(&other, value), "{key}: {value}");
            assert_eq!(requirement.allows(value), of(&turned, value), "{key}: {value}, the other way around");
        }
        if let Some(value) = requirement.single_value() {
            assert!(requirement.allows(value), "{key}: its only value is not allowed: {value}");
        }
    }
}

fn entry(line: &str) -> Option<NodeSelectorRequirement> {
    let mut words = line.split(' ');
    let key = words.next()?.to_owned();
    let operator: Operator = serde_json::from_value(words.next()?.into()).ok()?;
    Some(NodeSelectorRequirement { key, operator, values: words.map(str::to_owned).collect(), min_values: None })
}

/// The report of one file, in every form. What is for programs can be read by them; what is for people holds no control characters.
pub fn forms(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let path = text.lines().next().unwrap_or(FILE).to_owned();
    let found = lint(&[SourceFile::new(FILE, bytes)], &GivenVariables::default());
    let mut report = LintReport::new();
    report.add(&found, |_| path.clone());
    report.sort();
    let source = |name: &str| (name == path).then_some(text.as_ref());
    for json in [diagnostics::json(&report), diagnostics::sarif(&report, source), diagnostics::gitlab(&report)] {
        assert!(serde_json::from_str::<Value>(&json).is_ok(), "no JSON:\n{json}");
    }
    for line in diagnostics::json_lines(&report).lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "no JSON: {line}");
    }
    let for_people = [
        diagnostics::text(&report, source, false),
        diagnostics::markdown(&report),
        diagnostics::tap(&report),
        diagnostics::github(&report, source),
        diagnostics::azure(&report),
        diagnostics::junit(&report),
        diagnostics::checkstyle(&report),
    ];
    for text in for_people {
        let unwanted = text.chars().find(|it| it.is_control() && !matches!(it, '\n' | '\t'));
        assert_eq!(unwanted, None, "a control character in\n{text:?}");
    }
}

/// The cluster, as `kubectl get -o json` or YAML has it. On an error nothing is read.
pub fn snapshot(bytes: &[u8]) {
    let mut snapshot = Snapshot::default();
    if read::read(bytes, &mut snapshot).is_err() {
        let text = |snapshot| write::write(snapshot).unwrap();
        assert_eq!(text(&snapshot), text(&Snapshot::default()), "an error, and something was read");
    }
}

/// What an editor sends: a stream of messages with their headers, or else what it does, from which messages are made (see [`Editor`]).
/// Every request is answered once, and every finding is at a place of the text. No document has a file: nothing is read from the disk.
pub fn lsp(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.get(..8).is_some_and(|begin| begin.eq_ignore_ascii_case("content-")) {
        // An address of a file may be written in several ways. None is let through, or a folder would be read.
        if !text.to_lowercase().contains("file") && !text.contains('\\') {
            for said in converse(&mut &bytes[..]) {
                assert!(serde_json::from_str::<Value>(&said).is_ok(), "no JSON: {said}");
            }
        }
        return;
    }
    let mut editor = Editor::default();
    let parts = text.split("\n-- ").map(|part| part.strip_prefix("-- ").unwrap_or(part));
    parts.for_each(|part| editor.does(part));
    let mut answered = vec![0; editor.requests];
    for said in converse(&mut editor.stream.as_slice()) {
        let said: Value = serde_json::from_str(&said).unwrap();
        if let Some(id) = said["id"].as_u64().filter(|_| said.get("method").is_none()) {
            answered[usize::try_from(id).unwrap()] += 1;
        }
        for finding in said["params"]["diagnostics"].as_array().into_iter().flatten() {
            let (start, end) = (&finding["range"]["start"], &finding["range"]["end"]);
            let place = |it: &Value| (it["line"].as_u64().unwrap(), it["character"].as_u64().unwrap());
            assert!(place(start) <= place(end), "a finding that ends before it begins: {finding}");
            assert!(place(end).0 <= editor.lines_max, "a finding below the text: {finding}");
        }
    }
    assert!(answered.iter().all(|times| *times == 1), "answers to each request: {answered:?}");
}

/// Makes messages of what is done in it. Each part of the text is one deed: a word, numbers, and after the first line a text.
///
/// ```text
/// -- open
/// kind: NodePool
/// -- change 0 6 0 14
/// EC2NodeClass
/// -- hover 0 2
/// ```
struct Editor {
    stream: Vec<u8>,
    requests: usize,
    version: u64,
    /// No text has ever had more lines.
    lines_max: u64,
}

impl Default for Editor {
    fn default() -> Self {
        let mut editor = Self { stream: Vec::new(), requests: 0, version: 0, lines_max: 0 };
        let encodings = json!({ "general": { "positionEncodings": ["utf-16"] } });
        editor.asks("initialize", json!({ "capabilities": encodings }));
        editor
    }
}

impl Editor {
    fn does(&mut self, deed: &str) {
        let (line, text) = deed.split_once('\n').unwrap_or((deed, ""));
        let mut words = line.split(' ');
        let word = words.next().unwrap_or_default();
        let numbers: Vec<u32> = words.map(|word| word.parse().unwrap_or_default()).collect();
        let number = |index: usize| numbers.get(index).copied().unwrap_or_default();
        let place = |index: usize| json!({ "line": number(index), "character": number(index + 1) });
        let document = json!({ "uri": "untitled:nodepool.yaml", "version": self.version });
        let at = json!({ "textDocument": document, "position": place(0) });
        let range = json!({ "start": place(0), "end": place(2) });
        self.version += 1;
        // Of `\r\n` both are counted, which is more than there are.
        self.lines_max += text.matches(['\n', '\r']).count() as u64;
        match word {
            "open" => {
                let item = json!({ "uri": document["uri"], "languageId": "yaml", "version": 0, "text": text });
                self.tells("textDocument/didOpen", json!({ "textDocument": item }));
            }
            "change" => {
                let change = json!({ "range": range, "text": text });
                self.tells("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
            }
            "replace" => {
                let change = json!({ "text": text });
                self.tells("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
            }
            "close" => self.tells("textDocument/didClose", json!({ "textDocument": document })),
            "save" => self.tells("textDocument/didSave", json!({ "textDocument": document })),
            "hover" => self.asks("textDocument/hover", at),
            "complete" => self.asks("textDocument/completion", at),
            "act" => {
                let context = json!({ "diagnostics": [] });
                let asked = json!({ "textDocument": document, "range": range, "context": context });
                self.asks("textDocument/codeAction", asked);
            }
            // Anything else, as it is.
            _ => self.tells(word, Value::String(text.to_owned())),
        }
    }

    fn asks(&mut self, method: &str, parameters: Value) {
        let id = self.requests;
        self.requests += 1;
        self.sends(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
    }

    fn tells(&mut self, method: &str, parameters: Value) {
        // It would end the conversation before what follows.
        if method != "exit" {
            self.sends(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
        }
    }

    fn sends(&mut self, message: &Value) {
        let message = message.to_string();
        self.stream.extend(format!("Content-Length: {}\r\n\r\n{message}", message.len()).bytes());
    }
}
