//! The scenarios, and where they are. Each is played in the embedded world by `cargo test`, and on a real control plane by
//! `make e2e`; `expected.txt` says how the cluster must look after each step in both.

use std::path::{Path, PathBuf};

/// Folders of a scenario, below the root of the repository.
pub struct Scenario {
    /// With `scenario.yaml` and the definitions.
    pub folder: &'static str,
    /// With `expected.txt`.
    pub expected: &'static str,
}

const fn here(folder: &'static str) -> Scenario {
    Scenario { folder, expected: folder }
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario { folder: "examples/quickstart", expected: "tests/scenarios/quickstart" },
    here("tests/scenarios/budget-opens"),
    here("tests/scenarios/expiry"),
    here("tests/scenarios/pool-deleted"),
    here("tests/scenarios/pool-label"),
    here("tests/scenarios/pool-renamed"),
    here("tests/scenarios/topology-spread"),
];

impl Scenario {
    pub fn folder(&self) -> PathBuf {
        root().join(self.folder)
    }

    pub fn expected(&self) -> PathBuf {
        root().join(self.expected).join("expected.txt")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
