//! The baseline that `spec.lint.baseline` of `cutlist.yaml` names. It lies among the definitions, so that who reads them has it: an editor,
//! and lint of an earlier commit. Its findings are known by their paths from the root of the repository.

use super::baseline::{Baseline, LookedAt};
use super::context::{BASELINE, Context};
use super::files::covers;
use super::findings::{Finding, FindingPlace};
use super::rules::suppression::UNUSABLE_BASELINE;
use super::{Definitions, fingerprint};
use crate::api::kustomization::join;
use crate::api::source::SourceFile;

#[derive(Debug, Default)]
pub struct OwnBaseline {
    /// The path of the baseline, and what it knows.
    known: Option<(String, Baseline)>,
    /// Why the file is no baseline.
    pub finding: Option<Finding>,
}

impl OwnBaseline {
    pub fn of(context: &Context, sources: &[&SourceFile]) -> Self {
        let Some((settings, path)) = context.settings.as_ref().zip(context.baseline.as_deref()) else {
            return Self::default();
        };
        let unusable = |message: String| {
            let finding = Finding::at(&UNUSABLE_BASELINE, settings, BASELINE, FindingPlace::Value, message);
            let hint =
                format!("write it in the folder of cutlist.yaml: cutlist lint . --baseline {path} --write-baseline");
            Self { known: None, finding: Some(finding.hint(hint)) }
        };
        let Some(source) = sources.iter().find(|source| source.path == path && source.has_content()) else {
            return unusable(format!("`{path}` is no file that is read"));
        };
        match Baseline::parse(&source.content) {
            Ok(known) => Self { known: Some((path.to_owned(), known)), finding: None },
            Err(error) => unusable(format!("`{path}` is no baseline: {error}")),
        }
    }

    /// Takes what is known out of what counts. `folder` is that of the files from the root of their repository. A baseline that was written
    /// outside of one knows files from the folder.
    pub fn apply(self, definitions: &mut Definitions, sources: &[&SourceFile], folder: &str) {
        let Some((path, known)) = self.known else { return };
        let is_from_root = known.findings.iter().any(|it| covers(folder, &it.file));
        let folder = if is_from_root { folder } else { "" };
        let known_as = |path: &str| join(folder, path).unwrap_or_else(|| path.to_owned());
        let text = |path: &str| {
            // The files come in the order of their paths.
            let place = sources.binary_search_by(|source| source.path.as_str().cmp(path)).ok()?;
            str::from_utf8(&sources.get(place)?.content).ok()
        };
        let suppressed = definitions.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
        fingerprint::assign(definitions.diagnostics.iter_mut().chain(suppressed), text, known_as);
        let paths: Vec<String> = definitions.paths_read.iter().map(|path| known_as(path)).collect();
        let looked_at = LookedAt { paths: &paths, is_whole: true };
        let applied = known.apply(std::mem::take(&mut definitions.diagnostics), looked_at, &path);
        definitions.diagnostics = applied.kept;
        definitions.suppressed.extend(applied.suppressed);
    }
}
