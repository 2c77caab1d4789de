//! Plays a script, and writes down what was done and what was answered.
//!
//! `{root}` stands for the address of the folder. Of findings, completions, fixes and documentation the transcript has what a reader
//! needs; with `verbatim` in the first step every message stands there as it came.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, Encoding};
use super::program;

pub fn play(case: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    if case.join("workspace").is_dir() {
        program::copy(&case.join("workspace"), &root);
    }
    let script = std::fs::read_to_string(case.join("script.yaml")).unwrap();
    let steps: Vec<Value> =
        serde_yaml::from_str(&script.replace("{root}", &format!("file://{}", root.display()))).unwrap();
    let mut player =
        Player { client: Client::start(&root, &[]), transcript: String::new(), is_verbatim: false, requests: 0 };
    for step in steps {
        let said = serde_json::to_string(&step).unwrap();
        let cut: String = said.chars().take(STEP_CHARACTERS_MAX).collect();
        let dots = if cut.len() < said.len() { "..." } else { "" };
        writeln!(player.transcript, "{cut}{dots}").unwrap();
        player.step(&step);
        let messages = player.client.settled();
        messages.iter().for_each(|message| player.note(message));
    }
    let Player { client, mut transcript, .. } = player;
    let ended = client.end();
    assert_eq!(ended.messages, Vec::<Value>::new());
    writeln!(transcript, "{}exit {}", ended.stderr, ended.code.unwrap()).unwrap();
    transcript.replace(&format!("file://{}", root.display()), "{root}").replace(&root.display().to_string(), "{root}")
}

/// Of a step so much is written down.
const STEP_CHARACTERS_MAX: usize = 200;
/// Of a completion so many candidates.
const CANDIDATES_MAX: usize = 12;

struct Player {
    client: Client,
    transcript: String,
    is_verbatim: bool,
    requests: u64,
}

impl Player {
    fn step(&mut self, step: &Value) {
        let (name, value) = step.as_object().unwrap().iter().next().unwrap();
        let text = |key: &str| value[key].as_str().unwrap_or_default();
        let file = text("file");
        match name.as_str() {
            "begin" => self.begin(value),
            "open" => {
                let on_disk = || std::fs::read_to_string(self.client.root.join(file)).unwrap();
                let text = value["text"].as_str().map_or_else(on_disk, str::to_owned);
                self.client.open(file, text);
            }
            "edit" => self.client.edit(file, text("old"), text("new")),
            "close" => {
                let uri = self.client.uri(file);
                self.client.notify("textDocument/didClose", &json!({ "textDocument": { "uri": uri } }));
            }
            "hover" => {
                let place = self.client.place(file, text("at"));
                self.ask("textDocument/hover", &place);
            }
            "complete" => {
                let place = self.client.place(file, text("at"));
                self.ask("textDocument/completion", &place);
            }
            "actions" => {
                let mut parameters = self.client.place(file, text("at"));
                let position = parameters["position"].take();
                parameters["range"] = json!({ "start": position, "end": position });
                parameters["context"] = json!({ "diagnostics": [], "only": value.get("only") });
                self.ask("textDocument/codeAction", &parameters);
            }
            "definition" | "prepareRename" => {
                let place = self.client.place(file, text("at"));
                self.ask(&format!("textDocument/{name}"), &place);
            }
            "references" => {
                let mut parameters = self.client.place(file, text("at"));
                parameters["context"] = json!({ "includeDeclaration": value["givers"] == true });
                self.ask("textDocument/references", &parameters);
            }
            "rename" => {
                let mut parameters = self.client.place(file, text("at"));
                parameters["newName"] = value["to"].clone();
                self.ask("textDocument/rename", &parameters);
            }
            "symbols" => {
                let document = json!({ "textDocument": { "uri": self.client.uri(file) } });
                self.ask("textDocument/documentSymbol", &document);
            }
            // Somebody else does something to a file, and the editor tells of it.
            "write" => {
                std::fs::write(self.client.root.join(file), text("text")).unwrap();
                self.watched(file, 2);
            }
            "remove" => {
                std::fs::remove_file(self.client.root.join(file)).unwrap();
                self.watched(file, 3);
            }
            "send" => self.client.send(value.clone()),
            "body" => self.client.body(value.as_str().unwrap().as_bytes()),
            "bytes" => self.client.raw(value.as_str().unwrap().as_bytes()),
            "shutdown" => self.ask("shutdown", &Value::Null),
            "exit" => self.client.notify("exit", &Value::Null),
            other => panic!("there is no step `{other}`"),
        }
    }

    fn begin(&mut self, value: &Value) {
        self.is_verbatim = value["verbatim"] == true;
        if value["encoding"] == "utf-8" {
            self.client.encoding = Encoding::Utf8;
        }
        let root = format!("file://{}", self.client.root.display());
        let encodings = value["encoding"].as_str().map(|it| json!([it, "utf-16"]));
        let capabilities = json!({
            "general": { "positionEncodings": encodings },
            "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": value["watches"] == true } },
            "textDocument": { "publishDiagnostics": { "relatedInformation": true } },
        });
        let folders = json!([{ "uri": root, "name": "workspace" }]);
        let parameters =
            json!({ "processId": null, "rootUri": null, "capabilities": capabilities, "workspaceFolders": folders });
        self.ask("initialize", &parameters);
        self.client.notify("initialized", &json!({}));
    }

    fn ask(&mut self, method: &str, parameters: &Value) {
        self.requests += 1;
        self.client.request(json!(self.requests), method, parameters);
    }

    fn watched(&mut self, file: &str, kind: u8) {
        let changes = json!([{ "uri": self.client.uri(file), "type": kind }]);
        self.client.notify("workspace/didChangeWatchedFiles", &json!({ "changes": changes }));
    }

    fn note(&mut self, message: &Value) {
        let mut out = String::new();
        let result = &message["result"];
        if self.is_verbatim {
            out = serde_json::to_string_pretty(message).unwrap();
        } else if message["method"] == "textDocument/publishDiagnostics" {
            findings(&message["params"], &mut out);
        } else if result["contents"].is_object() {
            let value = result["contents"]["value"].as_str().unwrap();
            write!(out, "hover {}\n{}", range(&result["range"]), value.trim_end()).unwrap();
        } else if result["items"].is_array() {
            candidates(result, &mut out);
        } else if let Some(found) = result.as_array() {
            found.iter().for_each(|it| self::found(it, &mut out));
            if found.is_empty() {
                out.push_str("no actions");
            }
        } else if result["uri"].is_string() {
            found(result, &mut out);
        } else if result["changes"].is_object() {
            edits(result, &mut out);
        } else if result["serverInfo"].is_object() {
            write!(out, "begun, {}", result["capabilities"]["positionEncoding"]).unwrap();
        } else {
            out = message.to_string();
        }
        for line in out.trim_end().lines() {
            writeln!(self.transcript, "  {line}").unwrap();
        }
    }
}

fn findings(parameters: &Value, out: &mut String) {
    let version = parameters["version"].as_i64().map(|version| format!(" version {version}")).unwrap_or_default();
    let found = parameters["diagnostics"].as_array().unwrap();
    writeln!(out, "{}{version}: {} found", parameters["uri"].as_str().unwrap(), found.len()).unwrap();
    for diagnostic in found {
        let severity = match diagnostic["severity"].as_u64() {
            Some(1) => "error",
            Some(2) => "warning",
            _ => "note",
        };
        let code = diagnostic["code"].as_str().unwrap();
        let message = diagnostic["message"].as_str().unwrap().replace('\n', "; ");
        writeln!(out, "  {} {severity} {code} {message}", range(&diagnostic["range"])).unwrap();
        for related in diagnostic["relatedInformation"].as_array().into_iter().flatten() {
            let (uri, place) = (related["location"]["uri"].as_str().unwrap(), range(&related["location"]["range"]));
            writeln!(out, "    {uri} {place} {}", related["message"].as_str().unwrap()).unwrap();
        }
    }
}

fn candidates(list: &Value, out: &mut String) {
    let items = list["items"].as_array().unwrap();
    let more = if list["isIncomplete"] == true { " and more" } else { "" };
    writeln!(out, "{} candidates{more}", items.len()).unwrap();
    for item in items.iter().take(CANDIDATES_MAX) {
        let (place, text) = (range(&item["textEdit"]["range"]), item["textEdit"]["newText"].as_str().unwrap());
        writeln!(out, "  {place} `{text}` {}", item["detail"].as_str().unwrap_or_default()).unwrap();
    }
    if items.len() > CANDIDATES_MAX {
        writeln!(out, "  ...").unwrap();
    }
}

/// A place, an object of a document, or what can be done.
fn found(found: &Value, out: &mut String) {
    if let Some(uri) = found["uri"].as_str() {
        writeln!(out, "{uri} {}", range(&found["range"])).unwrap();
    } else if let Some(name) = found["name"].as_str() {
        let (all, of_name) = (range(&found["range"]), range(&found["selectionRange"]));
        writeln!(out, "{} {name} {all}, called so at {of_name}", found["detail"].as_str().unwrap()).unwrap();
    } else {
        writeln!(out, "{} ({})", found["title"].as_str().unwrap(), found["kind"].as_str().unwrap()).unwrap();
        edits(&found["edit"], out);
    }
}

fn edits(edit: &Value, out: &mut String) {
    // Files come in any order.
    let changes: BTreeMap<_, _> = edit["changes"].as_object().unwrap().iter().collect();
    for (uri, edits) in changes {
        for edit in edits.as_array().unwrap() {
            writeln!(out, "  {uri} {} {}", range(&edit["range"]), edit["newText"]).unwrap();
        }
    }
}

/// From 0, as they are sent.
fn range(range: &Value) -> String {
    let place = |position: &Value| format!("{}:{}", position["line"], position["character"]);
    format!("{}-{}", place(&range["start"]), place(&range["end"]))
}
