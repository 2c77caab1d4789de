//! `cutlist run` with a forge: pull requests are reviewed on the cluster as it is, while this process leads.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::anyhow;

use crate::cli::arguments::{PlanningArguments, PreviewArguments, RunArguments};
use crate::cli::exit::Failure;
use crate::cli::post::resolve;
use crate::cli::review::{Remote, look_on, receiver, rounds};

/// Goes on until it is dropped; waits for ever where no forge is named. Only what can not be right is an error: a forge that is away
/// is asked again, and hinders nothing else.
pub async fn beside(arguments: &RunArguments) -> Result<Infallible, Failure> {
    if arguments.forge.forge.is_none() {
        return std::future::pending().await;
    }
    let Some(url) = arguments.repository.clone() else {
        return Err(Failure::usage(anyhow!("pull requests are reviewed of a repository, and none is named"))
            .with_hint("name the address of the repository instead of --watch"));
    };
    let Some(seconds) = arguments.interval.seconds() else {
        return Err(Failure::failed(anyhow!("--interval must be a duration, not Never")));
    };
    let remote = Remote {
        url,
        sub_path: arguments.sub_path.clone().unwrap_or_default(),
        credentials_file: arguments.credentials_file.clone(),
    };
    let resolved = resolve(&arguments.forge, None)?;
    let (name, manner) = (&arguments.forge.forge_name, &arguments.reviews);
    let planning = PlanningArguments {
        seed: arguments.seed,
        definitions: arguments.definitions.clone(),
        ..PlanningArguments::default()
    };
    let preview =
        PreviewArguments::of_pull_requests(arguments.controller.cluster.clone(), planning, manner, &arguments.signing);
    let mut rounds = rounds(remote, preview, &resolved, name, manner)?;
    let hooks = receiver(&resolved, manner).await?;
    look_on(&mut rounds, Duration::from_secs(seconds), hooks).await;
    std::future::pending().await
}
