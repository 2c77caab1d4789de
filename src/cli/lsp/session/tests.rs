//! Messages that arrive together, and how a conversation ends.

use serde_json::json;

use super::*;

fn session(arguments: &DefinitionArguments) -> Session<'_> {
    let mut session = Session::new(arguments);
    assert!(
        session
            .take(vec![message(json!({ "id": 1, "method": "initialize", "params": { "capabilities": {} } }))])
            .is_none()
    );
    session.outgoing();
    session
}

fn message(mut message: Value) -> Incoming {
    message["jsonrpc"] = json!("2.0");
    Incoming::Message(serde_json::from_value(message).unwrap())
}

fn hover(id: Value) -> Incoming {
    let place = json!({ "textDocument": { "uri": "file:///a.yaml" }, "position": { "line": 0, "character": 0 } });
    message(json!({ "id": id, "method": "textDocument/hover", "params": place }))
}

#[test]
fn what_is_cancelled_while_it_waits_is_not_answered() {
    let arguments = DefinitionArguments::default();
    let mut session = session(&arguments);
    let cancel = message(json!({ "method": "$/cancelRequest", "params": { "id": "a" } }));
    assert!(session.take(vec![hover(json!("a")), hover(json!(2)), cancel]).is_none());
    let said: Vec<Value> = session.outgoing().iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!((&said[0]["id"], &said[0]["error"]["code"]), (&json!("a"), &json!(REQUEST_CANCELLED)));
    assert_eq!((&said[1]["id"], &said[1]["result"]), (&json!(2), &Value::Null));
    // Its name is free again.
    assert!(session.take(vec![hover(json!("a"))]).is_none());
    assert!(session.outgoing()[0].contains("\"result\":null"));
}

#[test]
fn the_class_that_a_pool_names_is_found() {
    let arguments = DefinitionArguments::default();
    let mut session = session(&arguments);
    let text = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: general }\nspec:\n  template:\n    spec:\n      \
                requirements: []\n      nodeClassRef:\n        group: karpenter.k8s.aws\n        kind: EC2NodeClass\n        name: default\n\
                ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: { name: default }\nspec:\n  role: Nodes\n  \
                amiSelectorTerms: [{ alias: al2023@v20250920 }]\n  subnetSelectorTerms: [{ tags: { a: b } }]\n  \
                securityGroupSelectorTerms: [{ tags: { a: b } }]\n";
    let document = json!({ "uri": "untitled:a", "languageId": "yaml", "version": 1, "text": text });
    let open = message(json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
    let ask = |line: u32| {
        let place = json!({ "textDocument": { "uri": "untitled:a" }, "position": { "line": line, "character": 16 } });
        message(json!({ "id": line, "method": "textDocument/definition", "params": place }))
    };
    assert!(session.take(vec![open, ask(10), ask(9)]).is_none());
    let said: Vec<Value> = session.outgoing().iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    let answer = |id: u32| said.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(answer(10)["result"]["uri"], "untitled:a", "{said:?}");
    let line = answer(10)["result"]["range"]["start"]["line"].as_u64().unwrap();
    assert_eq!(line, 14, "where the class gets its name");
    assert_eq!(answer(9)["result"], Value::Null);
}

#[test]
fn it_ends_as_it_is_asked_to() {
    let arguments = DefinitionArguments::default();
    let exit = || message(json!({ "method": "exit" }));
    assert!(matches!(session(&arguments).take(vec![exit()]), Some(End::Abrupt)));
    assert!(matches!(session(&arguments).take(vec![Incoming::Ended(None)]), Some(End::Abrupt)));
    let shutdown = || message(json!({ "id": 2, "method": "shutdown" }));
    assert!(matches!(session(&arguments).take(vec![shutdown(), exit()]), Some(End::Clean)));
    assert!(matches!(session(&arguments).take(vec![shutdown(), Incoming::Ended(None)]), Some(End::Clean)));
    let mut session = session(&arguments);
    assert!(session.take(vec![shutdown(), hover(json!(3))]).is_none());
    assert!(session.outgoing()[1].contains("-32600"));
}
