//! What `run` was given: a folder with a scenario, a folder to watch, or a repository to poll.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;

use crate::adapters::flux::FluxRepository;
use crate::adapters::git::{
    Beside, Earlier, FetchLimits, Followed, GitRepository, RemoteSettings, WatchedFolder, folder_below, has_no_commit,
    redacted,
};
use crate::api::scenario;
use crate::cli::arguments::RunArguments;
use crate::cli::exit::Failure;
use crate::cli::signing::Signing;
use crate::cli::{output, settings};
use crate::controller::of_another_cluster;
use crate::core::catalog::regions::{self, Region};
use crate::definitions::Definitions;
use crate::ports::{PollsOnAnyThread, PortError, PortErrorKind, Repository, RevisionContent, chain};

use super::clouds;
use super::guard::{Guard, TakenUp};

/// What was named.
pub enum SourcePlace {
    /// A folder with a scenario, which only the embedded cluster plays.
    Scenario(PathBuf),
    /// A folder or clone whose files are watched.
    Folder(PathBuf),
    /// A repository that is polled: an address, a bare repository, or a clone with a branch.
    Repository(String),
}

pub enum Follow {
    Watched(Box<WatchedFolder>),
    /// With who may sign, where that is asked.
    Remote(Box<GitRepository>, Option<Box<Guard>>),
    Flux(Box<FluxRepository>),
}

/// Finds out what was meant; a path that is not there is an error now.
pub fn place(arguments: &RunArguments) -> Result<SourcePlace, Failure> {
    if let Some(folder) = &arguments.watch {
        return Ok(SourcePlace::Folder(folder.clone()));
    }
    let Some(text) = &arguments.repository else {
        return Err(Failure::usage(anyhow!("nothing to run")).with_hint(
            "name a folder, a repository URL, or --watch DIR: `cutlist run --embedded examples/quickstart`",
        ));
    };
    let path = Path::new(text);
    if path.is_dir() {
        if arguments.embedded && path.join(scenario::FILE_NAME).is_file() {
            return Ok(SourcePlace::Scenario(path.to_owned()));
        }
        let is_bare = path.join("HEAD").is_file() && path.join("objects").is_dir();
        let is_polled = is_bare || arguments.branch.is_some();
        return Ok(if is_polled {
            SourcePlace::Repository(text.clone())
        } else {
            SourcePlace::Folder(path.to_owned())
        });
    }
    if !is_address(text) {
        let error = anyhow!("{} is not there, or is no folder", redacted(text));
        return Err(Failure::usage(error).with_hint(
            "name a folder with definitions, a clone, a bare repository, or a URL such as https://host/repository.git",
        ));
    }
    Ok(SourcePlace::Repository(text.clone()))
}

pub fn is_address(text: &str) -> bool {
    text.contains("://") || (text.contains('@') && text.contains(':'))
}

/// Begins to follow a place. `earlier`: the commit that was used last, by another process.
pub fn follow(place: SourcePlace, arguments: &RunArguments, earlier: Option<Earlier>) -> Result<Follow, Failure> {
    match place {
        SourcePlace::Scenario(folder) | SourcePlace::Folder(folder) => watched(&folder, arguments),
        SourcePlace::Repository(url) => remote(&url, arguments, earlier),
    }
}

fn watched(folder: &Path, arguments: &RunArguments) -> Result<Follow, Failure> {
    let folder = match &arguments.sub_path {
        Some(below) => folder_below(folder, below).map_err(Failure::usage)?,
        None => folder.to_owned(),
    };
    let watched = WatchedFolder::open(&folder).map_err(Failure::of_repository)?;
    Ok(Follow::Watched(Box::new(watched)))
}

fn remote(url: &str, arguments: &RunArguments, earlier: Option<Earlier>) -> Result<Follow, Failure> {
    let Some(seconds) = arguments.interval.seconds() else {
        return Err(Failure::usage(anyhow!("--interval must be a duration, not Never")));
    };
    let signing = Signing::of(&arguments.signing, &arguments.definitions)?;
    let used_last = earlier.as_ref().map(|earlier| earlier.id.clone());
    let settings = RemoteSettings {
        url: url.to_owned(),
        reference: arguments.branch.clone(),
        sub_path: arguments.sub_path.clone().unwrap_or_default(),
        interval: Duration::from_secs(seconds),
        credentials_file: arguments.credentials_file.clone(),
        clone_folder: None,
        program: std::env::current_exe().map_err(Failure::failed)?,
        limits: FetchLimits::default(),
        earlier,
        with_history: signing.is_some(),
    };
    let repository = GitRepository::open(&settings).map_err(Failure::failed)?;
    let guard = signing.map(|signing| Box::new(Guard::new(signing, &repository, &settings.sub_path, used_last)));
    Ok(Follow::Remote(Box::new(repository), guard))
}

/// Reads the first revision. What somebody else has to do first, or a server that is away, is said and waited for; what is wrong with
/// what was typed is an error. `waits` is told what is waited for, and when it came.
pub async fn first_look(
    follow: Follow,
    arguments: &RunArguments,
    waits: &dyn Fn(Option<String>),
) -> Result<(Followed<Guard>, Region), Failure> {
    let mut guard = None;
    let (content, later) = match follow {
        Follow::Watched(mut folder) => (folder.poll().await.map_err(unreadable)?, Beside::start(*folder)),
        Follow::Remote(mut repository, of_remote) => {
            guard = of_remote;
            // At a terminal whoever typed the address sees at once that it does not answer.
            let comes = |error: &PortError| {
                has_no_commit(error) || (!arguments.embedded && error.kind == PortErrorKind::Temporary)
            };
            let hint = |error: &PortError| match has_no_commit(error) {
                true => "push a first commit with definitions: it is used as soon as it is there",
                false => "nothing is done until it can be read",
            };
            let first = awaited(&mut *repository, comes, hint, waits).await.map_err(unreadable)?;
            (first, Beside::start(*repository))
        }
        Follow::Flux(mut repository) => {
            let comes = |error: &PortError| matches!(error.kind, PortErrorKind::Temporary | PortErrorKind::NotFound);
            let first = awaited(&mut *repository, comes, hint_of_flux, waits).await.map_err(|error| {
                let hint = hint_of_flux(&error);
                Failure::failed(error).with_hint(hint)
            })?;
            (first, Beside::start(*repository))
        }
    };
    let taken = match (content, &mut guard) {
        (Some(content), Some(guard)) => guard.first(content).await?,
        (content, _) => TakenUp { revisions: content.into_iter().collect(), is_signed: true },
    };
    let region = region(&taken, arguments);
    Ok((Followed::new(taken.revisions, later, guard.map(|guard| *guard)), region))
}

/// The region that the revision says which comes into force first. One that will be held, or is refused, says nothing, but of a world
/// in memory, which is made for it.
fn region(taken: &TakenUp, arguments: &RunArguments) -> Region {
    let (controller, is_made_for_it) = (&arguments.controller, arguments.embedded);
    let may_be_used = |content: &&RevisionContent| {
        is_made_for_it || (taken.is_signed && (controller.allow_older_revision || !content.is_older))
    };
    let first = taken.revisions.first().filter(may_be_used);
    let definitions = first.map(|content| settings::read_definitions(&content.files, &arguments.definitions));
    let name = clouds::cluster_name(controller);
    let is_used = |definitions: &Definitions| {
        let is_of_another = || of_another_cluster(&definitions.settings, name.as_deref()).is_some();
        is_made_for_it || (definitions.revision_usable() && !is_of_another())
    };
    let definitions = definitions.filter(is_used);
    definitions.map_or_else(|| regions::find(None, [], []), |definitions| definitions.region())
}

/// The first answer that is no error, or one that does not go by itself. What is waited for is said once, with a hint.
async fn awaited(
    repository: &mut impl PollsOnAnyThread,
    comes: impl Fn(&PortError) -> bool,
    hint: impl Fn(&PortError) -> &'static str,
    waits: &dyn Fn(Option<String>),
) -> Result<Option<RevisionContent>, PortError> {
    let mut said = None;
    loop {
        match repository.look().await {
            Err(error) if comes(&error) => {
                let why = output::shown(&chain(&error));
                if said.as_ref() != Some(&why) {
                    output::say(&format!("waits for definitions: {why}\nhint: {}", hint(&error)));
                    waits(Some(why.clone()));
                    said = Some(why);
                }
                repository.wait().await;
            }
            outcome => {
                if said.is_some() && outcome.is_ok() {
                    output::say("the definitions came");
                    waits(None);
                }
                return outcome;
            }
        }
    }
}

fn unreadable(error: PortError) -> Failure {
    let hint = match error.kind {
        PortErrorKind::Temporary | PortErrorKind::Internal => "check the address and the network, then start again",
        PortErrorKind::NotFound => "check the address, --branch and --sub-path",
        PortErrorKind::Denied | PortErrorKind::Refused => "check --credentials-file",
        PortErrorKind::Conflict | PortErrorKind::InsufficientCapacity | PortErrorKind::Permanent => {
            "check the address: it must be a Git repository, or a folder with definitions"
        }
    };
    Failure::failed(error).with_hint(hint)
}

/// What somebody can do about a source of Flux that can not be read.
fn hint_of_flux(error: &PortError) -> &'static str {
    match error.kind {
        PortErrorKind::NotFound => "check --source-ref and --sub-path, and what `flux get sources all -A` says",
        PortErrorKind::Denied => "give it `get`, `list` and `watch` on the source: deploy/README.md, section Flux",
        _ => {
            "does a NetworkPolicy of Flux's namespace let Cutlist reach source-controller? deploy/README.md, section Flux"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::settings::FILE_NAME;
    use crate::api::source::SourceFile;
    use crate::cli::exit::FailureKind;
    use crate::cli::run::usage::tests::parsed;
    use crate::core::catalog::regions::SaidBy;
    use crate::core::plan::Revision;

    /// Fails for these reasons, the last first, and then has a revision.
    struct Late {
        failures: Vec<PortErrorKind>,
        waited: usize,
    }

    impl PollsOnAnyThread for Late {
        async fn look(&mut self) -> Result<Option<RevisionContent>, PortError> {
            if let Some(kind) = self.failures.pop() {
                return Err(PortError { operation: "read it".to_owned(), kind, source: None });
            }
            let revision = Revision { id: "abc".to_owned(), reference: "main".to_owned() };
            Ok(Some(RevisionContent::without_history(revision, "", Vec::new(), Vec::new())))
        }

        async fn wait(&mut self) {
            self.waited += 1;
        }
    }

    #[test]
    fn what_comes_by_itself_is_waited_for() {
        use PortErrorKind::{Denied, Temporary};
        let first = |failures: &[PortErrorKind]| {
            let told = std::cell::RefCell::new(Vec::new());
            let mut late = Late { failures: failures.to_vec(), waited: 0 };
            let comes = |error: &PortError| error.kind == Temporary;
            let waits = |why: Option<String>| told.borrow_mut().push(why.is_some());
            let ended =
                crate::cli::process::runtime(false).unwrap().block_on(awaited(&mut late, comes, |_| "wait", &waits));
            (ended.map(|content| content.is_some()).map_err(|error| error.kind), late.waited, told.into_inner())
        };
        assert_eq!(first(&[]), (Ok(true), 0, vec![]));
        // Said once, whatever it takes.
        assert_eq!(first(&[Temporary; 3]), (Ok(true), 3, vec![true, false]));
        assert_eq!(first(&[Denied, Temporary]), (Err(Denied), 1, vec![true]));
    }

    /// Another region would be another place to launch in, and it is chosen once.
    #[test]
    fn a_revision_that_is_not_used_says_nothing_of_the_region() {
        let settings = |rest: &str| {
            let head = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nmetadata:\n  name: blue\nspec:\n";
            format!("{head}  region: eu-west-1\n{rest}")
        };
        let region_of = |text: String, further: &[&str], is_signed: bool, is_older: bool| {
            let files = vec![SourceFile::new(FILE_NAME, text)];
            let revision = Revision { id: "abc".to_owned(), reference: "main".to_owned() };
            let content = RevisionContent::without_history(revision, "", files, Vec::new());
            let taken = TakenUp { revisions: vec![RevisionContent { is_older, ..content }], is_signed };
            let region = region(&taken, &parsed(&[&["https://git.example.com/a"], further].concat()));
            (region.said_by == SaidBy::Settings).then_some(region.name)
        };
        let said = Some("eu-west-1".to_owned());
        assert_eq!(region_of(settings(""), &[], true, false), said);
        assert_eq!(region_of(settings(""), &[], false, false), None, "unsigned");
        assert_eq!(region_of(settings(""), &[], true, true), None, "older");
        assert_eq!(region_of(settings(""), &["--allow-older-revision"], true, true), said);
        assert_eq!(region_of(settings("  noSuchField: 1\n"), &[], true, false), None, "with errors");
        let aws = ["--cloud", "aws", "--cluster-name", "blue"];
        assert_eq!(region_of(settings("  clusterName: green\n"), &aws, true, false), None, "of another cluster");
        assert_eq!(region_of(settings("  clusterName: blue\n"), &aws, true, false), said);
    }

    /// Definitions of other clusters beside it are not read.
    #[test]
    fn of_a_folder_only_the_sub_path_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["blue", "green"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("pool.yaml"), format!("name: {name}\n")).unwrap();
        }
        let path = folder.path().to_str().unwrap();
        let read = |further: &[&str]| {
            let arguments = parsed(&[&["--embedded"], further].concat());
            let Follow::Watched(mut watched) = follow(place(&arguments)?, &arguments, None)? else { unreachable!() };
            let content = crate::cli::process::runtime(false)?.block_on(watched.poll()).map_err(unreadable)?;
            Ok::<_, Failure>(content.unwrap().files)
        };
        for named in [[path, "--sub-path", "/blue/"], ["--watch", path, "--sub-path=blue"]] {
            let files = read(&named).unwrap();
            let texts: Vec<&[u8]> = files.iter().map(|file| file.content.as_slice()).collect();
            assert_eq!(texts, [b"name: blue\n"]);
        }
        assert_eq!(read(&[path]).unwrap().len(), 2);
        for no_folder_of_it in ["../up", "red"] {
            assert_eq!(read(&[path, "--sub-path", no_folder_of_it]).unwrap_err().kind, FailureKind::Usage);
        }
    }
}
