//! A control plane on loopback: etcd, API server, controller manager, scheduler, and kwok, which plays the kubelets.
//!
//! Everything is in one temporary folder and in process groups of its own. It ends with the value; when the test is killed,
//! the watchdog ends it.

mod files;
mod process;
mod shared;
mod watchdog;

use std::cell::RefCell;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use files::Files;
pub use process::Process;
use shared::Shared;

/// How long the API server may take until it answers; it takes about four seconds on two cores.
const START_PATIENCE: Duration = Duration::from_secs(120);

pub struct ControlPlane {
    // Dropped in this order: clients before servers.
    kwok: Process,
    scheduler: Process,
    controller_manager: Process,
    api_server: Process,
    etcd: Process,
    server: String,
    files: Files,
    shared: Shared,
    programs: PathBuf,
    said: RefCell<String>,
}

impl ControlPlane {
    /// Starts it with the programs in a folder (see `tests/control-plane/build`); gives it when it is ready for use.
    pub fn start(programs: &Path) -> Self {
        let shared = Shared::new();
        let [etcd_port, peer_port, api_port] = free_ports();
        let server = format!("https://127.0.0.1:{api_port}");
        let files = Files::write(shared.folder(), &server);
        let start = |name: &str, arguments: &[String]| {
            let mut command = Command::new(programs.join(name));
            command.args(arguments).current_dir(shared.folder());
            Process::start(name, command, &shared)
        };
        let etcd = start("etcd", &etcd_arguments(shared.folder(), etcd_port, peer_port));
        let mut api_server = start("kube-apiserver", &api_server_arguments(&files, etcd_port, api_port));
        wait_until_ready(&mut api_server, &files);
        let controller_manager = start("kube-controller-manager", &controller_manager_arguments(&files));
        let scheduler = start("kube-scheduler", &scheduler_arguments(&files));
        let kwok = start("kwok", &kwok_arguments(&files));
        let (programs, said) = (programs.to_owned(), RefCell::default());
        let plane =
            Self { kwok, scheduler, controller_manager, api_server, etcd, server, files, shared, programs, said };
        plane.wait_for_service_accounts();
        plane
    }

    /// A line for the report of the case, which is printed when the case is over: others run at the same time.
    pub fn say(&self, line: impl AsRef<str>) {
        self.said.borrow_mut().push_str(&format!("  {}\n", line.as_ref()));
    }

    pub fn said(&self) -> String {
        self.said.borrow().clone()
    }

    /// The folder with its programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Runs one of the programs, `kubectl` or `helm`, as somebody who may do everything; gives what it printed.
    ///
    /// # Errors
    /// Its standard error, when it failed.
    pub fn tool(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(self.programs.join(program))
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("KUBECONFIG", self.files.of_user("admin"))
            .env("HOME", self.folder())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// A kubeconfig of somebody who may do everything.
    pub fn kubeconfig_of_admin(&self) -> PathBuf {
        self.files.of_user("admin")
    }

    /// A client that may do everything.
    pub fn cluster(&self) -> Cluster {
        Cluster::connect(&self.files.of_user("admin"))
    }

    /// The temporary folder; it goes with the control plane.
    pub fn folder(&self) -> &Path {
        self.shared.folder()
    }

    /// A kubeconfig for a service account, which may do what its roles say.
    pub fn kubeconfig_of(&self, namespace: &str, service_account: &str) -> PathBuf {
        let token = self.cluster().token(namespace, service_account);
        self.files.kubeconfig(service_account, &token, &self.server)
    }

    /// One request in a line, as JSON.
    pub fn audit_log(&self) -> PathBuf {
        self.files.audit_log()
    }

    pub fn api_server(&self) -> &Process {
        &self.api_server
    }

    pub fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// The same, for a server that stands before the API server.
    pub fn kubeconfig_through(&self, server: &str, namespace: &str, service_account: &str) -> PathBuf {
        let token = self.cluster().token(namespace, service_account);
        self.files.kubeconfig(&format!("{service_account}-through"), &token, server)
    }

    /// The address of the API server, and the certificate that it made for itself.
    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn certificate(&self) -> PathBuf {
        self.files.certificates().join("apiserver.crt")
    }

    /// A kubeconfig with a token, whoever's that is.
    pub fn kubeconfig_with(&self, name: &str, token: &str) -> PathBuf {
        self.files.kubeconfig(name, token, &self.server)
    }

    /// Starts another program that ends with the control plane.
    pub fn run(&self, name: &str, command: Command) -> Process {
        Process::start(name, command, &self.shared)
    }

    /// Panics when one of the programs has ended.
    pub fn must_run(&mut self) {
        let Self { kwok, scheduler, controller_manager, api_server, etcd, .. } = self;
        for process in [etcd, api_server, controller_manager, scheduler, kwok] {
            process.must_run();
        }
    }

    /// Copies the logs of all programs to a folder that stays.
    pub fn keep_logs(&self, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(self.folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }

    /// Without the default service account of a namespace, pods are refused.
    fn wait_for_service_accounts(&self) {
        let cluster = self.cluster();
        let begin = Instant::now();
        while cluster.get("/api/v1/namespaces/default/serviceaccounts/default").is_err() {
            assert!(begin.elapsed() < START_PATIENCE, "no service account: {}", self.controller_manager.last_lines());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Ports that nobody listens on now. All are taken before one is given back, so that no two are the same.
pub fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn wait_until_ready(api_server: &mut Process, files: &Files) {
    let begin = Instant::now();
    // It writes its certificate first, without which no client can be made.
    while !files.certificates().join("apiserver.crt").exists()
        || Cluster::connect(&files.of_user("admin")).text("/readyz").is_err()
    {
        api_server.must_run();
        assert!(begin.elapsed() < START_PATIENCE, "the API server is not ready:\n{}", api_server.last_lines());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn etcd_arguments(folder: &Path, port: u16, peer_port: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
    vec![
        flag("data-dir", folder.join("etcd").display()),
        flag("listen-client-urls", &client),
        flag("advertise-client-urls", &client),
        flag("listen-peer-urls", &peer),
        flag("initial-advertise-peer-urls", &peer),
        flag("initial-cluster", format!("default={peer}")),
        flag("log-level", "warn"),
        // Its data goes with the test.
        flag("unsafe-no-fsync", true),
    ]
}

fn api_server_arguments(files: &Files, etcd_port: u16, port: u16) -> Vec<String> {
    let key = files.service_account_key();
    vec![
        flag("etcd-servers", format!("http://127.0.0.1:{etcd_port}")),
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        flag("secure-port", port),
        // Else it writes its address into the Service `kubernetes`, and loopback is no address for that.
        flag("endpoint-reconciler-type", "none"),
        flag("cert-dir", files.certificates().display()),
        flag("token-auth-file", files.tokens().display()),
        flag("anonymous-auth", false),
        flag("authorization-mode", "RBAC"),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", key.display()),
        flag("service-account-signing-key-file", key.display()),
        flag("service-cluster-ip-range", "10.96.0.0/16"),
        flag("audit-policy-file", files.audit_policy().display()),
        flag("audit-log-path", files.audit_log().display()),
    ]
}

fn controller_manager_arguments(files: &Files) -> Vec<String> {
    vec![
        flag("kubeconfig", files.of_user("kube-controller-manager").display()),
        flag("secure-port", 0),
        flag("leader-elect", false),
        flag("use-service-account-credentials", true),
        flag("service-account-private-key-file", files.service_account_key().display()),
        flag("root-ca-file", files.certificates().join("apiserver.crt").display()),
        flag("kube-api-qps", 500),
        flag("kube-api-burst", 1000),
        flag("flex-volume-plugin-dir", files.plugins().display()),
    ]
}

fn scheduler_arguments(files: &Files) -> Vec<String> {
    vec![flag("config", files.scheduler().display()), flag("secure-port", 0)]
}

fn kwok_arguments(files: &Files) -> Vec<String> {
    vec![
        flag("kubeconfig", files.of_user("kwok").display()),
        flag("manage-all-nodes", true),
        flag("node-lease-duration-seconds", 40),
        flag("cidr", "10.244.0.0/16"),
        flag("node-ip", "127.0.0.1"),
    ]
}
