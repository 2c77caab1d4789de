//! What one repository may ask of the reader. Each limit is far above what people write and far below what hurts.

/// Bytes of one file. The API server takes objects of at most 1.5 MiB; this leaves room for thousands of small ones.
pub const FILE_BYTES: usize = 8 << 20;
/// Documents of one file.
pub const FILE_DOCUMENTS: usize = 10_000;
/// Mappings and lists inside each other. A pod in a Deployment in a List needs 14.
pub const DEPTH: usize = 64;
/// Documents of all files together. One of 1 kB takes some 33 kB of memory, most of it for the place of each value.
pub const REVISION_DOCUMENTS: usize = 20_000;
/// Values of all documents together. Each takes half a kilobyte, and more of them take more memory than the chart
/// gives.
pub const REVISION_VALUES: usize = 1_000_000;
/// Values of one document after its aliases were expanded; stops a file of a kilobyte that stands for a terabyte.
pub const DOCUMENT_VALUES: usize = 1_000_000;
/// Aliases of one document. Hand-written ones have a handful.
pub const DOCUMENT_ALIASES: usize = 10_000;
/// Findings of one file. The first ones say what is wrong; the rest is counted.
pub const FILE_FINDINGS: usize = 200;
/// Substitutions inside the default of a substitution.
pub const SUBSTITUTION_DEPTH: usize = 8;
/// Bytes that substitution may make of one document: the API server takes objects of at most 1.5 MiB.
pub const SUBSTITUTED_BYTES: usize = 2 << 20;
/// Bytes of memory, about, of one object that a kustomization makes.
pub const BUILT_OBJECT_BYTES: usize = 8 << 20;
/// Bytes, about, that all kustomizations together build, patch and copy. What is built twice is counted twice.
pub const BUILT_BYTES: usize = 512 << 20;
/// Pools, and other definitions of one kind, that are planned with. A large organisation has some dozens of them for a cluster.
pub const OF_ONE_KIND: usize = 500;
/// Nodes that a pool without pods keeps. The largest clusters have 5,000.
pub const REPLICAS: u64 = 10_000;
/// Values of one requirement: EC2 has some 1,000 instance types.
pub const VALUES: usize = 2_000;
/// Entries of lists and mappings that no schema limits, such as taints, tags and limits.
pub const ENTRIES: usize = 200;
