//! Reading definitions from real Git: the `git` program makes the repositories and serves them.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files, runs git and opens sockets on the loopback")]
#![expect(clippy::string_slice, reason = "commit hashes are ASCII")]

mod fixture;
mod reading;
mod remote;
mod scripted;
mod servers;
mod signed;
mod snapshots;
mod watch;
