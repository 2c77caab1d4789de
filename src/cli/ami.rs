//! `cutlist ami`: the images of EC2NodeClasses in `cutlist.lock`.

#![expect(clippy::disallowed_methods, reason = "this command writes a file of the repository")]

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow};

use super::arguments::{AmiAction, AmiArguments, AmiLockArguments};
use super::exit::{Failure, Outcome};
use super::inputs::{self, ReadInputs};
use super::output;
use super::replacing;
use crate::adapters::git::Committer;
use crate::api::image_lock::{FILE_NAME, ImageLock, ImageLockDocument};
use crate::core::offer::image_lock;
use crate::core::plan::{CloudFact, CloudFactCode};
use crate::core::planner::decide;
use crate::definitions::Definition;
use crate::render::plan::count;

/// The first lines of the file.
const HEADER: &str = "\
# The images of EC2NodeClasses, written by `cutlist ami lock`. Plans go by them: a line that changes replaces the nodes
# that run another image. Of a class, a node gets the first image whose requirements accept its instance type.
";

pub fn run(arguments: &AmiArguments) -> Result<Outcome, Failure> {
    match &arguments.action {
        AmiAction::Lock(arguments) => lock(arguments),
        AmiAction::Bump(arguments) => bump(arguments),
    }
}

fn lock(arguments: &AmiLockArguments) -> Result<Outcome, Failure> {
    let renewed = Renewed::of(arguments)?;
    renewed.show()?;
    if renewed.is_news() && !arguments.dry_run {
        replacing::write(&arguments.path.join(FILE_NAME), &renewed.text).map_err(Failure::failed)?;
        output::say(&format!("written: {}", arguments.path.join(FILE_NAME).display()));
    }
    Ok(Outcome::Clean)
}

fn bump(arguments: &AmiLockArguments) -> Result<Outcome, Failure> {
    let committer = Committer::new(&arguments.path, FILE_NAME).map_err(failure)?;
    let renewed = Renewed::of(arguments)?;
    renewed.show()?;
    if renewed.is_news() && !arguments.dry_run {
        let id = committer.commit(renewed.text.as_bytes(), &renewed.message()).map_err(failure)?;
        output::say(&format!("committed: {} {}", id.get(..7).unwrap_or(&id), renewed.title()));
    }
    Ok(Outcome::Clean)
}

fn failure(error: crate::adapters::git::CommitError) -> Failure {
    let hint = error.hint();
    Failure { hint, ..Failure::failed(error) }
}

/// The lock as it should be, and what that means for nodes.
struct Renewed {
    lock: ImageLock,
    text: String,
    before: Option<ImageLock>,
    /// What the plan says of images by this lock.
    facts: Vec<CloudFact>,
}

impl Renewed {
    fn of(arguments: &AmiLockArguments) -> Result<Self, Failure> {
        if arguments.snapshot.is_empty() && !arguments.cluster.are_given() && arguments.facts.is_none() {
            let error = anyhow!("nobody says which images there are");
            return Err(Failure::usage(error).with_hint(
                "name a cluster: its EC2NodeClasses say it in their status (--snapshot FILE, or --context NAME); or ask EC2 with `cutlist facts pull`, and give --facts FILE",
            ));
        }
        if !arguments.path.is_dir() {
            let error = anyhow!("{} is no folder", arguments.path.display());
            return Err(Failure::usage(error).with_hint("name the folder with cutlist.yaml"));
        }
        let inputs_of = arguments.inputs();
        let (head, file) = inputs::read_without(&inputs_of, FILE_NAME)?;
        // One that can not be read is written anew.
        let document: Option<ImageLockDocument> = file.as_deref().and_then(|it| serde_yaml::from_slice(it).ok());
        let before = document.map(|document| document.spec);
        let mut read: ReadInputs = inputs::read_cluster(&inputs_of, head)?;
        let locked = inputs::with_inputs(&inputs_of, &read, |inputs| {
            image_lock::lock(inputs, before.as_ref(), &arguments.classes)
        });
        let lock = locked.map_err(|errors| {
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Failure::failed(anyhow!("nothing is locked: {}", texts.join("; "))).with_hint(
                "a snapshot that is taken once the classes are applied and ready says it; --class NAME renews one alone",
            )
        })?;
        let text = text_of(&lock).map_err(Failure::failed)?;
        read.head.definitions.image_lock = Some(Definition {
            value: lock.clone(),
            file: FILE_NAME.to_owned(),
            line: 1,
            places: BTreeMap::new(),
            variables: BTreeMap::new(),
            hash_as_written: None,
            hidden_variables: BTreeSet::new(),
        });
        let facts = inputs::with_inputs(&inputs_of, &read, |inputs| decide(inputs).cloud_facts);
        Ok(Self { lock, text, before, facts })
    }

    fn is_news(&self) -> bool {
        self.before.as_ref() != Some(&self.lock)
    }

    fn replaced(&self) -> impl Iterator<Item = &CloudFact> {
        self.facts.iter().filter(|fact| fact.code == CloudFactCode::ImageReplacesNodes)
    }

    /// How many nodes run another image than the lock has.
    fn nodes(&self) -> usize {
        self.replaced().flat_map(|fact| fact.replaces.values()).sum()
    }

    fn title(&self) -> String {
        match self.nodes() {
            0 => "Lock images, which replaces no node".to_owned(),
            nodes => format!("Lock images, which replaces {}", count(nodes, "node")),
        }
    }

    fn lines(&self) -> Vec<String> {
        self.replaced().map(|fact| format!("{} {}: {}", fact.node_class, fact.subject, fact.text)).collect()
    }

    fn message(&self) -> String {
        let lines: Vec<String> = self.lines().iter().map(|line| format!("- {line}\n")).collect();
        let title = self.title();
        if lines.is_empty() { title } else { format!("{title}\n\n{}", lines.concat()) }
    }

    fn show(&self) -> Result<(), Failure> {
        let images = self.lock.node_classes.iter().map(|class| class.images.len()).sum();
        let what = format!("{} of {}", count(images, "image"), count(self.lock.node_classes.len(), "EC2NodeClass"));
        let news = if self.is_news() { "" } else { ", as they are locked already" };
        output::text(&format!("{what}{news}\n"))?;
        for line in self.lines() {
            output::text(&format!("  ~ {line}\n"))?;
        }
        Ok(())
    }
}

fn text_of(lock: &ImageLock) -> anyhow::Result<String> {
    let document = ImageLockDocument {
        api_version: "cutlist.dev/v1alpha1".to_owned(),
        kind: "ImageLock".to_owned(),
        spec: lock.clone(),
    };
    Ok(format!("{HEADER}{}", serde_yaml::to_string(&document).context("write the lock as YAML")?))
}
