//! The harness itself: a control plane that runs pods, and that leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::control_plane::ControlPlane;

/// The argument that makes this program start a control plane, say where, and wait to be killed.
pub const HOLD: &str = "hold";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 3
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
        - { name: web, image: registry.example/web, resources: { requests: { cpu: '1' } } }
";

pub fn control_plane_runs_pods(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    cluster.add_node("a", "2");
    cluster.apply_all(DEPLOYMENT);
    let phases = |wanted: [usize; 2]| {
        let what = format!("{wanted:?} pods of the Deployment running and pending");
        cluster.wait(&what, Duration::from_secs(30), |cluster| {
            let pods = cluster.list("/api/v1/namespaces/default/pods");
            let running =
                pods.iter().filter(|pod| pod["spec"]["nodeName"] == "a" && pod["status"]["phase"] == "Running");
            let waiting = pods.iter().filter(|pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable");
            let found = [running.count(), waiting.count()];
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        });
    };
    // Two fit: the scheduler counts, and kwok plays the kubelet.
    phases([2, 1]);
    cluster.patch("/apis/apps/v1/namespaces/default/deployments/web", &json!({ "spec": { "replicas": 2 } })).unwrap();
    phases([2, 0]);
    let version = cluster.get("/version").unwrap();
    plane.say(format!("Kubernetes {}", version["gitVersion"].as_str().unwrap()));
}

/// Also when the test is killed, or interrupted by Ctrl-C.
pub fn nothing_outlives_the_test(plane: &mut ControlPlane) {
    for signal in [Signal::KILL, Signal::INT] {
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .arg("--programs")
            .arg(plane.programs())
            .arg(HOLD)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut folder = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut folder).unwrap();
        let folder = PathBuf::from(folder.trim());
        assert_eq!(processes_with(&folder).len(), 6, "five programs and their watchdog");
        kill_process(Pid::from_child(&holder), signal).unwrap();
        assert!(!holder.wait().unwrap().success());
        assert_nothing_is_left(&folder);
    }
}

/// Starts a control plane, says where its data are, and waits to be killed.
pub fn hold(programs: &Path) -> ! {
    let plane = ControlPlane::start(programs);
    println!("{}", plane.folder().display());
    loop {
        std::thread::park();
    }
}

/// Waits a little: what was killed may still be on its way out.
pub fn assert_nothing_is_left(folder: &Path) {
    let begin = Instant::now();
    while folder.exists() || !processes_with(folder).is_empty() {
        let left = processes_with(folder);
        assert!(begin.elapsed() < Duration::from_secs(15), "left behind: {}, {left:#?}", folder.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The command lines of all processes that name the folder.
fn processes_with(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let mut lines: Vec<String> = match std::fs::read_dir("/proc") {
        Ok(processes) => processes
            .filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok())
            .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
            .collect(),
        // macOS
        Err(_) => {
            let output = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
        }
    };
    lines.retain(|line| line.contains(name));
    lines
}
