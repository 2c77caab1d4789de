//! Versions of objects.

/// A resource version as a number; zero where there is none. Versions of one kind grow; comparing them as numbers is allowed since
/// Kubernetes 1.35, and has worked since etcd 3.
pub fn version_number(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(0)
}
