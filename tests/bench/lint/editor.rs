//! An editor that has one file of a large folder open, and changes it: how long the answer takes.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark starts a program and looks at the clock")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

pub struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    uri: String,
    version: i64,
}

impl Editor {
    /// Opens a file of the folder. Gives the editor when it has been told of the whole folder.
    pub fn open(program: &Path, root: &Path, file: &str, text: &str) -> Self {
        let mut child = Command::new(program)
            .arg("lsp")
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let uri = format!("file://{}/{file}", root.display());
        let mut editor = Self { child, input, output, uri, version: 1 };
        let folder = json!([{ "uri": format!("file://{}", root.display()), "name": "bench" }]);
        editor.send(
            json!({ "id": 1, "method": "initialize", "params": { "capabilities": {}, "workspaceFolders": folder } }),
        );
        editor.answer();
        editor.send(json!({ "method": "initialized", "params": {} }));
        let document = json!({ "uri": editor.uri, "languageId": "yaml", "version": 1, "text": text });
        editor.send(json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
        editor.published();
        editor
    }

    /// Milliseconds until the diagnostics of the file are there again, which must be others than before.
    pub fn change(&mut self, text: &str) -> f64 {
        self.version += 1;
        let document = json!({ "uri": self.uri, "version": self.version });
        let start = Instant::now();
        self.send(json!({
            "method": "textDocument/didChange",
            "params": { "textDocument": document, "contentChanges": [{ "text": text }] },
        }));
        self.published();
        start.elapsed().as_secs_f64() * 1000.0
    }

    fn published(&mut self) {
        while self.answer()["params"]["uri"] != self.uri {}
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.input.flush().unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the program has gone");
            match line.trim().split_once(": ") {
                Some(("Content-Length", bytes)) => length = bytes.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It may have gone.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
