//! An editor that does what a script says: it starts the program, speaks the protocol with it, and keeps the texts that it has open.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// How columns are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    #[default]
    Utf16,
}

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub root: PathBuf,
    pub encoding: Encoding,
    texts: BTreeMap<String, (i64, String)>,
    barriers: usize,
}

/// How the program ended.
pub struct Ended {
    pub messages: Vec<Value>,
    pub code: Option<i32>,
    pub stderr: String,
}

impl Client {
    pub fn start(root: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cutlist"))
            .arg("lsp")
            .args(arguments)
            .current_dir(root)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (encoding, texts) = (Encoding::default(), BTreeMap::new());
        Self { child, input, output, root: root.to_owned(), encoding, texts, barriers: 0 }
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Bytes as they are. That the program has gone is seen by what it says.
    pub fn raw(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.input {
            let _gone = input.write_all(bytes).and_then(|()| input.flush());
        }
    }

    pub fn body(&mut self, body: &[u8]) {
        self.raw(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        self.raw(body);
    }

    pub fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.body(message.to_string().as_bytes());
    }

    pub fn request(&mut self, id: Value, method: &str, parameters: &Value) {
        self.send(json!({ "id": id, "method": method, "params": parameters }));
    }

    pub fn notify(&mut self, method: &str, parameters: &Value) {
        self.send(json!({ "method": method, "params": parameters }));
    }

    pub fn uri(&self, file: &str) -> String {
        match file.contains("://") || file.starts_with("untitled:") {
            true => file.to_owned(),
            false => format!("file://{}/{}", self.root.display(), file.replace(' ', "%20")),
        }
    }

    pub fn open(&mut self, file: &str, text: String) {
        let uri = self.uri(file);
        let document = json!({ "uri": uri, "languageId": "yaml", "version": 1, "text": text });
        self.notify("textDocument/didOpen", &json!({ "textDocument": document }));
        self.texts.insert(uri, (1, text));
    }

    /// Writes `new` for the one place of `old`.
    pub fn edit(&mut self, file: &str, old: &str, new: &str) {
        let uri = self.uri(file);
        let (version, text) = self.texts[&uri].clone();
        assert_eq!(text.matches(old).count(), 1, "`{old}` is not once in {file}:\n{text}");
        let start = text.find(old).unwrap();
        let range = json!({ "start": self.position(&text, start), "end": self.position(&text, start + old.len()) });
        let change = json!({ "range": range, "text": new });
        let document = json!({ "uri": uri, "version": version + 1 });
        self.notify("textDocument/didChange", &json!({ "textDocument": document, "contentChanges": [change] }));
        self.texts.insert(uri, (version + 1, text.replacen(old, new, 1)));
    }

    /// The place of `‸` in `at`, a part of the text of a document, as parameters of a request.
    pub fn place(&self, file: &str, at: &str) -> Value {
        let uri = self.uri(file);
        let (_, text) = &self.texts[&uri];
        let (before, behind) = at.split_once('‸').unwrap();
        let around = format!("{before}{behind}");
        assert_eq!(text.matches(&around).count(), 1, "`{around}` is not once in {file}:\n{text}");
        let byte = text.find(&around).unwrap() + before.len();
        json!({ "textDocument": { "uri": uri }, "position": self.position(text, byte) })
    }

    pub fn position(&self, text: &str, byte: usize) -> Value {
        let (above, before) = text.get(..byte).unwrap().rsplit_once('\n').unwrap_or(("", text.get(..byte).unwrap()));
        let character = match self.encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        let line = if above.len() + before.len() < byte { above.matches('\n').count() + 1 } else { 0 };
        json!({ "line": line, "character": character })
    }

    /// What the program says about everything that was sent so far. It looks at definitions when nothing waits, so that the answer to a
    /// second question comes after that.
    pub fn settled(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        for _ in 0..2 {
            self.barriers += 1;
            let id = json!(format!("barrier {}", self.barriers));
            self.request(id.clone(), "test/barrier", &json!({}));
            loop {
                match self.receive() {
                    Some(message) if message["id"] == id => break,
                    Some(message) => messages.push(message),
                    None => return messages,
                }
            }
        }
        messages
    }

    pub fn receive(&mut self) -> Option<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// Closes the stream to the program, and waits for its end.
    pub fn end(mut self) -> Ended {
        drop(self.input.take());
        let messages = std::iter::from_fn(|| self.receive()).collect();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ended { messages, code: self.child.wait().unwrap().code(), stderr }
    }
}
