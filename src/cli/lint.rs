//! `cutlist lint`

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::arguments::{LintArguments, LintOutput};
use super::exit::{Failure, Outcome};
use super::output;
use super::settings;
use crate::adapters::git;
use crate::api::source::SourceFile;
use crate::api::{scenario, settings as settings_file};
use crate::render::diagnostics::{self, LintReport};

/// Exit code for arguments that name nothing that can be read.
const USAGE: u8 = 2;

/// Files that are read together: names are unique in them, and a pool finds its class in them.
#[derive(Default)]
struct Set {
    files: Vec<SourceFile>,
    /// How the path of a file begins, and what was typed in its place; longest beginnings first.
    prefixes: Vec<(String, String)>,
}

impl Set {
    /// The path as the user knows it.
    fn typed(&self, path: &str) -> String {
        let prefix = self.prefixes.iter().find_map(|(own, typed)| Some((typed, path.strip_prefix(own.as_str())?)));
        prefix.map_or_else(|| path.to_owned(), |(typed, rest)| format!("{typed}{rest}"))
    }
}

pub fn run(arguments: &LintArguments) -> Result<Outcome, Failure> {
    let sets = sets(&arguments.paths)?;
    let mut report = LintReport::new();
    for set in &sets {
        report.add(&settings::read_definitions(&set.files, &arguments.definitions), |path| set.typed(path));
    }
    match arguments.output {
        LintOutput::Json => output::data(&diagnostics::json(&report)),
        LintOutput::Text => {
            let texts = texts(&sets);
            output::text(&diagnostics::text(&report, |path| texts.get(path).copied(), true));
        }
    }
    Ok(if report.is_clean() { Outcome::Clean } else { Outcome::Findings })
}

/// A folder with its own `cutlist.yaml` is a repository by itself; everything else that was typed belongs together.
fn sets(paths: &[PathBuf]) -> Result<Vec<Set>, Failure> {
    let mut together = Set::default();
    let mut sets = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let content = git::read_folder(path).map_err(|error| {
            let hint = error.hint();
            let failure = Failure::usage(USAGE, error);
            match hint {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })?;
        let files = content.files;
        let of_folder = !path.is_file();
        let folder = if of_folder { Some(path.as_path()) } else { path.parent() };
        let typed = match folder.map(|folder| folder.display().to_string()).unwrap_or_default() {
            text if text == "." && of_folder => String::new(),
            text if text.is_empty() || text.ends_with('/') => text,
            text => text + "/",
        };
        let is_root =
            files.iter().any(|file| [settings_file::FILE_NAME, scenario::FILE_NAME].contains(&file.path.as_str()));
        if is_root || (of_folder && paths.len() == 1) {
            sets.push(Set { files, prefixes: vec![(String::new(), typed)] });
        } else {
            // Files of different folders may have one name; what is before it keeps them apart.
            let own = format!("{index}/");
            together
                .files
                .extend(files.into_iter().map(|file| SourceFile { path: format!("{own}{}", file.path), ..file }));
            together.prefixes.push((own, typed));
        }
    }
    if !together.files.is_empty() {
        sets.push(together);
    }
    Ok(sets)
}

/// The text of each file by its path as it was typed.
fn texts(sets: &[Set]) -> BTreeMap<String, &str> {
    let files = sets.iter().flat_map(|set| set.files.iter().map(move |file| (set.typed(&file.path), file)));
    files.filter_map(|(path, file)| Some((path, str::from_utf8(&file.content).ok()?))).collect()
}
