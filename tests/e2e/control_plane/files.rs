//! The files that a control plane starts from.

use std::path::{Path, PathBuf};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use k8s_openapi::ByteString;
use serde_json::json;

/// Who may do everything: `system:masters` is above RBAC. The other users are the components, with the roles that
/// Kubernetes gives them.
pub const USERS: &[(&str, &str, &str)] = &[
    ("admin", "admin", "system:masters"),
    ("kwok", "kwok", "system:masters"),
    ("kube-controller-manager", "system:kube-controller-manager", ""),
    ("kube-scheduler", "system:kube-scheduler", ""),
];

/// Every request but the reading of leases and events, with who made it.
const AUDIT_POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: None
    nonResourceURLs: [/healthz*, /livez*, /readyz*, /version, /openapi*, /api*]
  - level: Metadata
";

const SCHEDULER: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  qps: 500
  burst: 1000
  kubeconfig: ";

pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Writes all of them, for an API server at `server`.
    pub fn write(folder: &Path, server: &str) -> Self {
        let files = Self { folder: folder.to_owned() };
        std::fs::create_dir(files.certificates()).unwrap();
        std::fs::create_dir(files.plugins()).unwrap();
        std::fs::write(files.service_account_key(), private_key()).unwrap();
        let mut tokens = String::new();
        for (name, user, group) in USERS {
            tokens.push_str(&format!("{name}-token,{user},{name},{group}\n"));
            files.kubeconfig(name, &format!("{name}-token"), server);
        }
        std::fs::write(files.tokens(), tokens).unwrap();
        std::fs::write(files.audit_policy(), AUDIT_POLICY).unwrap();
        let scheduler = format!("{SCHEDULER}{}\n", files.of_user("kube-scheduler").display());
        std::fs::write(files.scheduler(), scheduler).unwrap();
        files
    }

    /// Writes the kubeconfig of a user who has a token; gives its path.
    pub fn kubeconfig(&self, name: &str, token: &str, server: &str) -> PathBuf {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "clusters": [{ "name": "e2e", "cluster": {
                "server": server,
                // Made by the API server when it starts.
                "certificate-authority": self.certificates().join("apiserver.crt"),
            }}],
            "users": [{ "name": name, "user": { "token": token } }],
            "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": name } }],
        });
        let path = self.of_user(name);
        std::fs::write(&path, serde_yaml::to_string(&config).unwrap()).unwrap();
        path
    }

    pub fn of_user(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.kubeconfig"))
    }

    pub fn certificates(&self) -> PathBuf {
        self.folder.join("certificates")
    }

    /// The controller manager wants a folder for volume plugins that it can write to.
    pub fn plugins(&self) -> PathBuf {
        self.folder.join("plugins")
    }

    pub fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    pub fn service_account_key(&self) -> PathBuf {
        self.folder.join("service-account.key")
    }

    pub fn audit_policy(&self) -> PathBuf {
        self.folder.join("audit-policy.yaml")
    }

    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    pub fn scheduler(&self) -> PathBuf {
        self.folder.join("scheduler.yaml")
    }
}

/// An RSA key as PEM, with which the API server signs the tokens of service accounts.
fn private_key() -> String {
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    // In JSON, bytes are in Base64: the encoding of PEM as well.
    let encoded = serde_json::to_value(ByteString(der.as_ref().to_vec())).unwrap();
    let lines: Vec<String> = encoded.as_str().unwrap().as_bytes().chunks(64).map(text).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
