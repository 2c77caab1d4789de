//! The file of `--baseline`.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::places::{self, Places};
use crate::cli::arguments::LintArguments;
use crate::cli::exit::{Failure, Outcome};
use crate::cli::{inputs, output};
use crate::definitions::baseline::{Baseline, LookedAt};
use crate::definitions::fingerprint;
use crate::render::diagnostics::LintReport;

/// What is in the file, if one was named and is not written now.
pub struct Baselines {
    path: Option<PathBuf>,
    known: Option<Baseline>,
    /// Whether it is held against all files of a folder: of some it may have no finding.
    is_of_whole: bool,
}

impl Baselines {
    pub fn read(arguments: &LintArguments) -> Result<Self, Failure> {
        let path = arguments.baseline.clone();
        let known = match path.as_deref().filter(|_| !arguments.write_baseline) {
            Some(path) => Some(read(path)?),
            None => None,
        };
        let is_of_whole = arguments.changed_since.is_none() && arguments.paths.iter().any(|path| path.is_dir());
        Ok(Self { path, known, is_of_whole })
    }

    /// Takes what is known out of the report.
    pub fn apply(&self, report: &mut LintReport) {
        let Some((path, known)) = self.path.as_deref().zip(self.known.as_ref()) else { return };
        let mut places = Places::default();
        let paths: Vec<String> = report.paths.iter().map(|path| places.relative(path)).collect();
        let looked_at = LookedAt { paths: &paths, is_whole: self.is_of_whole };
        let sorted = known.apply(std::mem::take(&mut report.diagnostics), looked_at, &path.display().to_string());
        report.diagnostics = sorted.kept;
        let of_baseline = report.diagnostics.iter_mut().filter(|it| it.fingerprint.is_empty());
        fingerprint::assign(of_baseline, |_| None, |path| places.relative(path));
        report.suppressed.extend(sorted.suppressed);
        report.sort();
    }

    /// Writes what is in the report as what is known.
    pub fn write(&self, report: &LintReport) -> Result<Outcome, Failure> {
        let Some(path) = &self.path else { return Ok(Outcome::Clean) };
        let (of_forges, _) = places::of_forges(report);
        let baseline = Baseline::of(&of_forges.diagnostics);
        output::file(path, &baseline.text(), output::Form::Data).map_err(Failure::failed)?;
        output::say(&format!("wrote {} findings to {}", report.diagnostics.len(), path.display()));
        Ok(Outcome::Clean)
    }
}

fn read(path: &Path) -> Result<Baseline, Failure> {
    let place = || format!("baseline {}", path.display());
    let bytes = inputs::read_file(path, inputs::FileKind::Baseline).with_context(place).map_err(|error| {
        Failure::usage(error)
            .with_hint(format!("`cutlist lint --baseline {} --write-baseline` makes it", path.display()))
    })?;
    Baseline::parse(&bytes)
        .with_context(place)
        .map_err(|error| Failure::usage(error).with_hint("write it anew with --write-baseline"))
}
