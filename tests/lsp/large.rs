//! Large documents and folders, and a long conversation.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::client::Client;

/// A pool that lint has nothing against, but that nobody uses its class.
fn pool(name: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: {name}\nspec:\n  template:\n    spec:\n      \
         nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }}\n      requirements:\n        \
         - {{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }}\n        \
         - {{ key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r] }}\n  limits:\n    cpu: 100\n"
    )
}

fn begin(root: &Path) -> Client {
    let mut client = Client::start(root, &[]);
    let folder = json!([{ "uri": format!("file://{}", root.display()), "name": "a" }]);
    client.request(json!(1), "initialize", &json!({ "capabilities": {}, "workspaceFolders": folder }));
    client.notify("initialized", &json!({}));
    client.settled();
    client
}

fn end(mut client: Client) {
    client.request(json!(2), "shutdown", &Value::Null);
    client.notify("exit", &Value::Null);
    let ended = client.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

/// Bytes of memory that the process has, in kibibytes.
fn resident(client: &Client) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.process())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_document_of_five_megabytes_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = begin(folder.path());
    let mut text = pool("large");
    text.push_str("---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: large }\ndata:\n");
    (0..105_000).for_each(|number| writeln!(text, "  key-{number}: a value of some length, {number} é").unwrap());
    text.push_str("---\nkind: NodePool\nsp\n");
    assert!(text.len() > 4_500_000, "{}", text.len());
    client.open("large.yaml", text);
    client.settled();
    client.edit("large.yaml", "key-77777: a value", "key-77777: another value");
    let messages = client.settled();
    assert!(messages.iter().all(|it| it["method"] == "textDocument/publishDiagnostics"), "{messages:?}");
    let place = client.place("large.yaml", "NodePool\nsp‸\n");
    client.request(json!(3), "textDocument/completion", &place);
    let labels = client.settled()[0]["result"]["items"].to_string();
    assert!(labels.contains("\"spec\""), "{labels}");
    end(client);
}

/// A change is judged without reading again what did not change. The times are those of this build.
#[test]
fn a_change_among_a_hundred_files() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..100 {
        std::fs::write(folder.path().join(format!("pool-{number:03}.yaml")), pool(&format!("pool-{number}"))).unwrap();
    }
    let mut client = begin(folder.path());
    let started = Instant::now();
    client.open("pool-050.yaml", pool("pool-50"));
    assert!(client.settled().iter().any(|it| it["params"]["uri"].as_str().unwrap().ends_with("pool-099.yaml")));
    let first = started.elapsed();
    let started = Instant::now();
    client.edit("pool-050.yaml", "cpu: 100", "cpu: -1");
    let messages = client.settled();
    println!("100 files: {first:?} at first, {:?} for a change", started.elapsed());
    assert_eq!(messages.len(), 1, "only the file that has another finding: {messages:?}");
    assert!(messages[0].to_string().contains("CL03"), "{messages:?}");
    end(client);
}

#[test]
fn memory_does_not_grow_by_edits() {
    const EDITS: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let mut client = begin(folder.path());
    client.open("a.yaml", pool("a") + "# 0\n");
    let edit = |from: u64, client: &mut Client| {
        for number in from..from + EDITS {
            client.edit("a.yaml", &format!("# {number}\n"), &format!("# {}\n", number + 1));
            client.settled();
        }
        resident(client)
    };
    let (early, late) = (edit(0, &mut client), edit(EDITS, &mut client));
    assert!(late < early + 8 * 1024, "{early} KiB after {EDITS} edits, {late} KiB after twice as many");
    end(client);
}
