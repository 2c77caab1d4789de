//! `cutlist facts pull`: asks EC2, and writes what it says.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use jiff::Timestamp;

use crate::adapters::aws::calls::{Calls, Connection as Place};
use crate::adapters::aws::cloud::{AwsCloud, Settings};
use crate::adapters::aws::resolution::cluster::Identity;
use crate::adapters::system_clock::SystemClock;
use crate::api::cloud_facts::CloudFacts;
use crate::cli::arguments::{FactsPullArguments, InputArguments, PlanningArguments};
use crate::cli::exit::{Failure, Outcome};
use crate::cli::inputs;
use crate::cli::output;
use crate::cli::replacing;
use crate::controller::facts::pull;
use crate::core::catalog::regions::SaidBy;
use crate::render::plan::count;

pub fn run(arguments: &FactsPullArguments) -> Result<Outcome, Failure> {
    let planning = PlanningArguments { definitions: arguments.definitions.clone(), ..PlanningArguments::default() };
    let of_definitions = InputArguments {
        path: arguments.path.clone(),
        revision: None,
        snapshot: Vec::new(),
        cluster: Default::default(),
        planning,
    };
    let read = inputs::read_revision(&of_definitions, None)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let facts = runtime.block_on(ask(arguments, &read))?;
    let text = serde_json::to_string_pretty(&facts).context("write the facts as JSON");
    let text = text.map_err(Failure::failed)? + "\n";
    replacing::write(&arguments.write, &text).map_err(Failure::failed)?;
    output::say(&format!(
        "{}: {} of {}, {} not known",
        arguments.write.display(),
        count(facts.node_classes.len(), "EC2NodeClass"),
        facts.region,
        facts.not_known.len()
    ));
    Ok(Outcome::Clean)
}

async fn ask(arguments: &FactsPullArguments, read: &inputs::ReadRevision) -> Result<CloudFacts, Failure> {
    let region = read.definitions.region();
    let is_known = region.said_by != SaidBy::Nobody;
    let place = Place { region: is_known.then(|| region.name.clone()), ..Place::default() };
    let calls = Arc::new(Calls::connect(&place).await);
    let identity = Identity {
        cluster: arguments.cluster_name.clone(),
        region: calls.region().to_owned(),
        installation: "facts".to_owned(),
        kubernetes_version: None,
    };
    let region = identity.region.clone();
    // Who pulls is not who launches.
    let settings = Settings { identity, queue: None, may_write: false, tries_launches: false };
    let cloud = AwsCloud::new(calls, SystemClock, settings);
    let opening = cloud.open().await.map_err(|error| {
        let text = error.text();
        Failure::failed(error).with_hint(format!("{text}; see that region and credentials are right"))
    })?;
    let classes: Vec<_> = read.definitions.node_classes.iter().map(|class| class.value.clone()).collect();
    if classes.is_empty() {
        let error = anyhow!("{} defines no EC2NodeClass", arguments.path.display());
        return Err(Failure::failed(error));
    }
    let facts = Box::pin(pull(&cloud, &classes, &region, Timestamp::now())).await;
    let mut facts = facts.map_err(Failure::failed)?;
    facts.not_known.extend(opening.not_there);
    facts.not_known.sort();
    facts.not_known.dedup();
    Ok(facts)
}
