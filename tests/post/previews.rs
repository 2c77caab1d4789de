//! Previews to post, and the program that posts them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::forges::Forge;
use super::server::{OURS, Server};

/// The commit of a push.
pub fn commit(number: u32) -> String {
    format!("{number:040x}")
}

/// The preview of a push that creates so many nodes.
pub fn preview(push: u32, created: u64) -> Value {
    json!({
        "kind": "Preview",
        "version": 1,
        "base": { "id": commit(0), "reference": "main" },
        "head": { "id": commit(push), "reference": "more-nodes" },
        "merge": { "id": commit(1_000 + push) },
        "generatedFor": format!("2026-11-20T09:{:02}:00Z", push % 60),
        "targets": [target("prod", created)],
    })
}

pub fn target(cluster: &str, created: u64) -> Value {
    json!({
        "cluster": cluster,
        "environment": "eu",
        "verdict": "changes",
        "headline": format!("{created} created, +$0.1000/h"),
        "plan": { "id": "b".repeat(64), "digest": format!("{created:064x}") },
        "figures": {
            "nodesBefore": 3, "nodesAfter": 3 + created, "nodesCreated": created, "nodesReplaced": 0, "nodesRemoved": 0,
            "podsMoved": 0, "podsPlaced": 2, "podsPending": 0, "pricePerHourBefore": 0.3, "pricePerHourAfter": 0.4,
            "pricePerHourOfTheChange": 0.1, "stepsOfTheChange": created,
        },
        "causes": [{ "path": "pools/default.yaml", "line": 7, "severity": "warning", "text": "one more node" }],
        "markdown": {
            "summary": format!("**{created} created**\n"),
            "sections": [{ "title": "pool default", "markdown": "<details><summary>pool</summary>\n\n```diff\n+ node\n```\n</details>\n" }],
        },
    })
}

/// A folder with a preview and a token, and what the program did there.
pub struct Desk {
    folder: TempDir,
    forge: Forge,
    server: Server,
}

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Desk {
    pub fn new(forge: Forge, server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), format!("{OURS}\n")).unwrap();
        Self { folder, forge, server: server.clone() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn begin(&self, preview: &Value, more: &[&str]) -> Child {
        let name = format!("preview-{}.json", preview["head"]["id"].as_str().unwrap_or_default());
        let path = self.file(&name, &preview.to_string());
        self.server.pushed(preview["head"]["id"].as_str().unwrap_or_default());
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.arg("post").arg(path).args(["--forge", self.forge.name, "--url", &self.server.url]);
        command.args(["--repository", "acme/nodes", "--pull-request", "7"]).args(more);
        if !more.contains(&"--app-id") && !more.contains(&"--token-file") {
            command.arg("--token-file").arg(self.folder.path().join("token"));
        }
        command.env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn post_with(&self, preview: &Value, more: &[&str]) -> Ran {
        ended(self.begin(preview, more))
    }

    pub fn post(&self, preview: &Value) -> Ran {
        self.post_with(preview, &[])
    }
}

pub fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ran = Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!ran.stdout.contains(OURS) && !ran.stderr.contains(OURS), "a token is shown: {}{}", ran.stdout, ran.stderr);
    ran
}
