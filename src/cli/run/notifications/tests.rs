//! A receiver on loopback, and an API server that has one page of the history.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body as KubeBody;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::api::node_plan::NOTIFIED;
use crate::api::notification::NotificationKind;
use crate::cli::run::now;
use crate::core::plan::{Note, NoteCode, Plan};
use crate::ports::notifications::Notified;

/// The page of the history, if there is one.
type Page = Arc<Mutex<Option<Value>>>;

/// An API server with nothing but that.
fn client(page: &Page) -> Client {
    let page = page.clone();
    let service = tower::service_fn(move |request: http::Request<KubeBody>| {
        let page = page.clone();
        async move {
            let method = request.method().clone();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let answer = answered(&page, method.as_str(), serde_json::from_slice(&body).unwrap_or_default());
            let code = if answer["kind"] == "Status" { 404 } else { 200 };
            let response = http::Response::builder().status(code).header("content-type", "application/json");
            Ok::<_, Infallible>(response.body(KubeBody::from(answer.to_string().into_bytes())).unwrap())
        }
    });
    Client::new(service, "default")
}

fn answered(page: &Page, method: &str, body: Value) -> Value {
    let mut page = page.lock().unwrap();
    match (method, page.as_mut()) {
        ("POST", None) => *page = Some(body),
        ("PATCH", Some(page)) if body["status"].is_object() => page["status"] = body["status"].clone(),
        ("PATCH", Some(page)) => page["metadata"]["annotations"] = body["metadata"]["annotations"].clone(),
        _ => {}
    }
    let none =
        || json!({ "kind": "Status", "apiVersion": "v1", "code": 404, "reason": "NotFound", "status": "Failure" });
    page.clone().unwrap_or_else(none)
}

/// What came, and what is answered, the first first; then 200.
#[derive(Clone, Default)]
struct Receiving {
    came: Arc<Mutex<Vec<(String, Value)>>>,
    answers: Arc<Mutex<Vec<StatusCode>>>,
}

impl Receiving {
    async fn start(answers: &[u16]) -> (Self, String) {
        let receiving = Self::default();
        *receiving.answers.lock().unwrap() =
            answers.iter().rev().map(|it| StatusCode::from_u16(*it).unwrap()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/services/canary", listener.local_addr().unwrap());
        let router = Router::new().route("/services/canary", post(receive)).with_state(receiving.clone());
        let what = crate::adapters::http::Incomings { purpose: "test", body_bytes_max: 1 << 20 };
        tokio::spawn(crate::adapters::http::serve(listener, router, what, Duration::from_secs(5)));
        (receiving, address)
    }

    fn keys(&self) -> Vec<String> {
        self.came.lock().unwrap().iter().map(|(key, _)| key.clone()).collect()
    }

    async fn has(&self, count: usize) -> Vec<String> {
        for _ in 0..500 {
            if self.keys().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // What comes too much comes soon.
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.keys()
    }
}

async fn receive(State(receiving): State<Receiving>, headers: HeaderMap, body: String) -> (StatusCode, &'static str) {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    receiving.came.lock().unwrap().push((key, serde_json::from_str(&body).unwrap()));
    (receiving.answers.lock().unwrap().pop().unwrap_or(StatusCode::OK), "no_canary")
}

/// A process that leads.
struct Process {
    notifications: Notifications<Around>,
    metrics: Metrics,
}

impl Process {
    fn start(page: &Page, address: &str, form: Form) -> Self {
        let source = SecretSource::Variable("TEST".to_owned(), Secret::new(address.to_owned()));
        let metrics = Metrics::default();
        let around =
            Around { ledger: NotedInCluster(client(page)), leadership: Leadership::alone(), metrics: metrics.clone() };
        let mut notifications = Notifications::with_pause(around, Duration::from_millis(1));
        let outbox = Outbox::new(&NotificationKind::ALL, "test", output::hidden());
        notifications.add(Receiver::new(SLACK, source, false).unwrap(), form, outbox);
        Self { notifications, metrics }
    }

    fn plans(&self, plan: &Plan) {
        self.notifications.teller().planned(plan, now());
    }

    async fn ends(self) {
        let soon = Duration::from_secs(4);
        tokio::time::timeout(soon, self.notifications.finish()).await.unwrap();
    }
}

/// A plan that finds the roll-outs of these pools halted.
fn halted(pools: &[&str]) -> Plan {
    let plan = include_str!("../../../../tests/plan/drifted-requirement/expected.json");
    let note =
        |pool: &&str| Note::new(NoteCode::RolloutHalted, format!("NodePool {pool}: 3 nodes did not")).about_pool(pool);
    Plan { notes: pools.iter().map(note).collect(), ..serde_json::from_str(plan).unwrap() }
}

fn noted(page: &Page) -> Notified {
    let page = page.lock().unwrap();
    let text = page.as_ref().unwrap()["metadata"]["annotations"][NOTIFIED].as_str().unwrap().to_owned();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_receiver_that_is_away_is_told_once_it_is_back_and_by_no_other_process_again() {
    let page = Page::default();
    let (receiving, address) = Receiving::start(&[500, 503, 429]).await;
    let first = Process::start(&page, &address, Form::Slack);
    first.plans(&halted(&["default"]));
    assert_eq!(receiving.has(4).await, ["rollout-halted/default"; 4]);
    let text = first.metrics.text();
    assert!(
        text.contains("outcome=\"failed\"} 3") && text.contains("receiver=\"slack\",outcome=\"sent\"} 1"),
        "{text}"
    );
    // It goes on like that, and another process leads.
    first.plans(&halted(&["default"]));
    first.ends().await;
    assert_eq!(noted(&page)[SLACK].keys().collect::<Vec<_>>(), ["rollout-halted/default"]);
    let second = Process::start(&page, &address, Form::Slack);
    second.plans(&halted(&["default", "other"]));
    assert_eq!(receiving.has(5).await.split_off(4), ["rollout-halted/other"]);
    second.ends().await;
    assert_eq!(noted(&page)[SLACK].len(), 2);
    assert_eq!(page.lock().unwrap().as_ref().unwrap()["status"]["phase"], "Applied", "a page is no plan");
}

#[tokio::test]
async fn a_message_that_is_not_taken_does_not_keep_others_waiting() {
    let (page, (receiving, address)) = (Page::default(), Receiving::start(&[400, 400, 400]).await);
    let process = Process::start(&page, &address, Form::Json);
    process.plans(&halted(&["a"]));
    assert_eq!(receiving.has(3).await.len(), 3);
    process.plans(&halted(&["a", "b"]));
    assert_eq!(receiving.has(4).await.split_off(3), ["rollout-halted/b"]);
    assert!(process.metrics.text().contains("outcome=\"given_up\"} 1"));
    process.ends().await;
}

#[tokio::test]
async fn a_process_that_is_told_to_stop_while_a_receiver_is_away_stops() {
    let (page, (receiving, address)) = (Page::default(), Receiving::start(&[500; 100]).await);
    let process = Process::start(&page, &address, Form::Json);
    process.plans(&halted(&["a"]));
    receiving.has(3).await;
    process.ends().await;
    assert!(page.lock().unwrap().is_none(), "what was not told is not noted");
}

#[test]
fn settings_that_can_not_work_are_refused_without_the_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let none = NotificationArguments {
        notify_slack_file: None,
        notify_webhook_file: None,
        notify_template: None,
        notify_on: NotificationKind::USUAL.to_vec(),
        notify_allow_plain_http: false,
    };
    assert!(check(&none).is_ok());
    let good = file("good", "https://hooks.example.com/canary\n");
    assert!(check(&NotificationArguments { notify_slack_file: good.clone(), ..none.clone() }).is_ok());
    let template = file("a.json.j2", "{ \"text\": {{ titel }} }");
    for (arguments, why) in [
        (
            NotificationArguments {
                notify_slack_file: file("plain", "http://hooks.example.com/canary"),
                ..none.clone()
            },
            "not encrypted",
        ),
        (NotificationArguments { notify_slack_file: file("empty", "\n"), ..none.clone() }, "holds no secret"),
        (
            NotificationArguments { notify_slack_file: Some(folder.path().join("gone")), ..none.clone() },
            "can not be read",
        ),
        (NotificationArguments { notify_template: template.clone(), ..none.clone() }, "is for a webhook"),
        (NotificationArguments { notify_webhook_file: good, notify_template: template, ..none }, "a.json.j2"),
    ] {
        let failure = check(&arguments).unwrap_err();
        let text = format!("{:#} {:?}", failure.error, failure.error);
        assert!(text.contains(why) && !text.contains("canary"), "{why}: {text}");
    }
}
