//! One look at a remote repository: what is its head, and if that is another one, what is in it. Blocks.

use std::path::{Path, PathBuf};

use git2::{
    AutotagOption, CertificateCheckStatus, Commit, Direction, ErrorClass, ErrorCode, FetchOptions, Oid, ProxyOptions,
    Remote, RemoteCallbacks, RemoteRedirect, Repository, RepositoryInitOptions,
};

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::asked::asks_itself;
use super::cause::{GitCause, said};
use super::credentials::{Answers, CredentialsError, Secret, denied};
use super::near::nearest;
use super::packs::pack_together;
use super::read::{at_commit, authors_of, other_settings_at};
use super::tree::{self, TreeError};
use crate::ports::{PortErrorKind, RevisionContent, chain};

/// Bytes of one fetch. A repository of definitions has a few; an answer without end must end.
const FETCH_BYTES_MAX: usize = 1 << 30;

/// The depth by which Git means that nothing is cut off.
const WHOLE_HISTORY: i32 = i32::MAX;

/// Commits whose authors are looked at. More at once are an import.
const COMMITS_MAX: usize = 10_000;

#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("{}", said(.0))]
    Remote(git2::Error),
    #[error("the path does not exist")]
    PathNotThere,
    #[error("the remote has no commit yet")]
    Empty,
    #[error("the remote has no branch or tag of this name{}", or_else(near))]
    NoSuchReference { near: Vec<String> },
    #[error("the remote's HEAD names no branch that exists: say which branch to follow{}", or_else(near))]
    NoHead { near: Vec<String> },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("what was fetched can not be read")]
    Content(#[from] TreeError),
    #[error("the clone in {} can not be used: delete the folder, it is made anew", path.display())]
    Clone { path: PathBuf, source: GitCause },
    #[error("the answer is larger than {} MiB", FETCH_BYTES_MAX >> 20)]
    TooLarge,
}

fn or_else(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) }
}

impl FetchError {
    pub fn kind(&self) -> PortErrorKind {
        match self {
            Self::Remote(error) => kind_of(error),
            Self::PathNotThere
            | Self::Empty
            | Self::NoSuchReference { .. }
            | Self::NoHead { .. }
            | Self::Content(TreeError::PathNotThere(_)) => PortErrorKind::NotFound,
            Self::Credentials(_) => PortErrorKind::Denied,
            Self::Content(_) | Self::Clone { .. } | Self::TooLarge => PortErrorKind::Permanent,
        }
    }
}

/// The library has few codes of its own; what the server answered is in the text.
fn kind_of(error: &git2::Error) -> PortErrorKind {
    let says = |text: &str| error.class() == ErrorClass::Http && error.message().contains(text);
    let is_gone = ["No such file", "could not find repository"].iter().any(|text| error.message().contains(text));
    match error.code() {
        ErrorCode::Auth | ErrorCode::Owner => PortErrorKind::Denied,
        // Only where there are credentials, which would follow.
        _ if error.message().starts_with("cannot redirect") => PortErrorKind::Denied,
        ErrorCode::NotFound => PortErrorKind::NotFound,
        ErrorCode::Certificate => PortErrorKind::Permanent,
        _ if says("401") || says("403") => PortErrorKind::Denied,
        _ if says("404") => PortErrorKind::NotFound,
        _ if is_gone => PortErrorKind::NotFound,
        _ => PortErrorKind::Temporary,
    }
}

/// What is followed.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub address: Address,
    /// Branch or tag; `None`: the remote's HEAD.
    pub reference: Option<String>,
    pub credentials_file: Option<PathBuf>,
    pub earlier: Option<Earlier>,
    /// Also what came before: to merge it with something else.
    pub with_history: bool,
    /// How references begin that are listed as well.
    pub listed: Option<String>,
}

/// The commit that an earlier process used last. This one may have no history of its own to see by that a server went back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    pub id: String,
    pub committed_seconds: i64,
}

/// References that are listed at most. A merge queue has some.
const LISTED_MAX: usize = 200;

/// What a look at a remote found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Looked {
    /// `None`: the head is the one that is known.
    pub fetched: Option<Fetched>,
    /// References that begin as was asked, and their commits.
    pub listed: Vec<(String, String)>,
}

/// A head that is in the clone now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fetched {
    /// The reference of the clone that names it.
    pub own_name: String,
    /// What people call it.
    pub short: String,
    /// The head before is not in its history.
    pub rewritten: bool,
    /// It is in the history of the head before, or is taken for that.
    pub is_older: bool,
    /// Who wrote what is in it and not in the head before.
    pub authors: Vec<String>,
}

/// A reference of the remote.
#[derive(Debug, PartialEq, Eq)]
struct RemoteReference {
    /// `refs/heads/main`
    name: String,
    /// What people call it.
    short: String,
    commit: Oid,
}

/// Asks the remote, and fetches into the bare repository in `clone` when its head is not `known`. `moves` is told of each sign of
/// life of the other side.
pub(super) fn fetch(target: &Target, clone: &Path, known: Option<Oid>, moves: &dyn Fn()) -> Result<Looked, FetchError> {
    let damaged = |source: git2::Error| FetchError::Clone { path: clone.to_owned(), source: source.into() };
    if target.address.path.as_ref().is_some_and(|path| !path.exists()) {
        return Err(FetchError::PathNotThere);
    }
    let repository = open_or_make(clone).map_err(damaged)?;
    let has_secret = target.credentials_file.is_some() || target.address.user.is_some();
    // Where the library goes by what is configured, not by options: when it asks which heads there are.
    let follows = if has_secret { "false" } else { "initial" };
    repository.config().and_then(|mut config| config.set_str("http.followRedirects", follows)).map_err(damaged)?;
    let mut remote = repository.remote_anonymous(&target.address.url).map_err(FetchError::Remote)?;
    let (found, listed) = find(target, &mut remote, moves)?;
    moves();
    if Some(found.commit) == known {
        return Ok(Looked { fetched: None, listed });
    }
    let own_name = format!("refs/cutlist/{}", found.name);
    let before = known.or_else(|| repository.refname_to_id(&own_name).ok());
    download(target, &mut remote, &found.name, &own_name, before.is_none(), moves)?;
    // This handle knows where the history was cut off before, and where it is now.
    let commit = repository.find_reference(&own_name).and_then(|it| it.peel_to_commit()).map_err(damaged)?;
    let rewritten = before.is_some_and(|before| is_rewritten(&repository, &commit, before));
    let mut is_older = rewritten && before.is_some_and(|before| is_older(&repository, &commit, before));
    if let Some(earlier) = target.earlier.as_ref().filter(|earlier| seems_behind(&commit, earlier)) {
        is_older |= !holds(target, &mut remote, (&found.name, &own_name), clone, earlier, moves)?;
    }
    let authors = authors_since(&repository, &commit, before);
    let kept: Vec<Oid> = [commit.id()].into_iter().chain(before).chain(others(&repository)).collect();
    if let Err(error) = pack_together(&repository, &kept) {
        tracing::debug!(error = %chain(&error), "the packs of the clone stay as they are");
    }
    let fetched = Some(Fetched { own_name, short: found.short, rewritten, is_older, authors });
    Ok(Looked { fetched, listed })
}

/// The commits that this clone keeps under other names.
fn others(repository: &Repository) -> Vec<Oid> {
    let Ok(references) = repository.references_glob("refs/cutlist/*") else { return Vec::new() };
    references.flatten().filter_map(|reference| Some(reference.peel_to_commit().ok()?.id())).collect()
}

/// The bare clone of a folder; another one, where somebody removed it.
pub(super) fn open_or_make(folder: &Path) -> Result<Repository, git2::Error> {
    match Repository::open_bare(folder) {
        Err(error) if error.code() == ErrorCode::NotFound => {
            let mut options = RepositoryInitOptions::new();
            options.bare(true).mkpath(true).external_template(false);
            Repository::init_opts(folder, &options)
        }
        opened => opened,
    }
}

/// The head that was fetched, and what is in it, if it is not `known`. The head may have moved since it was listed: what counts
/// is what came.
pub(super) fn content(
    fetched: &Fetched,
    clone: &Path,
    sub_path: &str,
    known: Option<Oid>,
) -> Result<Option<(Oid, RevisionContent)>, FetchError> {
    let damaged = |source: git2::Error| FetchError::Clone { path: clone.to_owned(), source: source.into() };
    let repository = Repository::open_bare(clone).map_err(damaged)?;
    let reference = repository.find_reference(&fetched.own_name).map_err(damaged)?;
    let commit = reference.peel_to_commit().map_err(damaged)?;
    if Some(commit.id()) == known {
        return Ok(None);
    }
    let collector = tree::collect(&repository, &commit, sub_path)?;
    let mut content = at_commit(collector, &commit, &fetched.short);
    content.rewritten = fetched.rewritten;
    content.is_older = fetched.is_older;
    content.authors.clone_from(&fetched.authors);
    content.notes.extend(other_settings_at(&commit, sub_path, &content.files));
    Ok(Some((commit.id(), content)))
}

/// Whether `before` is not in the history of `commit`. What can not be told is taken for rewritten: the safe side.
pub(super) fn is_rewritten(repository: &Repository, commit: &Commit<'_>, before: Oid) -> bool {
    commit.id() != before && !repository.graph_descendant_of(commit.id(), before).unwrap_or(false)
}

/// Whether `commit` is in the history of `before`. Where that history was cut off, the times of both tell: who rewrites makes new commits.
pub(super) fn is_older(repository: &Repository, commit: &Commit<'_>, before: Oid) -> bool {
    let Ok(before) = repository.find_commit(before) else { return false };
    let is_ancestor = repository.graph_descendant_of(before.id(), commit.id()).unwrap_or(false);
    is_ancestor || (repository.is_shallow() && commit.time().seconds() < before.time().seconds())
}

/// Whether the commit was made before the one that an earlier process used. That is no proof: clocks are wrong.
fn seems_behind(commit: &Commit<'_>, earlier: &Earlier) -> bool {
    commit.id().to_string() != earlier.id && commit.time().seconds() < earlier.committed_seconds
}

/// Whether what an earlier process used is in the history of the head, all of which is fetched for that.
fn holds(
    target: &Target,
    remote: &mut Remote<'_>,
    (name, own_name): (&str, &str),
    clone: &Path,
    earlier: &Earlier,
    moves: &dyn Fn(),
) -> Result<bool, FetchError> {
    let damaged = |source: git2::Error| FetchError::Clone { path: clone.to_owned(), source: source.into() };
    // A hash over the files of a folder is in no history.
    let Ok(earlier) = Oid::from_str(&earlier.id) else { return Ok(true) };
    if Repository::open_bare(clone).map_err(damaged)?.is_shallow() {
        let mut options = options(target, moves)?;
        options.depth(WHOLE_HISTORY);
        remote.fetch(&[format!("+{name}:{own_name}")], Some(&mut options), None).map_err(FetchError::Remote)?;
    }
    // A handle of its own: the one before goes on to see where the history was cut off.
    let repository = Repository::open_bare(clone).map_err(damaged)?;
    let head = repository.refname_to_id(own_name).map_err(damaged)?;
    let head = repository.find_object(head, None).and_then(|it| it.peel_to_commit()).map_err(damaged)?.id();
    Ok(head == earlier || repository.graph_descendant_of(head, earlier).unwrap_or(false))
}

/// Who wrote what is in the history of `commit`, and not in that of `known`.
fn authors_since(repository: &Repository, commit: &Commit<'_>, known: Option<Oid>) -> Vec<String> {
    let Some(known) = known else { return authors_of(commit) };
    let walk = repository.revwalk().and_then(|mut walk| {
        walk.push(commit.id())?;
        walk.hide(known)?;
        Ok(walk)
    });
    let commits = walk.into_iter().flatten().take(COMMITS_MAX).flatten();
    let mut authors: Vec<String> =
        commits.filter_map(|id| repository.find_commit(id).ok()).flat_map(|commit| authors_of(&commit)).collect();
    authors.extend(authors_of(commit));
    authors.sort();
    authors.dedup();
    authors
}

/// The reference that is followed, and those that are listed.
fn find(
    target: &Target,
    remote: &mut Remote<'_>,
    moves: &dyn Fn(),
) -> Result<(RemoteReference, Vec<(String, String)>), FetchError> {
    let connection = remote
        .connect_auth(Direction::Fetch, Some(callbacks(target, moves)?), Some(proxy(target)))
        .map_err(FetchError::Remote)?;
    let heads = connection.list().map_err(FetchError::Remote)?;
    let heads: Vec<(String, Oid, Option<String>)> = heads
        .iter()
        .map(|head| (head.name().to_owned(), head.oid(), head.symref_target().map(str::to_owned)))
        .collect();
    let is_listed = |name: &str| target.listed.as_deref().is_some_and(|begin| name.starts_with(begin));
    let listed = heads.iter().filter(|(name, ..)| is_listed(name)).take(LISTED_MAX);
    let listed = listed.map(|(name, commit, _)| (name.clone(), commit.to_string())).collect();
    Ok((choose(&heads, target.reference.as_deref())?, listed))
}

/// Picks a branch before a tag of the same name, as the short name is meant by most people.
fn choose(heads: &[(String, Oid, Option<String>)], wanted: Option<&str>) -> Result<RemoteReference, FetchError> {
    if heads.is_empty() {
        return Err(FetchError::Empty);
    }
    let oid = |name: &str| heads.iter().find(|(head, ..)| head == name).map(|(_, oid, _)| *oid);
    let names = || heads.iter().filter_map(|(name, ..)| short_name(name).map(str::to_owned));
    let Some(wanted) = wanted else {
        let head = heads.iter().find(|(name, ..)| name == "HEAD");
        let Some((_, commit, target)) = head else {
            return Err(FetchError::NoHead { near: nearest("main", names()) });
        };
        let name = target.clone().unwrap_or_else(|| "HEAD".to_owned());
        let short = short_name(&name).unwrap_or(&name).to_owned();
        return Ok(RemoteReference { name, short, commit: *commit });
    };
    for name in [format!("refs/heads/{wanted}"), format!("refs/tags/{wanted}"), wanted.to_owned()] {
        if name.starts_with("refs/")
            && let Some(direct) = oid(&name)
        {
            // An annotated tag is listed a second time with the commit that it stands for.
            let commit = oid(&format!("{name}^{{}}")).unwrap_or(direct);
            return Ok(RemoteReference { name, short: wanted.to_owned(), commit });
        }
    }
    Err(FetchError::NoSuchReference { near: nearest(wanted, names()) })
}

fn short_name(name: &str) -> Option<&str> {
    let short = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/"))?;
    (!short.ends_with("^{}")).then_some(short)
}

/// Fetches one reference. Only its last commit when nothing is known yet; else all that is new, which shows whether the
/// commit before is still in its history.
fn download(
    target: &Target,
    remote: &mut Remote<'_>,
    name: &str,
    own_name: &str,
    is_first: bool,
    moves: &dyn Fn(),
) -> Result<(), FetchError> {
    let refspec = [format!("+{name}:{own_name}")];
    if is_first && target.address.takes_depth && !target.with_history {
        let shallow = remote.fetch(&refspec, Some(options(target, moves)?.depth(1)), None);
        match shallow {
            Ok(()) => return Ok(()),
            // An old server may not know how: then everything is fetched.
            Err(error) => tracing::debug!(%error, "shallow fetch failed, fetching all of the history"),
        }
    }
    remote.fetch(&refspec, Some(&mut options(target, moves)?), None).map_err(|error| match error.code() {
        ErrorCode::User => FetchError::TooLarge,
        _ => FetchError::Remote(error),
    })
}

fn options<'c>(target: &'c Target, moves: &'c dyn Fn()) -> Result<FetchOptions<'c>, FetchError> {
    let mut options = FetchOptions::new();
    let has_secret = target.credentials_file.is_some() || target.address.user.is_some();
    options.remote_callbacks(callbacks(target, moves)?);
    options.proxy_options(proxy(target));
    options.download_tags(AutotagOption::None);
    options.update_fetchhead(false);
    // A redirect could carry the credentials to another host.
    options.follow_redirects(if has_secret { RemoteRedirect::None } else { RemoteRedirect::Initial });
    Ok(options)
}

pub(super) fn callbacks<'c>(target: &'c Target, moves: &'c dyn Fn()) -> Result<RemoteCallbacks<'c>, FetchError> {
    let address = &target.address;
    let secret = match &target.credentials_file {
        Some(path) => Some(Secret::read(path)?),
        None => address.user.clone().map(|(user, password)| Secret::UserPassword { user, password }),
    };
    let has_secret = secret.is_some();
    let mut answers = Answers::new(secret);
    let mut callbacks = RemoteCallbacks::new();
    callbacks.credentials(move |_, user_of_url, allowed| {
        moves();
        let is_first = !answers.gave(allowed);
        // With TLS it is the certificate that says who asks.
        if let Some(origin) = address.origin.as_ref().filter(|it| is_first && has_secret && it.scheme == "http") {
            asks_itself(&address.url, origin).map_err(|error| denied(&chain(&error)))?;
        }
        answers.answer(user_of_url, allowed)
    });
    callbacks.certificate_check(move |_, host| {
        moves();
        match &address.origin {
            Some(origin) if has_secret && !host.eq_ignore_ascii_case(&origin.host) => Err(denied(&format!(
                "the server redirects to {host}, which gets no credentials: name that address, if it is meant"
            ))),
            // Certificates and known hosts are checked as ever.
            _ => Ok(CertificateCheckStatus::CertificatePassthrough),
        }
    });
    callbacks.transfer_progress(move |progress| {
        moves();
        progress.received_bytes() <= FETCH_BYTES_MAX
    });
    callbacks.sideband_progress(move |_| {
        moves();
        true
    });
    Ok(callbacks)
}

pub(super) fn proxy(target: &Target) -> ProxyOptions<'static> {
    let mut proxy = ProxyOptions::new();
    if !target.address.is_local {
        proxy.auto();
    }
    proxy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(digit: u8) -> Oid {
        Oid::from_bytes(&[digit; 20]).unwrap()
    }

    fn heads() -> Vec<(String, Oid, Option<String>)> {
        [
            ("HEAD", 1, Some("refs/heads/main")),
            ("refs/heads/main", 1, None),
            ("refs/heads/v1", 2, None),
            ("refs/tags/v1", 3, None),
            ("refs/tags/v2", 4, None),
            ("refs/tags/v2^{}", 5, None),
        ]
        .map(|(name, digit, target)| (name.to_owned(), oid(digit), target.map(str::to_owned)))
        .into()
    }

    #[test]
    fn finds_what_a_short_name_stands_for() {
        let cases = [
            (None, "refs/heads/main", "main", 1),
            (Some("main"), "refs/heads/main", "main", 1),
            (Some("v1"), "refs/heads/v1", "v1", 2),
            (Some("refs/tags/v1"), "refs/tags/v1", "refs/tags/v1", 3),
            (Some("v2"), "refs/tags/v2", "v2", 5),
        ];
        for (wanted, name, short, digit) in cases {
            let expected = RemoteReference { name: name.to_owned(), short: short.to_owned(), commit: oid(digit) };
            assert_eq!(choose(&heads(), wanted).unwrap(), expected, "{wanted:?}");
        }
    }

    #[test]
    fn says_what_there_is_instead() {
        let error = choose(&heads(), Some("mian")).unwrap_err();
        assert_eq!(error.to_string(), "the remote has no branch or tag of this name; there is main, v1, v2");
        assert!(matches!(choose(&[], None).unwrap_err(), FetchError::Empty));
        let error = choose(&heads()[1..], None).unwrap_err();
        assert!(error.to_string().ends_with("say which branch to follow; there is main, v1, v2"), "{error}");
    }
}
