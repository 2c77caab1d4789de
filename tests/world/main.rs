//! The embedded world: it must behave like a cluster and a cloud before anything can be tested on it.

#![cfg(test)]

mod machines;
mod scene;
mod workloads;
