//! Files in what others read of a preview.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::cli::arguments::PreviewArguments;

/// The text, in which each file or folder that was typed with its whole path is called by its name: whoever reads it on a pull request does
/// not know the machine that this runs on, and need not.
pub fn without_folders(text: &str, arguments: &PreviewArguments) -> String {
    let PreviewArguments { path, clusters, credentials_file, live, planning, .. } = arguments;
    let snapshots = clusters.iter().map(|cluster| Path::new(cluster.path.as_str()));
    let others = [credentials_file, &live.kubeconfig, &planning.catalog, &planning.facts];
    let others = others.into_iter().flatten().chain([path]).map(PathBuf::as_path);
    let mut whole: Vec<&Path> = snapshots.chain(others).filter(|path| path.is_absolute()).collect();
    // One may be in a folder that is another.
    whole.sort_by_key(|path| Reverse(path.as_os_str().len()));
    let named = |text: String, path: &Path| match (path.to_str(), path.file_name().and_then(OsStr::to_str)) {
        (Some(path), Some(name)) => text.replace(path.trim_end_matches('/'), name),
        _ => text,
    };
    whole.into_iter().fold(text.to_owned(), named)
}
