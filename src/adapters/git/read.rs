//! One reading of a folder, a clone or a bare repository, for commands that do not stay.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use git2::{BranchType, Commit, ErrorClass, ErrorCode, ObjectType, Oid, Repository, RepositoryOpenFlags};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::cause::GitCause;
use super::collect::{Collector, LimitError};
use super::folder::{self, Bounds, FolderError, Plain};
use super::near::nearest;
use super::tree::{self, TreeError};
use super::work_tree::{self, WorkTree};
use crate::api::source::SourceFile;
use crate::api::{kustomization, settings};
use crate::core::plan::{Note, NoteCode, Revision};
use crate::ports::RevisionContent;

/// Why nothing was read; [`ReadError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{} does not exist", .0.display())]
    PathNotThere(PathBuf),
    #[error("{} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is neither a folder nor a .yaml, .yml or .json file", .0.display())]
    NotDefinitions(PathBuf),
    #[error("{} is not in a Git repository", .0.display())]
    NotARepository(PathBuf),
    #[error("the Git repository of {} belongs to another user", path.display())]
    OtherOwner { path: PathBuf, source: GitCause },
    #[error("the Git repository of {} can not be opened", path.display())]
    DamagedRepository { path: PathBuf, source: GitCause },
    #[error("the Git repository {} has no commit yet", .0.display())]
    EmptyRepository(PathBuf),
    #[error("{} has no revision `{reference}`", path.display())]
    NoSuchRevision {
        path: PathBuf,
        reference: String,
        /// Branches and tags with names that are near.
        near: Vec<String>,
        /// The clone does not hold all of its history.
        shallow: bool,
    },
    #[error("`{0}` stands for more than one commit")]
    AmbiguousRevision(String),
    #[error("`{sub_path}` is not in revision `{reference}`")]
    PathNotInRevision { sub_path: String, reference: String },
    #[error("commits {} and {} in {} have no history in common", short(one), short(other), path.display())]
    NothingInCommon {
        path: PathBuf,
        one: String,
        other: String,
        /// The clone does not hold all of its history.
        shallow: bool,
    },
    #[error("{} does not hold the history that a merge needs", path.display())]
    HistoryIncomplete { path: PathBuf, source: GitCause },
    #[error("object {id} of `{path}` can not be read")]
    UnreadableObject { id: String, path: String, source: GitCause },
    #[error("two entries of `{path}` are both shown as `{name}`: their names are no UTF-8 text")]
    AlikeNames { path: String, name: String },
    #[error("`{0}` is listed in the commit, and is not there")]
    NotAsListed(String),
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl ReadError {
    /// Whether what was named is not there, and not only unreadable.
    pub fn is_named_wrongly(&self) -> bool {
        matches!(
            self,
            Self::PathNotThere(_)
                | Self::NotDefinitions(_)
                | Self::NotARepository(_)
                | Self::NoSuchRevision { .. }
                | Self::AmbiguousRevision(_)
                | Self::PathNotInRevision { .. }
        )
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::PathNotThere(_) => "name a folder, a clone or a bare repository that exists".to_owned(),
            Self::Unreadable { .. } => "check the permissions of the path and of the folders above it".to_owned(),
            Self::NotDefinitions(_) => "name the folder that holds the definitions, such as `.`".to_owned(),
            Self::NotARepository(_) => {
                "a revision can be read from a clone or a bare repository only; leave it out to read the files on disk"
                    .to_owned()
            }
            Self::OtherOwner { path, .. } => {
                format!("if you trust it: git config --global --add safe.directory {}", path.display())
            }
            Self::DamagedRepository { source, .. } if source.0.code() == ErrorCode::NotFound => {
                LACKS_OBJECTS.to_owned()
            }
            Self::DamagedRepository { path, .. } => format!("see what `git -C {} fsck` says", path.display()),
            Self::EmptyRepository(_) => "commit the definitions first".to_owned(),
            Self::NoSuchRevision { near, shallow, .. } => return revision_hint(near, *shallow),
            Self::AmbiguousRevision(_) => {
                "write more digits of the hash, or the full name: `refs/heads/NAME`".to_owned()
            }
            Self::PathNotInRevision { .. } => "the folder may have had another name then".to_owned(),
            Self::NothingInCommon { shallow: true, .. } | Self::HistoryIncomplete { .. } => {
                "this clone is shallow: `git fetch --unshallow` gets the rest of its history (`fetch-depth: 0` in CI)"
                    .to_owned()
            }
            Self::NothingInCommon { .. } => "name a head that was made from the base".to_owned(),
            Self::AlikeNames { .. } => "rename one of them".to_owned(),
            Self::UnreadableObject { .. } | Self::NotAsListed(_) => LACKS_OBJECTS.to_owned(),
            Self::Limit(LimitError::TooManyPaths) => {
                "trees that name each other many times are nobody's definitions: look who made the commit".to_owned()
            }
            Self::Limit(LimitError::TooLarge { .. }) => "keep what is large elsewhere, such as with Git LFS".to_owned(),
            Self::Limit(_) => "name the sub folder that holds the definitions".to_owned(),
        })
    }
}

/// Nothing is fetched here, so what a partial clone gets when it is needed is missing.
const LACKS_OBJECTS: &str = "the clone lacks some of its objects, as one that was made with `--filter` (`filter` in CI): clone it whole; \
                             where it should have them, see what `git fsck` says";

fn revision_hint(near: &[String], shallow: bool) -> Option<String> {
    let mut parts = Vec::new();
    if shallow {
        parts.push("this clone is shallow: `git fetch --unshallow` gets the rest of its history".to_owned());
    }
    if !near.is_empty() {
        parts.push(format!("there is {}", near.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A reading, and the commit that it stands on.
pub(super) struct Reading {
    pub content: RevisionContent,
    pub head: Option<Oid>,
}

/// Reads the definitions at `path` as they are now.
///
/// | `path` | what is read | revision | reference |
/// |---|---|---|---|
/// | folder or file | the files on disk | hash over them | the path as typed |
/// | clone, or a folder in one | the files on disk, without what Git ignores | `HEAD`'s commit; with `-dirty-HASH` when they differ from it | branch |
/// | bare repository | the commit `HEAD` | that commit | branch |
///
/// Paths of the files are relative to `path`. Nothing is written and nothing is fetched.
pub fn read_folder(path: &Path) -> Result<RevisionContent, ReadError> {
    read(path).map(|reading| reading.content)
}

/// The same to judge the files, and not to plan with them: how they differ from the commit is not asked, which a clone can not say that
/// lacks some of its objects. A note tells what a sparse checkout left out.
pub fn read_files(path: &Path) -> Result<RevisionContent, ReadError> {
    read_as(path, Compared::No).map(|reading| reading.content)
}

/// Whether files on disk are held against their commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Yes,
    No,
}

/// Reads the commit that `reference` stands for: a branch, a tag, `HEAD~1`, a hash or its beginning. `path` is a bare
/// repository, a clone, or a folder (or file) in a clone: then only what is below it is read.
pub fn read_revision(path: &Path, reference: &str) -> Result<RevisionContent, ReadError> {
    let Some(place) = RepositoryPlace::find(path)? else { return Err(ReadError::NotARepository(path.to_owned())) };
    let commit = place.commit(path, reference)?;
    let collector =
        tree::collect(&place.repository, &commit, &place.sub_path).map_err(|error| tree_error(error, reference))?;
    let mut content = at_commit(collector, &commit, reference);
    content.notes.extend(other_settings_at(&commit, &place.sub_path, &content.files));
    Ok(content)
}

/// Definitions that came as text, such as from standard input; their file is called `name`.
pub fn of_text(name: &str, content: Vec<u8>, reference: &str) -> RevisionContent {
    let files = vec![SourceFile::new(name, content)];
    let revision = Revision { id: hash(&files), reference: reference.to_owned() };
    let (title, authors) = (String::new(), Vec::new());
    let (committed_at, notes) = (None, Vec::new());
    RevisionContent { revision, title, files, rewritten: false, is_older: false, committed_at, authors, notes }
}

pub(super) fn read(path: &Path) -> Result<Reading, ReadError> {
    read_as(path, Compared::Yes)
}

fn read_as(path: &Path, compared: Compared) -> Result<Reading, ReadError> {
    let place = match RepositoryPlace::find(path) {
        Ok(Some(place)) => place,
        Ok(None) => return read_plain(path, None),
        // Checkouts in CI belong to whoever mounted them. Without Git's part the files are as good as any.
        Err(error @ ReadError::OtherOwner { .. }) => return read_plain(path, Some(other_owner(&error))),
        Err(error) => return Err(error),
    };
    if place.repository.is_bare() {
        let commit = place.head()?.ok_or_else(|| ReadError::EmptyRepository(path.to_owned()))?;
        let reference = place.branch();
        let collector = tree::collect(&place.repository, &commit, "").map_err(|error| tree_error(error, &reference))?;
        return Ok(Reading { head: Some(commit.id()), content: at_commit(collector, &commit, &reference) });
    }
    if place.is_ignored() {
        return read_plain(path, None);
    }
    read_work_tree(path, &place, compared)
}

fn read_plain(path: &Path, note: Option<Note>) -> Result<Reading, ReadError> {
    let folder = if path.is_dir() { path } else { folder_of(path) };
    let bounds = Bounds::of_folder(folder).map_err(folder_error)?;
    let collector = if path.is_dir() {
        folder::collect(&bounds, &Plain)
    } else {
        folder::collect_file(&bounds, &Plain, path, file_name(path))
    };
    let (files, mut notes) = collector.map_err(folder_error)?.finish();
    notes.extend(note);
    let revision = Revision { id: hash(&files), reference: path.display().to_string() };
    Ok(Reading { content: RevisionContent::without_history(revision, "", files, notes), head: None })
}

fn read_work_tree(path: &Path, place: &RepositoryPlace, compared: Compared) -> Result<Reading, ReadError> {
    let damaged = |source: git2::Error| ReadError::DamagedRepository { path: path.to_owned(), source: source.into() };
    let work_tree = place.repository.workdir().map(Path::canonicalize).transpose();
    let work_tree = work_tree.map_err(|source| ReadError::Unreadable { path: path.to_owned(), source })?;
    let work_tree = work_tree.unwrap_or_else(|| path.to_owned());
    let rules = WorkTree::new(&place.repository).map_err(damaged)?;
    let collector = if path.is_dir() {
        folder::collect(&Bounds::of_work_tree(&work_tree, &place.sub_path), &rules)
    } else {
        let folder = kustomization::folder(&place.sub_path);
        folder::collect_file(&Bounds::of_work_tree(&work_tree, folder), &rules, path, file_name(path))
    };
    let (files, mut notes) = collector.map_err(folder_error)?.finish();
    if path.is_dir() {
        notes.extend(other_settings(&place.sub_path, &files, |path| work_tree.join(path).is_file()));
    }
    let reference = place.branch();
    let Some(commit) = place.head()? else {
        let revision = Revision { id: hash(&files), reference };
        return Ok(Reading { content: RevisionContent::without_history(revision, "", files, notes), head: None });
    };
    let mut id = commit.id().to_string();
    let differing = match compared {
        Compared::Yes => work_tree::differences(&place.repository, &commit, &place.sub_path, &files),
        Compared::No => {
            notes.extend(rules.left_out(&place.sub_path));
            Ok(BTreeSet::new())
        }
    };
    let differing = differing.map_err(|error| tree_error(error, &reference))?;
    if !differing.is_empty() {
        notes.push(work_tree::uncommitted(&id, differing));
        id = format!("{id}-dirty-{}", hash(&files).get(..12).unwrap_or_default());
    }
    let revision = Revision { id, reference };
    let content = RevisionContent::without_history(revision, title(&commit), files, notes);
    let content = RevisionContent { authors: authors_of(&commit), ..content };
    Ok(Reading { content, head: Some(commit.id()) })
}

/// Settings that somebody may take for those of the folder: the nearest in a folder around it. `is_there` says whether a path is a file.
fn other_settings(sub_path: &str, files: &[SourceFile], is_there: impl Fn(&str) -> bool) -> Option<Note> {
    if sub_path.is_empty() || files.iter().any(|file| file.path == settings::FILE_NAME) {
        return None;
    }
    let nearest = Some(kustomization::folder(sub_path));
    let mut around = std::iter::successors(nearest, |it| (!it.is_empty()).then(|| kustomization::folder(it)));
    let place = around.find_map(|folder| match folder {
        "" => is_there(settings::FILE_NAME).then(|| format!("{} at the root of the repository", settings::FILE_NAME)),
        folder => Some(format!("{folder}/{}", settings::FILE_NAME)).filter(|path| is_there(path)),
    })?;
    let text = format!("{place} is not read: the settings of `{sub_path}` are those in it, and it has none");
    Some(Note::new(NoteCode::LeftOut, text))
}

/// The same of a commit.
pub(super) fn other_settings_at(commit: &Commit<'_>, sub_path: &str, files: &[SourceFile]) -> Option<Note> {
    let kind = |path: &str| commit.tree().and_then(|tree| tree.get_path(Path::new(path))).ok().and_then(|it| it.kind());
    let is_folder = !sub_path.is_empty() && kind(sub_path) == Some(ObjectType::Tree);
    let is_there = |path: &str| kind(path) == Some(ObjectType::Blob);
    is_folder.then(|| other_settings(sub_path, files, is_there)).flatten()
}

/// A content that is exactly that of a commit.
pub(super) fn at_commit(collector: Collector, commit: &Commit<'_>, reference: &str) -> RevisionContent {
    let (files, notes) = collector.finish();
    let revision = Revision { id: commit.id().to_string(), reference: reference.to_owned() };
    let authors = authors_of(commit);
    let committed_at = Timestamp::from_second(commit.time().seconds()).ok();
    let title = title(commit);
    RevisionContent { revision, title, files, rewritten: false, is_older: false, committed_at, authors, notes }
}

/// A repository, and the folder of it that was asked for.
pub(super) struct RepositoryPlace {
    pub repository: Repository,
    /// Relative to the work tree, `/` between the parts; empty for all of it and for bare repositories.
    pub sub_path: String,
}

impl RepositoryPlace {
    /// Finds the repository that `path`, a folder or a file, is in. `None` for a path that is in none.
    pub fn find(path: &Path) -> Result<Option<Self>, ReadError> {
        let unreadable = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                ReadError::PathNotThere(path.to_owned())
            }
            _ => ReadError::Unreadable { path: path.to_owned(), source },
        };
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        let canonical = path.canonicalize().map_err(unreadable)?;
        let is_definition = matches!(canonical.extension().and_then(OsStr::to_str), Some("yaml" | "yml" | "json"));
        if !(metadata.is_dir() || metadata.is_file() && is_definition) {
            return Err(ReadError::NotDefinitions(path.to_owned()));
        }
        let folder = if metadata.is_dir() { Some(canonical.as_path()) } else { canonical.parent() };
        let Some(folder) = folder else { return Ok(None) };
        let no_ceiling: [&OsStr; 0] = [];
        let repository = match Repository::open_ext(folder, RepositoryOpenFlags::empty(), no_ceiling) {
            Ok(repository) => repository,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            Err(source) if source.code() == ErrorCode::Owner => {
                return Err(ReadError::OtherOwner { path: canonical, source: source.into() });
            }
            Err(source) => return Err(ReadError::DamagedRepository { path: path.to_owned(), source: source.into() }),
        };
        // A folder inside a bare repository, such as its hooks, is no part of any commit.
        let root = repository.workdir().unwrap_or_else(|| repository.path()).canonicalize().map_err(unreadable)?;
        let Ok(below) = canonical.strip_prefix(&root) else { return Ok(None) };
        let sub_path = below.iter().map(OsStr::to_string_lossy).collect::<Vec<_>>().join("/");
        let is_internal =
            if repository.is_bare() { !sub_path.is_empty() } else { sub_path.split('/').next() == Some(".git") };
        Ok((!is_internal).then_some(Self { repository, sub_path }))
    }

    /// Whether Git ignores the whole place: files made there are not part of the repository around them.
    fn is_ignored(&self) -> bool {
        !self.sub_path.is_empty() && self.repository.is_path_ignored(&self.sub_path).unwrap_or(false)
    }

    /// `None` before the first commit.
    fn head(&self) -> Result<Option<Commit<'_>>, ReadError> {
        let commit = self.repository.head().and_then(|head| head.peel_to_commit());
        match commit {
            Ok(commit) => Ok(Some(commit)),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(source) => {
                Err(ReadError::DamagedRepository { path: self.repository.path().to_owned(), source: source.into() })
            }
        }
    }

    /// The name of the branch, also of one without a commit; `HEAD` when no branch is checked out.
    fn branch(&self) -> String {
        let head = self.repository.find_reference("HEAD").ok();
        let target = head.as_ref().and_then(|head| head.symbolic_target().ok().flatten());
        let name = target.map(|target| target.strip_prefix("refs/heads/").unwrap_or(target));
        name.unwrap_or("HEAD").to_owned()
    }

    pub fn commit(&self, path: &Path, reference: &str) -> Result<Commit<'_>, ReadError> {
        // Not `is_empty`: that takes a repository whose first branch has another name than the default for one in use.
        // Nor the references alone: a job may have checked out a commit that no branch has.
        let has_none = || self.repository.references().is_ok_and(|mut references| references.next().is_none());
        if has_none() && self.head()?.is_none() {
            return Err(ReadError::EmptyRepository(path.to_owned()));
        }
        // A clone made in CI often has a branch of the remote only under the remote's name.
        let found = self.peel(reference).or_else(|error| match error.code() {
            ErrorCode::NotFound => self.peel(&format!("origin/{reference}")).map_err(|_| error),
            _ => Err(error),
        });
        found.map_err(|source| match source.code() {
            ErrorCode::Ambiguous => ReadError::AmbiguousRevision(reference.to_owned()),
            ErrorCode::NotFound | ErrorCode::InvalidSpec | ErrorCode::Peel | ErrorCode::UnbornBranch => {
                ReadError::NoSuchRevision {
                    path: path.to_owned(),
                    reference: reference.to_owned(),
                    near: nearest(reference, self.names()),
                    shallow: self.repository.is_shallow(),
                }
            }
            _ => ReadError::UnreadableObject { id: reference.to_owned(), path: String::new(), source: source.into() },
        })
    }

    fn peel(&self, reference: &str) -> Result<Commit<'_>, git2::Error> {
        if reference.contains('\0') {
            let message = "a name can not hold a nul byte";
            return Err(git2::Error::new(ErrorCode::InvalidSpec, ErrorClass::Reference, message));
        }
        self.repository.revparse_single(reference)?.peel_to_commit()
    }

    /// Branches and tags. What can not be listed is not suggested.
    fn names(&self) -> Vec<String> {
        let branches = self.repository.branches(None).into_iter().flatten().flatten();
        let branches = branches.filter_map(|(branch, kind)| {
            let name = branch.name().ok().flatten()?.to_owned();
            (kind == BranchType::Local || !name.ends_with("/HEAD")).then_some(name)
        });
        let tags = self.repository.tag_names(None).ok();
        let tags = tags.iter().flat_map(|tags| tags.iter().filter_map(|name| Some(name.ok()??.to_owned())));
        branches.chain(tags).collect()
    }
}

pub(super) fn title(commit: &Commit<'_>) -> String {
    commit.summary_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// E-mail addresses of who wrote a commit, and of who made it of what another wrote.
pub(super) fn authors_of(commit: &Commit<'_>) -> Vec<String> {
    let email = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_lowercase();
    let mut authors = vec![email(commit.author().email_bytes()), email(commit.committer().email_bytes())];
    authors.retain(|author| !author.is_empty());
    authors.sort();
    authors.dedup();
    authors
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The first digits of a commit, for sentences.
fn short(id: &str) -> &str {
    id.get(..7).unwrap_or(id)
}

/// A hash over paths and contents; each is preceded by its length, so that no two lists give the same input.
fn hash(files: &[SourceFile]) -> String {
    let mut hasher = Sha256::new();
    for file in files.iter().filter(|file| file.has_content()) {
        for part in [file.path.as_bytes(), &file.content] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can not fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

fn other_owner(error: &ReadError) -> Note {
    let text = format!("{error}, so the files are read without a commit; {}", error.hint().unwrap_or_default());
    Note::new(NoteCode::RepositoryOfAnotherUser, text)
}

fn folder_error(error: FolderError) -> ReadError {
    match error {
        FolderError::Unreadable { path, source } => ReadError::Unreadable { path, source },
        FolderError::Alike { path, name } => ReadError::AlikeNames { path: path.display().to_string(), name },
        FolderError::Limit(limit) => limit.into(),
    }
}

pub(super) fn tree_error(error: TreeError, reference: &str) -> ReadError {
    match error {
        TreeError::PathNotThere(sub_path) => ReadError::PathNotInRevision { sub_path, reference: reference.to_owned() },
        TreeError::Object { id, path, source } => ReadError::UnreadableObject { id: id.to_string(), path, source },
        TreeError::Alike { path, name } => ReadError::AlikeNames { path, name },
        TreeError::NotAsListed(path) => ReadError::NotAsListed(path),
        TreeError::Limit(limit) => limit.into(),
    }
}
