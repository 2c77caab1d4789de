//! What is made of the files before their objects are judged: kustomizations build some, and Flux and Argo CD change what was built. What
//! becomes of each file follows from that.

use std::collections::{BTreeMap, BTreeSet};

use super::afterwards::{Afterwards, Done, Line};
use super::argo::ArgoSource;
use super::context::Context;
use super::document::Parsed;
use super::files;
use super::findings::Finding;
use super::flux::FluxKustomizations;
use super::kustomize::{self, Build, Layout, Role};
use super::rules::kustomize as rules;
use crate::api::source::{SourceFile, Standing};

/// What the files are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To plan and to apply what they define together.
    Use,
    /// To say what is wrong with any of them.
    Judge,
}

/// What was made.
pub struct Made {
    pub builds: Vec<Build>,
    /// What becomes of each file.
    pub hows: Vec<How>,
    /// Files whose objects were changed, by index.
    pub changed: BTreeMap<usize, Parsed>,
    /// The lines of what Flux and Argo CD are told that were carried out.
    pub carried_out: BTreeSet<Line>,
    pub findings: Vec<Finding>,
}

/// `cluster` is the one that the files are read for, where that is known.
pub fn of(
    sources: &[&SourceFile],
    parsed: &[Parsed],
    layout: &Layout<'_>,
    (flux, argo): (&FluxKustomizations, &[ArgoSource<'_>]),
    context: &Context,
    (purpose, cluster): (Purpose, Option<&str>),
) -> Made {
    let tops = match layout.of_root().filter(|_| purpose == Purpose::Use) {
        Some(root) => vec![root],
        None => layout.tops.clone(),
    };
    let (mut builds, used, mut findings) = kustomize::build(layout, parsed, &tops);
    // Flux reads every file of the repository.
    if flux.folders().next().is_some() {
        findings.retain(|finding| !std::ptr::eq(finding.rule, &rules::OUTSIDE));
    }
    let how = |index: usize, source: &SourceFile, is_used: bool| how(index, source, layout, is_used, purpose, context);
    let of_file = |(index, source): (usize, &&SourceFile)| how(index, source, used.contains(&index));
    let mut hows: Vec<How> = sources.iter().enumerate().map(of_file).collect();
    let plain: Vec<usize> = (0..hows.len()).filter(|file| hows.get(*file) == Some(&How::Whole)).collect();
    let afterwards = Afterwards::of((flux, argo), sources, parsed, cluster);
    let done = afterwards.carry_out(layout, parsed, &mut builds, &plain);
    let Done { files: changed, lines: carried_out, used: used_afterwards, findings: found_afterwards } = done;
    for (index, of_file) in hows.iter_mut().enumerate() {
        if changed.contains_key(&index) {
            *of_file = How::Changed;
        } else if let Some(source) = sources.get(index).filter(|_| used_afterwards.contains(&index)) {
            *of_file = how(index, source, true);
        }
    }
    if purpose == Purpose::Judge {
        let others = layout.empty_ones(&context.paths).filter(|file| !used.contains(file));
        findings.extend(others.map(kustomize::empty));
        findings.extend(found_afterwards);
    }
    Made { builds, hows, changed, carried_out, findings }
}

/// What a cluster has is asked for, whatever the paths of the settings are. Those paths are of the repository that it
/// came from.
pub fn is_asked_for(source: &SourceFile, paths: &[String]) -> bool {
    let is_own =
        matches!(source.standing, Standing::Own | Standing::Template | Standing::TooLarge | Standing::Unreadable);
    source.standing == Standing::Applied || (is_own && files::is_selected(&source.path, paths))
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Skipped,
    /// A kustomization used it: its objects are judged as it built them.
    Counted(Role),
    /// Its objects are judged as kustomizations build them, and what is wrong in the file wherever it is used counts as
    /// well.
    InPart(Role),
    Whole,
    /// All of the file is read, and others change its objects then.
    Changed,
    /// All of the file is read, and it is part of nothing that is built.
    Apart,
    NotRead,
}

fn how(
    index: usize,
    source: &SourceFile,
    layout: &Layout<'_>,
    is_used: bool,
    purpose: Purpose,
    context: &Context,
) -> How {
    if context.baseline.as_deref() == Some(source.path.as_str()) {
        return How::Skipped;
    }
    let is_asked_for = is_asked_for(source, &context.paths);
    let role = layout.role(index);
    let judges = purpose == Purpose::Judge && is_asked_for;
    match (source.standing.clone(), role, is_used) {
        (Standing::LinkNotFollowed | Standing::Submodule, ..) => How::NotRead,
        // Settings may leave out a file, unless a kustomization needs it.
        (Standing::TooLarge | Standing::Unreadable, Role::Plain | Role::Apart, _) if !is_asked_for => How::Skipped,
        (Standing::TooLarge | Standing::Unreadable, ..) => How::NotRead,
        (_, Role::Applied, _) if judges => How::Whole,
        (_, Role::Resource | Role::Patch, true) if judges => How::InPart(role),
        (_, Role::Patch, false) if judges => How::InPart(role),
        (_, Role::Unbuilt, _) if judges => How::InPart(role),
        (.., true) => How::Counted(role),
        (_, Role::Kustomization | Role::Part | Role::Unbuilt, false) if is_asked_for => How::Counted(role),
        (_, Role::Plain, false) if is_asked_for => How::Whole,
        (_, Role::Apart, false) if judges => How::Apart,
        (_, Role::Resource | Role::Apart | Role::Patch, false)
            if judges || (is_asked_for && layout.tops.is_empty()) =>
        {
            How::Whole
        }
        _ => How::Skipped,
    }
}
