//! An API server that has nodes and pods, in pages, and in whose watches nothing happens.

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use tokio::net::TcpListener;

use crate::objects;

struct Kept {
    nodes: usize,
    pods: usize,
}

/// Says its port, and serves until its standard input ends.
pub fn serve(nodes: usize, pods: usize) {
    std::thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::abort();
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap().port());
        let app = Router::new().fallback(answer).with_state(Arc::new(Kept { nodes, pods }));
        axum::serve(listener, app).await.unwrap();
    });
}

async fn answer(State(kept): State<Arc<Kept>>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    };
    if value("watch").is_some() {
        return Response::new(Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>()));
    }
    let limit = value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let first = value("continue").and_then(|token| token.parse::<usize>().ok()).unwrap_or(0);
    let (all, object): (usize, fn(usize) -> String) = match uri.path() {
        "/api/v1/nodes" => (kept.nodes, objects::node),
        "/api/v1/pods" => (kept.pods, objects::pod),
        _ => (0, |_| String::new()),
    };
    let until = first.saturating_add(limit).min(all);
    let token = if until < all { until.to_string() } else { String::new() };
    let items: Vec<String> = (first..until).map(object).collect();
    let text =
        format!(r#"{{"metadata":{{"resourceVersion":"1","continue":"{token}"}},"items":[{}]}}"#, items.join(","));
    Response::new(Body::from(text))
}
