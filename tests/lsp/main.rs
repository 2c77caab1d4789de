//! Each folder of `tests/lsp` is a conversation of an editor with `cutlist lsp`: what it does (`script.yaml`) in a folder of
//! definitions (`workspace/`), and what comes of it (`expected.txt`). `UPDATE=1 cargo test --test lsp` rewrites what is expected; read the
//! difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

mod client;
mod large;
#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "../program/mod.rs"]
mod program;
mod script;

use std::path::Path;

#[test]
fn conversations_go_as_expected() {
    let cases = program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp"));
    assert!(cases.len() > 5, "the cases are missing");
    let of_case = |case: &Path| program::differs(&case.join("expected.txt"), &script::play(case));
    let differences: Vec<String> = cases.iter().filter_map(|case| of_case(case)).collect();
    assert!(differences.is_empty(), "{}\nUPDATE=1 rewrites the files", differences.join("\n"));
}
