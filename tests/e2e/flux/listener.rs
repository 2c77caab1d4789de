//! Where Flux's controllers, and whoever speaks like them, send their events: takes everything and remembers it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use serde_json::Value;
use tokio::runtime::Runtime;

type Heard = Arc<Mutex<Vec<Value>>>;

pub struct Listener {
    address: SocketAddr,
    heard: Heard,
    // Ends the server when it is dropped.
    _runtime: Runtime,
}

impl Listener {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let heard = Heard::default();
        let router = Router::new().fallback(hear).with_state(heard.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, heard, _runtime: runtime }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// All that came so far from a controller of this name.
    pub fn of(&self, controller: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|event| event["reportingController"] == controller).cloned().collect()
    }
}

async fn hear(State(heard): State<Heard>, body: String) {
    heard.lock().unwrap().push(serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")));
}
