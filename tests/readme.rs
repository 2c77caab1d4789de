//! What the documents for people show is what the program prints.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the README and the golden file are files")]

/// Their commands are typed in the root of the repository.
const DOCUMENTS: [&str; 2] = ["README.md", "examples/README.md"];

/// Console blocks are run as they stand.
#[test]
fn console_blocks_run() {
    let cases = trycmd::TestCases::new();
    cases.register_bin("cutlist", std::path::Path::new(env!("CARGO_BIN_EXE_cutlist")));
    for document in DOCUMENTS {
        cases.case(document);
    }
}

/// Plans in text blocks are copied from the demo, whose output is a golden file. Ids change with every input, so they
/// do not count.
#[test]
fn plans_are_those_of_the_demo() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| without_ids(&std::fs::read_to_string(root.join(path)).unwrap());
    let (documents, demo) = (DOCUMENTS.map(read), read("tests/run/quickstart.txt"));
    let blocks = documents.iter().flat_map(|text| text.split("```text\n").skip(1));
    let blocks: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "the documents show plans");
    for block in blocks {
        assert!(demo.contains(block.trim_end()), "not in tests/run/quickstart.txt:\n{block}");
    }
}

/// The text with `Plan 1a2b3c` as `Plan`.
fn without_ids(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("Plan ").and_then(|rest| rest.split_once(' ')) {
        Some((id, rest)) if id.chars().all(|digit| digit.is_ascii_hexdigit() || digit == '*') => format!("Plan {rest}"),
        _ => line.to_owned(),
    };
    text.lines().map(|text| line(text) + "\n").collect()
}
