//! Which arguments of `run` count where. One that would count for nothing is refused: whoever gives it relies on what it says.

use anyhow::anyhow;

use super::source::SourcePlace;
use crate::cli::arguments::{CloudArgument, RunArguments, SourceArgument};
use crate::cli::exit::Failure;

/// What a run is made of, as far as arguments count for some runs only.
struct Situation {
    embedded: bool,
    definitions: Definitions,
    cloud: Option<CloudArgument>,
    has_forge: bool,
    holds_lease: bool,
}

/// Where definitions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definitions {
    Scenario,
    Folder,
    Repository,
    Cluster,
    Flux,
}

impl Situation {
    fn of(arguments: &RunArguments, place: Option<&SourcePlace>) -> Self {
        let controller = &arguments.controller;
        let definitions = match (place, controller.source) {
            (Some(SourcePlace::Scenario(_)), _) => Definitions::Scenario,
            (Some(SourcePlace::Folder(_)), _) => Definitions::Folder,
            (Some(SourcePlace::Repository(_)), _) => Definitions::Repository,
            (None, SourceArgument::Flux) => Definitions::Flux,
            (None, SourceArgument::Cluster | SourceArgument::Repository) => Definitions::Cluster,
        };
        let embedded = arguments.embedded;
        Self {
            embedded,
            definitions,
            cloud: controller.cloud.filter(|_| !embedded),
            has_forge: !embedded && arguments.forge.forge.is_some(),
            holds_lease: !embedded && controller.holds_lease(),
        }
    }

    fn is_polled(&self) -> bool {
        self.definitions == Definitions::Repository
    }
}

/// Arguments that count for the same runs.
struct Row {
    ids: &'static [&'static [&'static str]],
    counts: fn(&Situation) -> bool,
    /// What they are for: the rest of a sentence.
    are_for: &'static str,
    hint: &'static str,
}

impl Row {
    fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.ids.iter().flat_map(|ids| ids.iter().copied())
    }
}

/// Arguments about the reviews of pull requests.
const OF_REVIEWS: &[&str] = &[
    "url",
    "forge_repository",
    "token_file",
    "token_variable",
    "app_id",
    "app_key_file",
    "forge_name",
    "allow_plain_http",
    "max_wait",
    "comment",
    "no_checks",
    "without_simulation",
    "require_approval",
    "require_two_people",
    "allow_unknown_pushers",
    "approvers",
    "approvers_only",
    "approve_merged",
    "listen_hooks",
    "hook_secret_file",
];

/// An argument may stand in several rows, and counts where all of them say so. The first row that does not is said.
const ROWS: &[Row] = &[
    Row {
        // A folder is read without waiting, so `--interval` takes nothing from whoever gives it.
        ids: &[&["embedded", "interval", "seed", "verbose", "variables", "from_environment"]],
        counts: |_| true,
        are_for: "every run",
        hint: "",
    },
    Row {
        ids: &[&["catalog"]],
        counts: |run| run.cloud != Some(CloudArgument::Aws),
        are_for: "the cloud in memory and for observing without a cloud, and EC2 says itself what it sells",
        hint: "leave it out, or use `cutlist plan --catalog FILE` to plan with other prices",
    },
    Row {
        ids: &[
            &[
                "kubeconfig",
                "context",
                "cloud",
                "mode",
                "source",
                "source_ref",
                "approval",
                "allow_older_revision",
                "install_crds",
                "leader_elect",
                "no_leader_elect",
                "installation",
                "lease_namespace",
                "listen",
                "cluster_name",
                "interruption_queue",
                "cloud_state",
                "boot_seconds",
                "forge",
            ],
            OF_REVIEWS,
            &["notify_slack_file", "notify_webhook_file", "notify_template", "notify_on", "notify_allow_plain_http"],
        ],
        counts: |run| !run.embedded,
        are_for: "a real cluster, and --embedded is one in memory",
        hint: "leave --embedded out to run on the cluster of the kubeconfig",
    },
    Row {
        ids: &[&["real_time"]],
        counts: |run| run.embedded,
        are_for: "--embedded",
        hint: "leave it out: a real cluster has its own time",
    },
    Row {
        ids: &[&["repository"]],
        counts: |run| run.definitions != Definitions::Flux || run.has_forge,
        are_for: "--source repository and --source cluster",
        hint: "leave it out: --source-ref says whose artifact is followed",
    },
    Row {
        ids: &[&["watch"]],
        counts: |run| matches!(run.definitions, Definitions::Folder),
        are_for: "--source repository",
        hint: "leave out --watch, or --source",
    },
    Row {
        ids: &[&["source_ref"]],
        counts: |run| run.definitions == Definitions::Flux,
        are_for: "--source flux",
        hint: "add --source flux",
    },
    Row {
        ids: &[&["branch"]],
        counts: Situation::is_polled,
        are_for: "a Git repository that is polled",
        hint: "name the Git repository itself, by its URL or path, without --watch and --source; a scenario makes its own commits",
    },
    Row {
        ids: &[&["allow_older_revision"]],
        counts: Situation::is_polled,
        are_for: "a Git repository that is polled",
        hint: "leave it out, or name the Git repository by its URL or with --branch",
    },
    Row {
        ids: &[&["credentials_file"]],
        counts: |run| run.is_polled() || run.has_forge,
        are_for: "a Git repository that is polled",
        hint: "leave it out, or name the Git repository by its URL or with --branch",
    },
    Row {
        ids: &[&["allowed_signers", "openpgp_keys", "signing_policy"]],
        counts: Situation::is_polled,
        are_for: "signatures of commits, and only a Git repository that is polled has commits",
        hint: "name the Git repository itself, by its URL or with --branch; what Flux or Argo CD fetch, they can verify themselves",
    },
    Row {
        ids: &[&["sub_path"]],
        counts: |run| !matches!(run.definitions, Definitions::Scenario | Definitions::Cluster) || run.has_forge,
        are_for: "a folder, a repository, or an artifact of Flux",
        hint: "name the folder itself",
    },
    Row {
        ids: &[&["lease_namespace"]],
        counts: |run| run.holds_lease,
        are_for: "a process that has a lease",
        hint: "add --leader-elect",
    },
    Row {
        ids: &[&["cluster_name", "interruption_queue"]],
        counts: |run| run.cloud == Some(CloudArgument::Aws),
        are_for: "--cloud aws",
        hint: "add --cloud aws",
    },
    Row {
        ids: &[&["cloud_state", "boot_seconds"]],
        counts: |run| run.cloud == Some(CloudArgument::Embedded),
        are_for: "--cloud embedded",
        hint: "add --cloud embedded",
    },
    Row {
        ids: &[OF_REVIEWS],
        counts: |run| run.has_forge,
        are_for: "reviews of pull requests, and --forge does not say where these are",
        hint: "add --forge; `run` does not go by the variables of a CI job",
    },
];

/// Refuses what would count for nothing. `place` is what was named, unless definitions come from the cluster or from Flux.
pub fn check(arguments: &RunArguments, place: Option<&SourcePlace>) -> Result<(), Failure> {
    let situation = Situation::of(arguments, place);
    for row in ROWS.iter().filter(|row| !(row.counts)(&situation)) {
        let in_vain = arguments.typed.iter().filter(|typed| row.ids().any(|id| id == typed.id));
        let shown: Vec<&str> = in_vain.map(|typed| typed.shown.as_str()).collect();
        if shown.is_empty() {
            continue;
        }
        let verb = if shown.len() == 1 { "is" } else { "are" };
        let error = anyhow!("{} {verb} for {}", shown.join(", "), row.are_for);
        return Err(Failure::usage(error).with_hint(row.hint));
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::arguments::{Arguments, Command, parse};
    use crate::cli::exit::FailureKind;

    /// What `cutlist run` makes of these arguments.
    pub fn parsed(arguments: &[&str]) -> RunArguments {
        let typed = ["cutlist", "run"].iter().chain(arguments).map(OsString::from);
        match parse(Arguments::command(), typed).unwrap().command {
            Command::Run(arguments) => *arguments,
            _ => unreachable!("run was typed"),
        }
    }

    /// A new argument can not be forgotten.
    #[test]
    fn every_argument_has_a_row() {
        let command = Arguments::command();
        let run = command.find_subcommand("run").unwrap();
        let there: BTreeSet<&str> = run.get_arguments().map(|argument| argument.get_id().as_str()).collect();
        let in_rows: BTreeSet<&str> = ROWS.iter().flat_map(Row::ids).collect();
        assert_eq!(there, in_rows);
    }

    #[test]
    fn what_would_count_for_nothing_is_refused() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart");
        let url = "https://git.example.com/nodes.git";
        for (arguments, refused) in [
            (vec!["--embedded", folder, "--mode", "observe"], "--mode is for a real cluster"),
            (vec!["--embedded", folder, "--approval=manual", "--listen=[::1]:1"], "--approval, --listen are for"),
            (vec!["--embedded", folder, "--branch", "main"], "--branch is for"),
            (vec!["--embedded", folder, "--sub-path", "objects"], "--sub-path is for"),
            (vec!["--embedded", folder, "--allowed-signers", "keys"], "--allowed-signers is for signatures"),
            (vec!["--embedded", url, "--require-approval"], "--require-approval is for a real cluster"),
            (vec![url, "--require-approval", "--require-two-people"], "are for reviews of pull requests"),
            (vec![url, "--mode=observe", "--interruption-queue=q"], "--interruption-queue is for --cloud aws"),
            (vec![url, "--mode=observe", "--cloud-state=file"], "--cloud-state is for --cloud embedded"),
            (vec![url, "--mode=observe", "--lease-namespace=a"], "--lease-namespace is for"),
            (vec![url, "--real-time"], "--real-time is for --embedded"),
            (vec![url, "--cloud=aws", "--catalog=file"], "--catalog is for the cloud in memory"),
            (vec![url, "--source-ref=Bucket/a.b"], "--source-ref is for --source flux"),
            (vec![folder, "--credentials-file=token"], "--credentials-file is for"),
            (vec![folder, "--allow-older-revision"], "--allow-older-revision is for"),
            (vec!["--watch", folder, "--branch=main"], "--branch is for"),
            (vec!["--watch", folder, "--source=cluster"], "--watch is for --source repository"),
            (vec![folder, "--source=cluster", "--sub-path=a"], "--sub-path is for"),
            (vec![url, "--source=flux", "--source-ref=Bucket/a.b"], "REPOSITORY is for"),
        ] {
            let failure = checked(&arguments).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Usage);
            assert!(failure.error.to_string().contains(refused), "{arguments:?}: {}", failure.error);
            assert!(failure.hint.is_some());
        }
    }

    #[test]
    fn what_counts_is_taken() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/quickstart");
        let url = "https://git.example.com/nodes.git";
        for arguments in [
            vec!["--embedded", folder, "--seed=1", "--real-time", "--variable=A=B", "--catalog=file"],
            vec![
                "--embedded",
                url,
                "--branch=main",
                "--sub-path=a",
                "--credentials-file=token",
                "--allowed-signers=keys",
            ],
            vec!["--watch", folder, "--sub-path=a", "--interval=1s", "--mode=observe"],
            vec![folder, "--cloud=embedded", "--boot-seconds=1", "--no-leader-elect", "--lease-namespace=a"],
            vec![url, "--cloud=aws", "--cluster-name=demo", "--interruption-queue=demo", "--allow-older-revision"],
            vec![url, "--forge=github", "--repository=a/b", "--require-approval", "--require-two-people"],
            vec!["--source=flux", "--source-ref=Bucket/a.b", "--sub-path=a", "--mode=observe", "--leader-elect"],
            vec![folder, "--source=cluster", "--approval=manual"],
        ] {
            checked(&arguments).unwrap();
        }
    }

    fn checked(arguments: &[&str]) -> Result<(), Failure> {
        let arguments = parsed(arguments);
        let place = match arguments.controller.source {
            SourceArgument::Repository => Some(super::super::source::place(&arguments)?),
            SourceArgument::Cluster | SourceArgument::Flux => None,
        };
        check(&arguments, place.as_ref())
    }
}
