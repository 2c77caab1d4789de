//! `GitRepository`: the same story over every transport, then what can go wrong.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::{Beside, Earlier, FetchLimits, GitRepository, OpenError, RemoteSettings, has_no_commit};
use cutlist::core::plan::NoteCode;
use cutlist::ports::{PortError, PortErrorKind, Repository, RevisionContent};

use crate::fixture::{Fixture, files, git, notes};
use crate::servers::{GitDaemon, HttpServer, Redirecting, Relay, free_port};

/// `printf 'me:secret' | base64`
const AUTHORIZATION: &str = "Basic bWU6c2VjcmV0";

fn settings(url: &str) -> RemoteSettings {
    RemoteSettings {
        url: url.to_owned(),
        reference: None,
        sub_path: String::new(),
        interval: Duration::from_secs(30),
        credentials_file: None,
        clone_folder: None,
        program: env!("CARGO_BIN_EXE_cutlist").into(),
        limits: FetchLimits::default(),
        earlier: None,
        with_history: false,
    }
}

/// Limits that a test can wait for.
const SHORT: FetchLimits = FetchLimits { silence: Duration::from_secs(1), whole: Duration::from_secs(20) };

fn open(url: &str) -> GitRepository {
    GitRepository::open(&settings(url)).unwrap()
}

async fn new_head(repository: &mut GitRepository) -> RevisionContent {
    repository.poll().await.unwrap().expect("a new head")
}

/// The error with its causes.
fn text(error: &PortError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn follows_a_path() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    follow(&fixture, bare.to_str().unwrap()).await;
}

#[tokio::test]
async fn follows_a_file_url() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    follow(&fixture, &format!("file://{}", bare.display())).await;
}

#[tokio::test]
async fn follows_over_http() {
    let fixture = Fixture::new();
    fixture.commit("Zero", &[("a.yaml", "0")]);
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    let server = HttpServer::start(&fixture.beside(""));
    new_head(&mut open(&server.url("bare.git"))).await;
    let shallow_requests = server.shallow_requests();
    assert!(shallow_requests > 0, "the first fetch takes one commit only");
    follow(&fixture, &server.url("bare.git")).await;
    assert_eq!(server.shallow_requests(), 2 * shallow_requests, "later ones take all that is new");
}

#[tokio::test]
async fn follows_over_the_git_protocol() {
    let fixture = Fixture::new();
    fixture.commit("Zero", &[("a.yaml", "0")]);
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    let daemon = GitDaemon::start(&fixture.beside(""));
    follow(&fixture, &daemon.url("bare.git")).await;
}

/// Each fetch leaves a pack, and the disk is small.
#[tokio::test]
async fn a_clone_does_not_grow_with_every_commit() {
    let fixture = Fixture::new();
    fixture.commit("Zero", &[("a.yaml", "0")]);
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    let daemon = GitDaemon::start(&fixture.beside(""));
    let folder = tempfile::tempdir().unwrap();
    let clone_folder = Some(folder.path().join("clone"));
    let url = daemon.url("bare.git");
    let mut repository = GitRepository::open(&RemoteSettings { clone_folder, ..settings(&url) }).unwrap();
    new_head(&mut repository).await;
    let packs = || {
        let files = std::fs::read_dir(folder.path().join("clone/objects/pack")).unwrap();
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "pack")).count()
    };
    let mut most = 0;
    for number in 2..60 {
        let text = number.to_string();
        fixture.commit(&text, &[("a.yaml", &text)]);
        if number == 50 {
            fixture.git(&["commit", "--quiet", "--amend", "-m", "again"]);
        }
        fixture.git(&["push", "--quiet", "--force", "origin", "main"]);
        let next = new_head(&mut repository).await;
        assert_eq!((files(&next), next.rewritten), (vec![("a.yaml", text.as_str())], false), "{number}");
        most = most.max(packs());
    }
    assert!(most > 20 && most <= 41 && packs() < 30, "{most} packs at most, {} at the end", packs());
    // What is left is enough to see that history was rewritten.
    fixture.git(&["reset", "--quiet", "--hard", "HEAD~5"]);
    fixture.commit("other", &[("a.yaml", "other")]);
    fixture.git(&["push", "--quiet", "--force", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert!(next.rewritten && !next.is_older);
}

/// First head, nothing new, two commits, a rewritten history, and onward from there.
async fn follow(fixture: &Fixture, url: &str) {
    let mut repository = open(url);
    let first = new_head(&mut repository).await;
    assert_eq!(files(&first), [("a.yaml", "1")]);
    assert_eq!((first.title.as_str(), first.revision.reference.as_str()), ("One", "main"));
    assert!(!first.rewritten);
    assert_eq!(repository.poll().await.unwrap(), None);

    fixture.commit("Two", &[("b.yaml", "2")]);
    let third = fixture.commit("Three\n\nWith a body.", &[("sub/c.yaml", "3")]);
    fixture.git(&["push", "--quiet", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert_eq!((next.revision.id.as_str(), next.title.as_str(), next.rewritten), (third.as_str(), "Three", false));
    assert_eq!(files(&next), [("a.yaml", "1"), ("b.yaml", "2"), ("sub/c.yaml", "3")]);

    fixture.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let rewritten = fixture.commit("Three, again", &[("a.yaml", "4")]);
    fixture.git(&["push", "--quiet", "--force", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert_eq!((next.revision.id.as_str(), next.rewritten), (rewritten.as_str(), true));
    assert_eq!(files(&next), [("a.yaml", "4"), ("b.yaml", "2")]);

    fixture.commit("Four", &[("a.yaml", "5")]);
    fixture.git(&["push", "--quiet", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert!(!next.rewritten && !next.is_older);
    assert_eq!(repository.poll().await.unwrap(), None);

    // Who wrote something since, not only the last.
    fixture.git(&["commit", "--quiet", "--allow-empty", "--author=Ada <Ada@example.com>", "-m", "Five"]);
    fixture.git(&["commit", "--quiet", "--allow-empty", "--author=Bob <bob@example.com>", "-m", "Six"]);
    fixture.git(&["push", "--quiet", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert_eq!(next.authors, ["ada@example.com", "bob@example.com", "carpenter@example.com"]);

    fixture.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
    fixture.git(&["push", "--quiet", "--force", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert!(next.rewritten && next.is_older, "the branch went back to {}", next.title);
    assert_eq!(files(&next), [("a.yaml", "5"), ("b.yaml", "2")]);
}

/// A process that starts has no history of its own: it is told what the one before it used.
#[tokio::test]
async fn a_server_that_is_behind_what_was_used_last_is_known_at_the_first_look() {
    let fixture = Fixture::new();
    fixture.commit("Zero", &[("a.yaml", "0")]);
    let one = fixture.commit("One", &[("a.yaml", "1")]);
    let two = fixture.commit("Two", &[("a.yaml", "2")]);
    let three = fixture.commit("Three", &[("a.yaml", "3")]);
    let committed_seconds: i64 = fixture.git(&["log", "-1", "--format=%ct"]).parse().unwrap();
    let four = fixture.commit("Four", &[("a.yaml", "4")]);
    fixture.bare("bare.git");
    let push = |commit: &str| {
        fixture.git(&["push", "--quiet", "--force", "origin", &format!("{commit}:refs/heads/main")]);
    };
    let daemon = GitDaemon::start(&fixture.beside(""));
    let server = HttpServer::start(&fixture.beside(""));
    let path = fixture.beside("bare.git").display().to_string();
    for url in [daemon.url("bare.git"), server.url("bare.git"), path] {
        let after = |earlier: Earlier| {
            GitRepository::open(&RemoteSettings { earlier: Some(earlier), ..settings(&url) }).unwrap()
        };
        let used_last = Earlier { id: three.clone(), committed_seconds };
        // A mirror that was behind catches up.
        push(&one);
        let mut repository = after(used_last.clone());
        for (commit, is_older) in [(&one, true), (&two, true), (&three, false), (&four, false), (&two, true)] {
            push(commit);
            let next = new_head(&mut repository).await;
            assert_eq!((&next.revision.id, next.is_older), (commit, is_older), "{url}: {}", next.title);
        }
        // A clock that was wrong: what is in the history is not newer, whatever its time.
        push(&four);
        let from_the_future = Earlier { committed_seconds: committed_seconds + 1_000_000, ..used_last.clone() };
        assert!(!new_head(&mut after(from_the_future.clone())).await.is_older, "{url}");
        push(&two);
        assert!(new_head(&mut after(from_the_future)).await.is_older, "{url}");
        // What was used was no commit.
        let folder = Earlier { id: "not-a-commit".to_owned(), ..used_last };
        assert!(!new_head(&mut after(folder)).await.is_older, "{url}");
    }
}

/// Nothing can be written: that is said at each poll, and over as soon as there is room.
#[tokio::test]
async fn a_full_disk_is_said_and_gets_over() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    let daemon = GitDaemon::start(&fixture.beside(""));
    let url = daemon.url("bare.git");
    let (program, full) = (fixture.beside("program"), fixture.beside("full"));
    let text_of_program = format!(
        "#!/bin/sh\n[ -e {} ] && trap '' XFSZ && ulimit -f 0\nexec {} \"$@\"\n",
        full.display(),
        env!("CARGO_BIN_EXE_cutlist")
    );
    std::fs::write(&program, text_of_program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut repository = GitRepository::open(&RemoteSettings { program, ..settings(&url) }).unwrap();
    new_head(&mut repository).await;
    std::fs::write(&full, "").unwrap();
    fixture.commit("Two", &[("a.yaml", "2")]);
    fixture.git(&["push", "--quiet", "origin", "main"]);
    for _ in 0..3 {
        let error = text(&repository.poll().await.unwrap_err());
        assert!(error.starts_with(&format!("fetch HEAD from {url}: ")), "{error}");
        assert!(error.contains("clone") || error.contains("write") || error.contains("too large"), "{error}");
    }
    std::fs::remove_file(&full).unwrap();
    assert_eq!(files(&new_head(&mut repository).await), [("a.yaml", "2")]);
}

/// Somebody cleans up what he does not know.
#[tokio::test]
async fn a_clone_that_was_removed_is_made_anew() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    let clone = fixture.beside("clone");
    let kept = RemoteSettings { clone_folder: Some(clone.clone()), ..settings(bare.to_str().unwrap()) };
    let mut repository = GitRepository::open(&kept).unwrap();
    new_head(&mut repository).await;
    std::fs::remove_dir_all(&clone).unwrap();
    assert_eq!(repository.poll().await.unwrap(), None);
    std::fs::remove_dir_all(&clone).unwrap();
    fixture.commit("Two", &[("a.yaml", "2")]);
    fixture.git(&["push", "--quiet", "origin", "main"]);
    let next = new_head(&mut repository).await;
    assert_eq!(files(&next), [("a.yaml", "2")]);
}

#[tokio::test]
async fn follows_a_branch_a_tag_and_a_sub_path() {
    let fixture = Fixture::new();
    let first = fixture.commit("One", &[("a.yaml", "1"), ("clusters/demo/b.yaml", "b")]);
    fixture.git(&["tag", "--annotate", "v1", "--message", "v1"]);
    fixture.git(&["checkout", "--quiet", "-b", "next"]);
    let second = fixture.commit("Two", &[("a.yaml", "2")]);
    let bare = fixture.bare("bare.git");
    git(&bare, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    let server = HttpServer::start(&fixture.beside(""));
    for url in [server.url("bare.git"), bare.display().to_string()] {
        for (reference, sub_path, commit, expected) in [
            (None, "", &first, vec![("a.yaml", "1"), ("clusters/demo/b.yaml", "b")]),
            (Some("next"), "", &second, vec![("a.yaml", "2"), ("clusters/demo/b.yaml", "b")]),
            (Some("v1"), "./clusters/", &first, vec![("demo/b.yaml", "b")]),
            (Some("refs/heads/next"), "clusters/demo", &second, vec![("b.yaml", "b")]),
        ] {
            let reference = reference.map(str::to_owned);
            let settings = RemoteSettings { reference, sub_path: sub_path.to_owned(), ..settings(&url) };
            let content = new_head(&mut GitRepository::open(&settings).unwrap()).await;
            assert_eq!((&content.revision.id, files(&content)), (commit, expected), "{settings:?}");
        }
        let settings = RemoteSettings { sub_path: "clusters/prod".to_owned(), ..settings(&url) };
        let error = GitRepository::open(&settings).unwrap().poll().await.unwrap_err();
        assert_eq!(error.kind, PortErrorKind::NotFound);
        assert!(text(&error).ends_with("`clusters/prod` is not there"), "{}", text(&error));
    }
}

/// As of a clone that somebody else made.
#[tokio::test]
async fn settings_around_a_sub_path_are_named() {
    let fixture = Fixture::new();
    fixture.commit("Two clusters", &[("cutlist.yaml", "a"), ("blue/pool.yaml", "b"), ("green/cutlist.yaml", "c")]);
    let bare = fixture.bare("bare.git");
    let note = "cutlist.yaml at the root of the repository is not read: the settings of `blue` are those in it, and it has none";
    for (sub_path, expected) in [("blue", vec![(NoteCode::LeftOut, note)]), ("green", Vec::new()), ("", Vec::new())] {
        let settings = RemoteSettings { sub_path: sub_path.to_owned(), ..settings(bare.to_str().unwrap()) };
        let content = new_head(&mut GitRepository::open(&settings).unwrap()).await;
        assert_eq!(notes(&content), expected, "{sub_path}");
    }
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_named_and_waited_for() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    let url = bare.to_str().unwrap();
    let mut repository =
        GitRepository::open(&RemoteSettings { reference: Some("mian".to_owned()), ..settings(url) }).unwrap();
    let error = repository.poll().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::NotFound);
    assert_eq!(
        text(&error),
        format!("fetch mian from {url}: the remote has no branch or tag of this name; there is main")
    );
    fixture.git(&["push", "--quiet", "origin", "main:mian"]);
    new_head(&mut repository).await;
    // Deleted, and made again at the same commit: nothing new.
    fixture.git(&["push", "--quiet", "origin", ":mian"]);
    assert_eq!(repository.poll().await.unwrap_err().kind, PortErrorKind::NotFound);
    fixture.git(&["push", "--quiet", "origin", "main:mian"]);
    assert_eq!(repository.poll().await.unwrap(), None);
}

#[tokio::test]
async fn an_empty_repository_is_waited_for() {
    let fixture = Fixture::new();
    let bare = fixture.bare("bare.git");
    let server = HttpServer::start(&fixture.beside(""));
    for url in [bare.display().to_string(), server.url("bare.git")] {
        let error = open(&url).poll().await.unwrap_err();
        assert_eq!(error.kind, PortErrorKind::NotFound);
        assert!(text(&error).ends_with("the remote has no commit yet"), "{}", text(&error));
        assert!(has_no_commit(&error));
    }
    let mut repository = open(&server.url("bare.git"));
    assert!(repository.poll().await.is_err());
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.git(&["push", "--quiet", "origin", "main:other"]);
    let error = repository.poll().await.unwrap_err();
    assert!(text(&error).ends_with("say which branch to follow; there is other"), "{}", text(&error));
    assert!(!has_no_commit(&error), "a branch that nobody names is a mistake of whoever follows it");
    fixture.git(&["push", "--quiet", "origin", "main"]);
    new_head(&mut repository).await;
}

#[tokio::test]
async fn a_remote_that_is_away_comes_back() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    let mut repository = open(bare.to_str().unwrap());
    new_head(&mut repository).await;
    let away = fixture.beside("away.git");
    std::fs::rename(&bare, &away).unwrap();
    let error = repository.poll().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::NotFound);
    assert_eq!(text(&error), format!("fetch HEAD from {}: the path does not exist", bare.display()));
    std::fs::rename(&away, &bare).unwrap();
    assert_eq!(repository.poll().await.unwrap(), None);

    let plain = tempfile::tempdir().unwrap();
    let file_url = format!("file://{}", bare.join("missing").display());
    for url in [plain.path().to_str().unwrap(), file_url.as_str()] {
        let error = open(url).poll().await.unwrap_err();
        assert_eq!(error.kind, PortErrorKind::NotFound, "{}", text(&error));
    }
    for scheme in ["http", "git"] {
        let url = format!("{scheme}://127.0.0.1:{}/bare.git", free_port());
        let error = open(&url).poll().await.unwrap_err();
        assert_eq!(error.kind, PortErrorKind::Temporary, "{}", text(&error));
        assert!(text(&error).starts_with(&format!("fetch HEAD from {url}: ")), "{}", text(&error));
    }
    let server = HttpServer::start(&fixture.beside(""));
    let error = open(&server.url("missing.git")).poll().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::NotFound, "{}", text(&error));
}

/// The library waits without end for a server that accepts and says nothing; a poll does not, and leaves nothing behind.
#[tokio::test]
async fn a_silent_server_is_given_up_again_and_again() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    for scheme in ["git", "http"] {
        let relay = Relay::start();
        let url = format!("{scheme}://{}/bare.git", relay.address());
        let mut repository = GitRepository::open(&RemoteSettings { limits: SHORT, ..settings(&url) }).unwrap();
        for _ in 0..6 {
            let error = repository.poll().await.unwrap_err();
            assert_eq!(error.kind, PortErrorKind::Temporary);
            assert!(text(&error).ends_with("the server did not answer within 1 seconds"), "{}", text(&error));
        }
        assert_eq!(relay.open_connections(), 0, "{scheme}: abandoned fetches have ended");
        // It answers again, and the next poll is as good as any.
        let daemon = GitDaemon::start(&fixture.beside(""));
        let http = HttpServer::start(&fixture.beside(""));
        relay.pass_to(if scheme == "git" { daemon.address() } else { http.address() });
        assert_eq!(files(&new_head(&mut repository).await), [("a.yaml", "1")]);
    }
}

#[tokio::test]
async fn a_fetch_as_a_whole_has_a_limit() {
    let relay = Relay::start();
    let url = format!("http://{}/bare.git", relay.address());
    let limits = FetchLimits { silence: Duration::from_secs(20), whole: Duration::from_secs(1) };
    let mut repository = GitRepository::open(&RemoteSettings { limits, ..settings(&url) }).unwrap();
    let error = repository.poll().await.unwrap_err();
    assert!(text(&error).ends_with("the fetch took longer than 1 seconds"), "{}", text(&error));
}

/// Who waits for a repository is not kept by a silent server, and a poll that is given up ends what it began.
#[tokio::test]
async fn nobody_waits_for_a_poll() {
    let relay = Relay::start();
    let url = format!("git://{}/bare.git", relay.address());
    let mut settings = settings(&url);
    settings.interval = Duration::from_secs(1);
    let mut beside = Beside::start(GitRepository::open(&settings).unwrap());
    let began = Instant::now();
    while relay.open_connections() == 0 {
        assert!(beside.poll().await.unwrap().is_none());
        let waited = tokio::time::timeout(Duration::from_millis(100), beside.changed()).await;
        assert!(waited.is_err() && began.elapsed() < Duration::from_secs(10));
    }
    drop(beside);
    while relay.open_connections() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(began.elapsed() < Duration::from_secs(15), "the process that fetched is still there");
    }
}

#[tokio::test]
async fn what_was_found_meanwhile_is_handed_over() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    let mut settings = settings(bare.to_str().unwrap());
    settings.interval = Duration::from_secs(1);
    let mut beside = Beside::start(GitRepository::open(&settings).unwrap());
    beside.changed().await;
    let content = beside.poll().await.unwrap().expect("a head");
    assert_eq!(files(&content), [("a.yaml", "1")]);
}

/// Credentials go to the configured scheme, host and port, whatever a redirect says.
#[tokio::test]
async fn credentials_do_not_follow_a_redirect() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    let other = HttpServer::start(&fixture.beside(""));
    other.require(AUTHORIZATION);
    let file = fixture.beside("credentials");
    std::fs::write(&file, "me:secret\n").unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let location = format!("http://{host}:{}", other.address().port());
        let redirecting = Redirecting::start(&location);
        let with_file = RemoteSettings {
            credentials_file: Some(file.clone()),
            ..settings(&redirecting.url("http://", "bare.git"))
        };
        let in_address = settings(&redirecting.url("http://me:secret@", "bare.git"));
        for settings in [with_file, in_address] {
            let error = GitRepository::open(&settings).unwrap().poll().await.unwrap_err();
            assert_eq!(error.kind, PortErrorKind::Denied, "{}", text(&error));
            assert!(!text(&error).contains("secret"), "{}", text(&error));
        }
        assert_eq!(other.authorized(), 0, "{host}");
        assert_eq!(redirecting.authorized(), 0, "nor to one that did not ask");
    }
    // To the same server it may lead, and without credentials anywhere.
    let mut direct = GitRepository::open(&settings(&other.url("bare.git").replace("://", "://me:secret@"))).unwrap();
    assert_eq!(files(&new_head(&mut direct).await), [("a.yaml", "1")]);
    let open_server = HttpServer::start(&fixture.beside(""));
    let redirecting = Redirecting::start(&format!("http://127.0.0.1:{}", open_server.address().port()));
    assert_eq!(files(&new_head(&mut open(&redirecting.url("http://", "bare.git"))).await), [("a.yaml", "1")]);
}

#[tokio::test]
async fn no_message_shows_what_is_secret_in_an_address() {
    let port = free_port();
    for url in [
        format!("http://ghp_TOKEN@127.0.0.1:{port}/x.git"),
        format!("http://me:ghp_TOKEN@127.0.0.1:{port}/x.git"),
        format!("http://127.0.0.1:{port}/x.git?private_token=ghp_TOKEN"),
        format!("http://127.0.0.1:{port}/x.git#ghp_TOKEN"),
        format!("http://me:ghp_TO/KEN@127.0.0.1:{port}/x.git"),
        "ftp://ghp_TOKEN@127.0.0.1/x.git".to_owned(),
        "https://ghp_TOKEN@127.0.0.1:1/x.git".to_owned(),
    ] {
        let said = match GitRepository::open(&settings(&url)) {
            Ok(mut repository) => text(&repository.poll().await.unwrap_err()),
            Err(error) => error.to_string(),
        };
        assert!(!said.contains("ghp_TO"), "{said}");
    }
}

#[tokio::test]
async fn credentials_are_offered_once() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    fixture.bare("bare.git");
    let server = HttpServer::start(&fixture.beside(""));
    server.require(AUTHORIZATION);
    let file = fixture.beside("credentials");
    let with_file =
        |file: &Path| RemoteSettings { credentials_file: Some(file.to_owned()), ..settings(&server.url("bare.git")) };

    let error = open(&server.url("bare.git")).poll().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Denied);
    assert!(text(&error).ends_with("credentials are required, and none were given"), "{}", text(&error));

    let mut repository = GitRepository::open(&with_file(&file)).unwrap();
    let error = repository.poll().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Denied);
    assert!(text(&error).contains(&format!("the credentials in {} can not be read", file.display())));

    std::fs::write(&file, "me:wrong\n").unwrap();
    let before = server.requests();
    let error = repository.poll().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Denied);
    assert!(text(&error).ends_with("the credentials were refused"), "{}", text(&error));
    assert!(!text(&error).contains("wrong"), "{}", text(&error));
    assert_eq!(server.requests() - before, 3, "one without, one that sees who asks, and one with the password");

    // The file is read again at each fetch.
    std::fs::write(&file, "me:secret\n").unwrap();
    assert_eq!(files(&new_head(&mut repository).await), [("a.yaml", "1")]);

    std::fs::write(&file, "\n").unwrap();
    let error = GitRepository::open(&with_file(&file)).unwrap().poll().await.unwrap_err();
    assert!(text(&error).contains("holds no credentials"), "{}", text(&error));
}

#[tokio::test]
async fn links_and_submodules_are_left_out() {
    let inner = Fixture::new();
    inner.commit("Inner", &[("inner.yaml", "inner")]);
    let fixture = Fixture::new();
    fixture.write("pool.yaml", "pool");
    std::os::unix::fs::symlink("/etc/passwd", fixture.path().join("passwd.yaml")).unwrap();
    let source = inner.path();
    let allow = "protocol.file.allow=always";
    fixture.git(&["-c", allow, "submodule", "--quiet", "add", source.to_str().unwrap(), "vendor"]);
    fixture.commit("Add what leads away", &[]);
    let bare = fixture.bare("bare.git");
    let content = new_head(&mut open(bare.to_str().unwrap())).await;
    assert_eq!(files(&content), [("pool.yaml", "pool")]);
    assert_eq!(
        notes(&content),
        [
            (
                NoteCode::SymbolicLinksLeftOut,
                "symbolic links that lead nowhere, or out of the repository, are not followed: passwd.yaml"
            ),
            (NoteCode::SubmodulesLeftOut, "submodules are not read: vendor")
        ]
    );
}

#[tokio::test]
async fn a_kept_clone_remembers_the_head() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    let bare = fixture.bare("bare.git");
    let settings =
        RemoteSettings { clone_folder: Some(fixture.beside("kept/clone.git")), ..settings(bare.to_str().unwrap()) };
    assert!(!new_head(&mut GitRepository::open(&settings).unwrap()).await.rewritten);
    assert!(!new_head(&mut GitRepository::open(&settings).unwrap()).await.rewritten, "the same head after a restart");
    fixture.git(&["commit", "--quiet", "--amend", "--message", "One, again"]);
    fixture.git(&["push", "--quiet", "--force", "origin", "main"]);
    assert!(new_head(&mut GitRepository::open(&settings).unwrap()).await.rewritten, "rewritten while nobody looked");
}

#[tokio::test]
async fn a_temporary_clone_goes_with_its_owner() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("a.yaml", "1")]);
    // The path of a work tree serves as well as that of a bare repository.
    let mut repository = open(fixture.path().to_str().unwrap());
    new_head(&mut repository).await;
    let before = std::fs::read_dir(fixture.path()).unwrap().count();
    drop(repository);
    assert_eq!(std::fs::read_dir(fixture.path()).unwrap().count(), before, "the remote is only read");
}

#[tokio::test(start_paused = true)]
async fn waits_for_the_interval_or_a_nudge() {
    let fixture = Fixture::new();
    let mut repository = open(fixture.path().to_str().unwrap());
    let started = tokio::time::Instant::now();
    repository.changed().await;
    assert_eq!(started.elapsed().as_secs(), 30);
    repository.nudge().nudge();
    repository.changed().await;
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[test]
fn what_can_not_be_followed_is_said_at_once() {
    for (url, sub_path) in [("ftp://example.com/a.git", ""), ("/srv/a.git", "../up")] {
        let settings = RemoteSettings { sub_path: sub_path.to_owned(), ..settings(url) };
        assert!(matches!(GitRepository::open(&settings), Err(OpenError::Address(_))), "{url}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let settings = RemoteSettings { clone_folder: Some(file.path().to_owned()), ..settings("/srv/a.git") };
    assert!(matches!(GitRepository::open(&settings), Err(OpenError::Clone { .. })));
}
