//! The form of `cutlist preview -o json`: what a change of definitions does to each cluster, in data that a machine can compare and in
//! pieces of Markdown that a forge can show. `cutlist post` reads it. It knows no forge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `kind` of the document.
pub const KIND: &str = "Preview";

/// The version that this program writes and reads. Fields may be added within a version; none is renamed or gets another meaning.
pub const FORMAT_VERSION: u32 = 1;

/// What a change does, cluster by cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Always `Preview`.
    pub kind: String,
    pub version: u32,
    /// The revision that the change is to be merged into.
    pub base: PreviewRevision,
    /// The revision that is proposed.
    pub head: PreviewRevision,
    /// The head merged into the base, which was planned. Absent where the head itself was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<PreviewRevision>,
    /// The moment that the plans are for, in RFC 3339.
    pub generated_for: String,
    /// Whether the proposed commits are signed. Absent where signatures were not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signatures: Option<PreviewSignatures>,
    /// A target for each cluster and environment, sorted by both.
    pub targets: Vec<PreviewTarget>,
}

/// Whether the proposed commits are signed as the operator's signing policy asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewSignatures {
    /// A sentence of plain text for each commit that lacks a signature: which commit, and whose signature. Empty where no signature is
    /// missing.
    pub unsigned: Vec<String>,
    /// How many commits without a signature are not listed.
    #[serde(default)]
    pub further: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRevision {
    /// The hash of the commit. A merge that was made for the preview alone has the hash that it would have as a commit, or that of its
    /// tree.
    pub id: String,
    /// The branch, tag or other reference that was asked for. Empty where none was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

/// One cluster in one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewTarget {
    pub cluster: String,
    /// The environment whose values the definitions are read with. Empty where there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    pub verdict: PreviewVerdict,
    /// One sentence of plain text, such as `2 created, 1 removed, -$0.0846/h`, or why there is no plan. Commit statuses show it and cut
    /// it off, so what matters stands first.
    pub headline: String,
    /// Why it is not known what the change does, in plain text: the snapshot is empty, or of another cluster. Such a target passes no
    /// status. Absent where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_known: Option<String>,
    /// The snapshot that was planned from. Absent where the live cluster was, and where no plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PreviewSnapshot>,
    /// Which plan was made. Absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PreviewPlan>,
    /// What the plan does, in figures. Absent where none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PreviewFigures>,
    /// What may go wrong, and for whom, counted by code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<PreviewCount>,
    /// Nodes that would go and stay, counted by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<PreviewCount>,
    /// Pods that stay pending, counted by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PreviewCount>,
    /// What happens in the next 24 hours, in a few sentences of plain text, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_24_hours: Vec<String>,
    /// The lines of the head that cause what happens, and what is wrong in its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<PreviewCause>,
    pub markdown: PreviewMarkdown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PreviewVerdict {
    /// No file that this program reads differs: nothing was planned, and nothing need be said.
    #[default]
    Untouched,
    /// Definitions differ, and the nodes do not.
    NoEffect,
    /// Nothing is known of what the change does: the snapshot tells nothing of the cluster, or only what other programs make of files
    /// differs.
    NotKnown,
    /// Nodes, pods or prices change, or why nodes go.
    Changes,
    /// The definitions can not be used: the causes say why.
    Invalid,
    /// No plan could be made, by no fault of the definitions: a snapshot that can not be read, a cluster that is away.
    Failed,
}

/// A cluster that was saved to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewSnapshot {
    /// `sha256:` and 64 hexadecimal digits, over the bytes of the file.
    pub digest: String,
    /// When it was taken, in RFC 3339. Absent where its objects do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// How old it is at the moment that the plans are for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewPlan {
    /// The ID of the head's plan. It differs from moment to moment.
    pub id: String,
    /// A hash over what is decided: steps, moves, pods and risks, but neither the moment nor revisions nor the day of prices. An
    /// approval is of every plan with the same digest.
    pub digest: String,
    /// The ID of the base's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_id: Option<String>,
}

/// The figures of the head's plan, with what the base would do as well. Fields that end in `OfTheChange` leave that out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewFigures {
    pub nodes_before: u64,
    pub nodes_after: u64,
    pub nodes_created: u64,
    pub nodes_replaced: u64,
    pub nodes_removed: u64,
    /// Running pods that must move.
    pub pods_moved: u64,
    /// Pods that wait and get a place.
    pub pods_placed: u64,
    pub pods_pending: u64,
    /// What all nodes cost before the plan, in US dollars per hour.
    pub price_per_hour_before: f64,
    /// What all nodes cost after it, in US dollars per hour.
    pub price_per_hour_after: f64,
    /// By how much the head makes all nodes dearer than the base would, in US dollars per hour.
    pub price_per_hour_of_the_change: f64,
    /// How many steps only one of the two plans has.
    pub steps_of_the_change: u64,
    /// What is to be known of the prices: their day, whether they have spot prices, and which discounts they leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
}

/// Things that are alike, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewCount {
    /// A code of `schemas/codes.md`.
    pub code: String,
    pub count: u64,
    /// How many of them the base has as well, so that the change is not their cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub anyway: u64,
    /// A sentence of plain text about one of them.
    pub text: String,
    /// Since when it has been so, in RFC 3339. Absent where this is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A line of a file, and what comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewCause {
    /// The file, from the root of the repository, with `/`. Empty for what no single line causes.
    pub path: String,
    /// The number of the line, from 1. 0 where there is no path.
    pub line: u32,
    pub severity: PreviewSeverity,
    /// One sentence of plain text.
    pub text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PreviewSeverity {
    /// The definitions can not be used.
    Error,
    /// Nodes go or pods wait because of it.
    Warning,
    #[default]
    Notice,
}

/// The target as Markdown that is safe to post: names are escaped, nobody is mentioned, nothing is linked, every fence and every
/// `<details>` is closed in the piece that opens it. Neither a marker nor a heading for the cluster is in it: whoever posts adds them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewMarkdown {
    /// What must be read even when nothing else is: verdict, figures, warnings about the snapshot's age. At most 4,000 characters;
    /// never left out.
    pub summary: String,
    /// The most important first. Where they do not fit, the last one is shortened, then left out, then the one before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<PreviewSection>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewSection {
    /// What it is about, in plain text, such as `pool default` or `risks`. A section that is left out is named by it.
    pub title: String,
    pub markdown: String,
    /// The same in fewer words, each text shorter than the one before. May be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shorter: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
