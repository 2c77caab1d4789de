//! Where definitions come from: folders, clones and remote repositories. Only files that may hold definitions are read,
//! nothing is checked out, no submodule is read, and no link is followed that leads out of the repository.
//!
//! | what | where |
//! |---|---|
//! | one reading, for `cutlist plan` | `read.rs` |
//! | a merge that nobody made yet, for previews | `merge.rs` |
//! | a remote repository that is polled | `remote.rs`: when; `process.rs`: in a process of its own; `fetch.rs`: one look; `address.rs`, `credentials.rs`, `asked.rs`: who gets them |
//! | what fetches leave behind | `packs.rs` |
//! | polls that nobody waits for; what was read before them | `beside.rs`, `followed.rs` |
//! | several references with their histories, to be merged | `history.rs` |
//! | a folder or clone that is watched | `watch.rs` |
//! | the commits between two revisions, and who signed each | `signed.rs` |
//! | a repository written by a script, for the embedded world | `scripted.rs` |
//! | the files of a commit, of a folder, of a work tree | `tree.rs`, `folder.rs`, `work_tree.rs` |
//! | the files of an archive that was downloaded | `archive.rs` |
//! | snapshots of clusters on a branch | `snapshots.rs` |
//! | a commit of one file, for `cutlist ami bump` | `commit.rs` |
//! | which files these are: links, and what kustomizations name | `walk.rs` |
//! | what may be read at most, and what was left out | `collect.rs`; `expanded.rs`: how large a tree would get |

#![expect(clippy::disallowed_methods, reason = "this adapter reads files")]

mod address;
mod archive;
mod asked;
mod beside;
mod cause;
mod collect;
mod commit;
mod credentials;
mod expanded;
mod fetch;
mod folder;
mod followed;
mod history;
mod merge;
mod near;
mod packs;
mod process;
mod read;
mod remote;
mod scripted;
mod signed;
mod snapshots;
mod tree;
mod walk;
mod watch;
mod work_tree;

pub use address::{AddressError, folder_below, redacted};
pub use archive::{ArchiveError, read_archive};
pub use beside::Beside;
pub use cause::GitCause;
pub use collect::LimitError;
pub use commit::{CommitError, Committer};
pub use credentials::CredentialsError;
pub use fetch::Earlier;
pub use followed::{Followed, SignatureJudge};
pub use history::Histories;
pub use merge::{Merge, Proposal, read_merge};
pub use process::{COMMAND as FETCH_COMMAND, FetchLimits, serve as serve_fetch};
pub use read::{ReadError, of_text, read_files, read_folder, read_revision};
pub use remote::{GitRepository, Nudge, OpenError, RemoteSettings, has_no_commit};
pub use scripted::{Changes, ScriptError, ScriptedRepository};
pub use signed::{Between, SignedCommit, SignedHistory, TreeName};
pub use snapshots::{SnapshotBranch, SnapshotBranchError, is_snapshot, newest_snapshot};
pub use watch::WatchedFolder;
