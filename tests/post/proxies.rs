//! Forges and API servers behind a proxy, which the environment names.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::previews::{Ran, ended, preview};
use super::server::OURS;

/// Refuses every connection that it is asked for, and keeps what was said to it.
fn refusing_proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            hears.lock().unwrap().push(head.join("\n"));
            let _gone = stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (address, heard)
}

fn post(variables: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("preview.json"), preview(1, 2).to_string()).unwrap();
    std::fs::write(folder.path().join("token"), OURS).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
    command.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    command.args(["post", "preview.json", "--forge", "gitea", "--url", "https://forge.example.invalid"]);
    command.args(["--repository", "acme/nodes", "--pull-request", "7", "--token-file", "token", "--max-wait", "0s"]);
    ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_forge_is_reached_through_the_proxy_that_the_environment_names() {
    let (proxy, heard) = refusing_proxy();
    let with_password = format!("http://someone:a-password-of-the-proxy@{proxy}");
    let ran = post(&[("HTTPS_PROXY", &with_password)]);
    assert!(ran.code != 0 && ran.stderr.contains("the proxy that HTTPS_PROXY"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("a-password-of-the-proxy") && !ran.stderr.contains(OURS), "{}", ran.stderr);
    let asked = heard.lock().unwrap().join("\n\n");
    assert!(asked.starts_with("CONNECT forge.example.invalid:443"), "{asked}");
    assert!(asked.to_lowercase().contains("proxy-authorization: basic "), "{asked}");
    assert!(!asked.contains(OURS), "what goes to the forge is not told to the proxy: {asked}");
}

#[test]
fn no_proxy_is_asked_where_it_is_said() {
    let (proxy, heard) = refusing_proxy();
    let url = format!("http://{proxy}");
    let ran = post(&[("HTTPS_PROXY", &url), ("NO_PROXY", "example.invalid")]);
    assert!(ran.code != 0 && !ran.stderr.contains("the proxy that"), "{}", ran.stderr);
    let ran = post(&[("HTTPS_PROXY", "socks5://127.0.0.1:9")]);
    assert!(ran.stderr.contains("only http is spoken with proxies"), "{}", ran.stderr);
    assert!(heard.lock().unwrap().is_empty());
}

/// Plans on the cluster of a kubeconfig.
fn plan(cluster: &serde_json::Value, variables: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": cluster }],
        "users": [{ "name": "u", "user": { "token": OURS } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
    command.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    command.args(["snapshot", "--kubeconfig", "kubeconfig"]);
    ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn an_api_server_is_reached_through_a_proxy_unless_it_is_said_to_need_none() {
    let (proxy, heard) = refusing_proxy();
    let url = format!("http://{proxy}");
    let heard = || std::mem::take(&mut *heard.lock().unwrap());
    let cluster = serde_json::json!({ "server": "https://api.example.invalid:6443" });
    for (cluster, variables, asks) in [
        (&cluster, &[("HTTPS_PROXY", url.as_str())] as &[(&str, &str)], true),
        (&cluster, &[("HTTPS_PROXY", &url), ("NO_PROXY", ".example.invalid")], false),
        (&serde_json::json!({ "server": "https://127.0.0.1:1" }), &[("HTTPS_PROXY", &url)], false),
        // The kubeconfig's own.
        (&serde_json::json!({ "server": "https://api.example.invalid:6443", "proxy-url": url }), &[], true),
    ] {
        let ran = plan(cluster, variables);
        assert_ne!(ran.code, 0);
        let asked = heard();
        let is_asked = asked.iter().any(|head| head.starts_with("CONNECT api.example.invalid:6443"));
        assert_eq!(is_asked, asks, "{cluster} {variables:?}: {asked:?}\n{}", ran.stderr);
        assert!(asks || asked.is_empty(), "{asked:?}");
    }
}
