//! What is kept from one reading for the next changes nothing that is found.

use cutlist::adapters::git::read_folder;
use cutlist::api::source::SourceFile;
use cutlist::definitions::{Definitions, GivenVariables, LintOptions, Memory, lint, lint_again};

use super::{folder, program};

/// All that a report is made of.
fn said(definitions: &Definitions) -> String {
    let names: Vec<_> = definitions.node_pools.iter().map(|pool| (&pool.value.metadata.name, &pool.places)).collect();
    let counts = (definitions.files_read, definitions.documents_read, definitions.documents_skipped);
    let open = (&definitions.open, &definitions.not_read, &definitions.notes, definitions.definitions_found);
    format!("{:#?}", (&definitions.diagnostics, &definitions.suppressed, names, counts, open))
}

#[test]
fn a_reading_with_a_memory_finds_the_same() {
    let given = GivenVariables::default();
    let mut compared = 0;
    for case in program::folders(&folder()).into_iter().filter(|case| case.join("input").is_dir()) {
        let files = read_folder(&case.join("input")).unwrap().files;
        let mut memory = Memory::default();
        let mut compare = |files: &[SourceFile], what: &str| {
            let again = lint_again(files, &given, LintOptions::default(), &mut memory);
            assert_eq!(said(&lint(files, &given)), said(&again), "{}: {what}", case.display());
            compared += 1;
        };
        compare(&files, "at first");
        compare(&files, "the same again");
        // Each file in turn: longer, empty, gone, and as it was.
        for index in 0..files.len().min(2) {
            let mut changed = files.clone();
            changed[index].content.extend(b"\n# longer\n---\na: 1\n");
            compare(&changed, "one is longer");
            changed[index].content.clear();
            compare(&changed, "one is empty");
            changed.remove(index);
            compare(&changed, "one is gone");
            compare(&files, "as it was");
        }
    }
    assert!(compared > 100, "the cases are missing");
}
