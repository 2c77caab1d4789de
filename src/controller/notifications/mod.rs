//! What people elsewhere are told, each once: what is to be told (`outbox.rs`), and how each receiver gets it (`telling.rs`).

mod outbox;
mod telling;

pub use outbox::Outbox;
pub use telling::{Form, Notifications, Teller, Telling};
