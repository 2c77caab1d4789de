//! The cluster as the controller sees it: looking things up, what is not ours, what is not known as it is now.

pub mod afresh;
pub mod doubled;
pub mod doubted;
pub mod kept_by_others;
pub mod look;
pub mod others;
pub mod view;
