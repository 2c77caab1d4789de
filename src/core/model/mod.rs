//! The algebra everything else is written in: quantities, resources, requirements, money.

pub mod hexadecimal;
pub mod index;
pub mod money;
pub mod quantity;
pub mod requirements;
pub mod resources;
pub mod shared;
pub mod shown_hash;
pub mod static_hash;
pub mod suggest;
pub mod tenancy;
pub mod time;
pub mod words;

pub use hexadecimal::hexadecimal;
pub use index::IndexVec;
pub use money::HourlyPrice;
pub use quantity::{Quantity, QuantityError};
pub use requirements::{Requirement, Requirements};
pub use resources::Resources;
