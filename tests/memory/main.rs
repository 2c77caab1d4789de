//! What the watched cluster takes in memory: a process of its own plays the API server and sends what large clusters send, and
//! this one watches it as `cutlist run` does. It fails when the whole of a cluster of 5,000 nodes and 150,000 pods would take more
//! than it may. `cargo test --test memory` watches a small one; that one is watched by
//!
//! ```text
//! cargo test --test memory -- --nodes 5000
//! ```

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test starts a process and reads what the system says of this one")]

mod objects;
mod server;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use cutlist::adapters::kubernetes::{KubernetesCluster, Leadership, connect};
use cutlist::ports::{Cluster, PortErrorKind};

const PODS_PER_NODE: usize = 30;
/// Enough for what does not grow, such as buffers of connections, to be little of it.
const FEW_NODES: usize = 1000;
/// The cluster that the bound is for, and the bound.
const MANY_NODES: usize = 5000;
const MEBIBYTES_MAX: f64 = 1024.0;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let place = words.iter().position(|word| word == name)?;
        words.get(place + 1)?.parse::<usize>().ok()
    };
    if let Some(nodes) = number("--serve") {
        server::serve(nodes, nodes * PODS_PER_NODE);
        return ExitCode::SUCCESS;
    }
    measure(number("--nodes").unwrap_or(FEW_NODES))
}

/// Of ten seconds each.
const LOOKS_MAX: usize = 30;

/// Watches a cluster of so many nodes until all of it is known, and says what that took.
fn measure(nodes: usize) -> ExitCode {
    let server = Server::start(nodes);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, server.kubeconfig()).unwrap();
    let before = resident();
    let begin = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (cluster, snapshot) = runtime.block_on(async {
        let connection = connect(Some(Path::new(&kubeconfig)), None).await.unwrap();
        let cluster = KubernetesCluster::watch(&connection, Leadership::alone());
        // One look ends before a large cluster is read, and the next goes on from there.
        let mut observed = cluster.observe().await;
        for _ in 1..LOOKS_MAX {
            if observed.as_ref().is_err_and(|error| error.kind == PortErrorKind::Temporary) {
                observed = cluster.observe().await;
            }
        }
        let snapshot = observed.unwrap();
        (cluster, snapshot)
    });
    let seconds = begin.elapsed().as_secs_f64();
    assert_eq!((snapshot.nodes.len(), snapshot.pods.len()), (nodes, nodes * PODS_PER_NODE));
    let (after, peak) = (resident(), peak());
    drop((cluster, snapshot));
    let Some(((before, after), peak)) = before.zip(after).zip(peak) else {
        println!("the system does not say how much memory a process has");
        return ExitCode::SUCCESS;
    };
    #[expect(clippy::cast_precision_loss, reason = "a number of nodes, to calculate with")]
    let whole = before + (peak - before) * MANY_NODES as f64 / nodes as f64;
    println!(
        "{nodes} nodes and {} pods after {seconds:.1} s: {before:.0} MiB before, {after:.0} MiB with them, {peak:.0} MiB at most",
        nodes * PODS_PER_NODE
    );
    println!("{MANY_NODES} nodes and {} pods would take {whole:.0} MiB", MANY_NODES * PODS_PER_NODE);
    if whole <= MEBIBYTES_MAX {
        return ExitCode::SUCCESS;
    }
    println!("that is more than {MEBIBYTES_MAX:.0} MiB");
    ExitCode::FAILURE
}

/// The other process.
struct Server {
    process: Child,
    port: String,
}

impl Server {
    fn start(nodes: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--serve", &nodes.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned() }
    }

    fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\nclusters: [{{ name: it, cluster: {{ server: 'http://127.0.0.1:{}' }} }}]\n\
             users: [{{ name: it, user: {{}} }}]\ncontexts: [{{ name: it, context: {{ cluster: it, user: it }} }}]\n",
            self.port
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by itself when its standard input does; there is nothing to be said of one that has.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// MiB that this process has in memory, and had at most.
fn resident() -> Option<f64> {
    of_status("VmRSS:")
}

fn peak() -> Option<f64> {
    of_status("VmHWM:")
}

fn of_status(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}
