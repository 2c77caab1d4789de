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
    /// What the change goes into.
    pub base: PreviewRevision,
    /// What was proposed.
    pub head: PreviewRevision,
    /// What was planned: the head merged into the base. Absent where the head itself was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<PreviewRevision>,
    /// RFC 3339; the moment that was planned for.
    pub generated_for: String,
    /// Absent where nobody asked who signed what is proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signatures: Option<PreviewSignatures>,
    /// One for each cluster and environment, sorted by both.
    pub targets: Vec<PreviewTarget>,
}

/// Who signed the commits that are proposed, by the operator's rules for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewSignatures {
    /// Commits that somebody else should have signed, and why, in sentences of plain text. Empty: all are signed by who must have.
    pub unsigned: Vec<String>,
    /// So many more are not named.
    #[serde(default)]
    pub further: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRevision {
    /// Commit hash. Of a merge that exists nowhere else: the hash it would have, or that of its tree.
    pub id: String,
    /// Branch, tag or whatever was asked for; empty where nothing was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

/// One cluster in one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewTarget {
    pub cluster: String,
    /// Which values its definitions are read with; empty where there is only one set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    pub verdict: PreviewVerdict,
    /// One sentence of plain text, such as `2 created, 1 removed, -$0.0846/h`, or why there is no plan. For statuses, which are short:
    /// what matters stands first, and there is no Markdown in it.
    pub headline: String,
    /// Why nothing is known of what the change does, in plain text: the snapshot is empty, or of another cluster. Nobody passes a status by
    /// it. `None`: something is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_known: Option<String>,
    /// `None`: planned from the living cluster, or not planned at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<PreviewSnapshot>,
    /// `None` where no plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PreviewPlan>,
    /// `None` where no plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PreviewFigures>,
    /// What may go wrong for whom; those of one code together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<PreviewCount>,
    /// Nodes that would go and do not; those of one reason together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<PreviewCount>,
    /// Pods that stay pending; those of one reason together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PreviewCount>,
    /// What the next 24 hours bring, in a few sentences of plain text, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_24_hours: Vec<String>,
    /// Where in the files of the head what happens comes from, and what is wrong with them.
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
    /// RFC 3339; absent where its objects do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// From then until the moment that was planned for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewPlan {
    /// Identity of the plan of the head: another one for each moment.
    pub id: String,
    /// Hash over what is decided: steps, moves, pods and risks, without the moment, revisions and the day of prices. Who approves one
    /// approves every plan with the same digest.
    pub digest: String,
    /// Identity of the plan of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_id: Option<String>,
}

/// The head's plan as figures. What the base plans as well is in them; the last fields are of the change alone.
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
    /// US dollars.
    pub price_per_hour_before: f64,
    /// US dollars.
    pub price_per_hour_after: f64,
    /// US dollars per hour that the head costs more than the base would; the base alone may change the price, too.
    pub price_per_hour_of_the_change: f64,
    /// Steps that the base does not plan, and those of the base that the head takes away.
    pub steps_of_the_change: u64,
    /// What the prices are worth: their day, whether spot prices are in them, discounts that are not.
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
    /// How many of them are so with the base as well: they are not the change's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub anyway: u64,
    /// A sentence about one of them, in plain text.
    pub text: String,
    /// RFC 3339: since when it has been so, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// A line of a file, and what comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewCause {
    /// From the root of the repository, with `/`. Empty for what comes of several of the other causes, or of none of them alone.
    pub path: String,
    /// From 1; 0 where there is no path.
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
    /// Best first. Where they do not fit, the last is shortened first, then left out, then the one before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<PreviewSection>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewSection {
    /// What it is about, in plain text, for the sentence that says what was left out: `pool default`, `risks`.
    pub title: String,
    pub markdown: String,
    /// The same in fewer words, each shorter than the one before; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shorter: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
