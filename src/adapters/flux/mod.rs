//! What Flux fetched: the artifact of a GitRepository, an OCIRepository or a Bucket, so that nobody needs a second credential.
//!
//! The object says where the artifact is and what its digest must be; what is downloaded is believed nothing until the digest is right. While the
//! object is silent, or its artifact can not be had, nothing changes: whoever used the last one goes on with it.
//!
//! Source: `https://fluxcd.io/flux/components/source/gitrepositories/#artifact`.

mod artifact;
mod download;
mod follow;
mod repository;

pub use artifact::{Artifact, SourceKind, SourceName};
pub use download::DownloadError;
pub use follow::{Downloaded, FluxSource};
pub use repository::{FluxRepository, ReadArchive, Say};
