//! Launching: the claims of one launch become one CreateFleet of type `instant`, and its answer becomes instances for claims and failures of
//! offerings.
//!
//! The order of a launch, so that a crash between any two steps loses nothing and launches nothing twice:
//!
//! 1. the claims bear the launch's id before anything is asked for (`core::lifecycle::launches`);
//! 2. [`parts`] divides them by what they want, which is one part nearly always;
//! 3. [`requests`] makes the calls: the id is in their client tokens, and a tag of everything they launch;
//! 4. [`read`] understands an answer, and [`assign()`] gives its instances to the claims.
//!
//! After a crash or a lost answer the same call with the same token gives the same answer; and what was launched is found by its tag and
//! assigned in the same way.

mod answer;
mod assign;
mod exhausted;
mod part;
mod places;
mod request;

pub use answer::{FleetOutcome, LaunchedInstance, OfferingFailure, read};
pub use assign::{Assignment, assign};
pub use part::{LaunchPart, client_token, number, parts};
pub use places::{LaunchPlace, Places, places};
pub use request::{NotAsked, Order, Requests, Surroundings, requests};
