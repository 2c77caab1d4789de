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

/// What the README claims are the rows about prices in the table that `make bench` writes, rounded so that nothing is promised.
#[test]
fn the_headline_is_what_the_table_says() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let table = read("tests/bench/README.md");
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let head = table.lines().find(|line| line.starts_with("| scenario | pods | reference s |")).unwrap();
    let column = |name: &str| cells(head).iter().position(|cell| cell == name).unwrap();
    let figures = |name: &str| -> Vec<f64> {
        let rows = table.lines().filter(|line| line.starts_with("| price, "));
        let cell = |row: &str| cells(row)[column(name)].trim_end_matches([' ', 'x', '%']).parse::<f64>().unwrap();
        rows.map(cell).collect()
    };
    let range = |figures: &[f64]| {
        assert_eq!(figures.len(), 4, "the rows about prices");
        (figures.iter().copied().fold(f64::MAX, f64::min), figures.iter().copied().fold(0.0, f64::max))
    };
    let saved: Vec<f64> = figures("price").iter().map(|change| -change).collect();
    let (reference, ours) = (figures("reference s"), figures("`cheapest` s"));
    let faster: Vec<f64> = reference.iter().zip(&ours).map(|(reference, ours)| reference / ours).collect();
    let ((least, most), (slowest, fastest)) = (range(&saved), range(&faster));
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for claim in [
        format!("cost {least:.0} to {most:.0} % less"),
        format!("planned {:.0} to {:.0} times as fast", slowest.floor(), fastest.floor()),
        format!("{:.0} times as fast or more", range(&figures("faster")).0.floor()),
    ] {
        assert!(readme.contains(&claim), "README.md should say: {claim}");
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
