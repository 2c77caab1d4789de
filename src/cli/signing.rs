//! Signatures of commits, held against the operator's files: for the controller, and for previews of what is not merged yet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use jiff::Timestamp;

use super::arguments::{DefinitionArguments, SigningArguments};
use super::exit::Failure;
use super::settings;
use crate::adapters::git::{Between, SignedCommit, SignedHistory, TreeName};
use crate::adapters::signatures::{Keys, read_text};
use crate::api::signing_policy::SigningPolicyDocument;
use crate::api::source::SourceFile;
use crate::controller::signing::{Item, JudgedCommit, Policy, Question, Side, Signer, changed, judge};
use crate::ports::Unsigned;

/// Commits that a preview names; the rest is counted.
pub const NAMED_MAX: usize = 20;

/// What came before the revision that is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// The revision in force.
    Commit(String),
    /// There is one, and the clone does not have it: history was rewritten.
    Lost,
    /// No revision was ever used.
    None,
}

/// The operator's files, and how definitions are read.
#[derive(Clone, Debug)]
pub struct Signing {
    arguments: SigningArguments,
    definitions: DefinitionArguments,
}

/// Files that were the same when something was judged need not be asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(Vec<Option<(u64, SystemTime)>>);

impl Signing {
    /// `None`: no signatures are asked for. What can not be right is an error now, and not only when a revision comes.
    pub fn of(arguments: &SigningArguments, definitions: &DefinitionArguments) -> Result<Option<Self>, Failure> {
        if !arguments.are_given() {
            return Ok(None);
        }
        if arguments.allowed_signers.is_none() && arguments.openpgp_keys.is_none() {
            return Err(Failure::usage(anyhow!("--signing-policy says who must sign, and nobody may"))
                .with_hint("add --allowed-signers FILE or --openpgp-keys FILE"));
        }
        let signing = Self { arguments: arguments.clone(), definitions: definitions.clone() };
        signing.rules().map_err(|error| {
            Failure::usage(error).with_hint(
                "deploy/README.md, section \"Signed commits\", shows each of the files; who may sign comes from the operator alone",
            )
        })?;
        Ok(Some(signing))
    }

    fn rules(&self) -> anyhow::Result<(Keys, Policy)> {
        let SigningArguments { allowed_signers, openpgp_keys, signing_policy } = &self.arguments;
        let keys = Keys::read(allowed_signers.as_deref(), openpgp_keys.as_deref())?;
        let policy = signing_policy.as_deref().map(policy).transpose()?.unwrap_or_default();
        Ok((keys, policy))
    }

    pub fn stamp(&self) -> Stamp {
        let SigningArguments { allowed_signers, openpgp_keys, signing_policy } = &self.arguments;
        let stamp = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        };
        Stamp([allowed_signers, openpgp_keys, signing_policy].into_iter().flatten().map(stamp).collect())
    }

    /// Which commits of `head` that `base` does not have somebody else should have signed. `folder`: where the definitions are, below what
    /// the history was opened for. Blocks.
    pub fn unsigned(
        &self,
        history: &SignedHistory,
        folder: &str,
        branch: &str,
        base: &Base,
        head: &str,
    ) -> anyhow::Result<Vec<Unsigned>> {
        let (keys, policy) = self.rules()?;
        let now = Timestamp::now();
        let of_base = match base {
            Base::Commit(base) => Some(base.as_str()),
            Base::Lost | Base::None => None,
        };
        let between = history.between(of_base, head)?;
        if between.too_many {
            anyhow::bail!(
                "more commits than are looked at came since the revision in force: start without --signing-policy once"
            );
        }
        let asks = policy.asks_for_definitions(branch);
        let definitions = Definitions { history, folder, arguments: &self.definitions };
        let mut commits = Vec::new();
        for commit in &between.commits {
            let mut items: BTreeSet<Item> = commit.paths.iter().cloned().map(Item::Path).collect();
            if asks && !items.is_empty() {
                items.extend(definitions.changed(commit.before, commit.after)?);
            }
            let (id, title) = (commit.id.clone(), commit.title.clone());
            commits.push(JudgedCommit { id, title, signer: signer(&keys, commit, now), items });
        }
        let differs = match base {
            // Nothing is there that could be protected. Who may sign at all may begin.
            Base::None => BTreeSet::new(),
            Base::Lost | Base::Commit(_) => differs(&between, asks, &definitions)?,
        };
        Ok(judge(Question { policy: &policy, branch, commits: &commits, differs: &differs }))
    }
}

fn differs(between: &Between, asks: bool, definitions: &Definitions<'_>) -> anyhow::Result<BTreeSet<Item>> {
    let mut differs: BTreeSet<Item> = between.paths.iter().cloned().map(Item::Path).collect();
    if asks && !differs.is_empty() {
        differs.extend(definitions.changed(between.before, between.after)?);
    }
    Ok(differs)
}

fn signer(keys: &Keys, commit: &SignedCommit, now: Timestamp) -> Signer {
    let Some((payload, signature)) = &commit.signed else { return Signer::Nobody };
    let moments: Vec<Timestamp> = commit.committed_at.into_iter().chain([now]).collect();
    match keys.verify(payload, signature, &moments) {
        Ok(by) => Signer::Known { shown: by.to_string(), names: by.names },
        Err(error) => Signer::Refused(error.to_string()),
    }
}

/// Reads definitions of trees.
struct Definitions<'d> {
    history: &'d SignedHistory,
    folder: &'d str,
    arguments: &'d DefinitionArguments,
}

impl Definitions<'_> {
    fn changed(&self, before: Option<TreeName>, after: TreeName) -> anyhow::Result<BTreeSet<Item>> {
        let files = |tree: Option<TreeName>| -> anyhow::Result<Vec<SourceFile>> {
            Ok(tree.map(|tree| self.history.files(tree, self.folder)).transpose()?.unwrap_or_default())
        };
        let (before, after) = (files(before)?, files(Some(after))?);
        if before == after {
            return Ok(BTreeSet::new());
        }
        let read = |files: &[SourceFile]| settings::read_definitions(files, self.arguments);
        let (defined_before, defined_after) = (read(&before), read(&after));
        Ok(changed(
            Side { definitions: &defined_before, files: &before },
            Side { definitions: &defined_after, files: &after },
        ))
    }
}

fn policy(path: &Path) -> anyhow::Result<Policy> {
    let name = || path.display().to_string();
    let text = read_text(path)?;
    let document: SigningPolicyDocument =
        serde_path_to_error::deserialize(serde_yaml::Deserializer::from_str(&text))
            .with_context(|| format!("{} is no signing policy (schemas/signing-policy.json)", name()))?;
    Policy::of(&document).with_context(|| format!("{} is no signing policy that can be meant", name()))
}
