//! Moto's server, and calls to it without the SDK: what a test puts into an account beforehand.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::proxy::encoded;

pub const REGION: &str = "us-east-1";

/// A server, for as long as this lives.
pub struct Moto {
    process: Child,
    /// `127.0.0.1:1234`
    pub address: String,
}

impl Moto {
    /// `programs`: a virtual environment with moto, as `tests/aws/install` makes it.
    pub fn start(programs: &Path, images: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let port = address.rsplit(':').next().unwrap();
        let process = Command::new(programs.join("bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", port])
            .env("MOTO_AMIS_PATH", images)
            .env("MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("moto_server in {}: {error}; tests/aws/install makes it", programs.display())
            });
        let began = Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(60), "moto does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        Self { process, address }
    }

    pub fn account<'m>(&'m self, id: &'m str) -> Raw<'m> {
        Raw { moto: self, account: id }
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// One account of it.
pub struct Raw<'m> {
    moto: &'m Moto,
    account: &'m str,
}

/// A status and a body.
pub struct Said {
    pub status: u16,
    pub body: String,
}

impl Said {
    /// What stands in these elements, wherever they are.
    pub fn all(&self, element: &str) -> Vec<String> {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        let parts = self.body.split(&open).skip(1);
        parts.filter_map(|part| Some(part.split_once(&close)?.0.to_owned())).collect()
    }

    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.body);
        self
    }
}

impl Raw<'_> {
    /// A call of a service that takes forms.
    pub fn form(&self, service: &str, action: &str, fields: &[(&str, &str)]) -> Said {
        let version = if service == "iam" { "2010-05-08" } else { "2016-11-15" };
        let mut all = vec![("Action".to_owned(), action.to_owned()), ("Version".to_owned(), version.to_owned())];
        all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.send("POST", "/", service, &[("content-type", "application/x-www-form-urlencoded")], &encoded(&all))
    }

    pub fn ec2(&self, action: &str, fields: &[(&str, &str)]) -> Said {
        self.form("ec2", action, fields)
    }

    /// A call of a service that takes JSON.
    pub fn json(&self, service: &str, target: &str, body: &serde_json::Value) -> Said {
        let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target)];
        self.send("POST", "/", service, &headers, &body.to_string())
    }

    pub fn send(&self, method: &str, path: &str, service: &str, headers: &[(&str, &str)], body: &str) -> Said {
        let mut connection = TcpStream::connect(&self.moto.address).unwrap();
        let host = format!("{service}.{REGION}.amazonaws.com");
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // Nobody checks the signature; the service is read from its scope.
        let scope = format!("any/20260101/{REGION}/{service}/aws4_request");
        head.push_str(&format!(
            "authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0\r\n"
        ));
        head.push_str(&format!(
            "x-moto-account-id: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.account,
            body.len()
        ));
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Said { status, body: body.to_owned() }
    }

    /// A cluster, its subnets and groups with the tag of discovery, and a role. Returns the subnets by zone.
    pub fn furnish(&self, cluster: &str) -> BTreeMap<String, String> {
        let listed = self.ec2("DescribeSubnets", &[]).ok();
        let subnets: BTreeMap<String, String> =
            listed.all("availabilityZone").into_iter().zip(listed.all("subnetId")).collect();
        let vpc = listed.all("vpcId").remove(0);
        let group =
            self.ec2("CreateSecurityGroup", &[("GroupName", "nodes"), ("GroupDescription", "nodes"), ("VpcId", &vpc)]);
        let group = group.ok().all("groupId").remove(0);
        for resource in subnets.values().chain([&group]) {
            let tag = [
                ("ResourceId.1", resource.as_str()),
                ("Tag.1.Key", "karpenter.sh/discovery"),
                ("Tag.1.Value", cluster),
            ];
            self.ec2("CreateTags", &tag).ok();
        }
        let trust = r#"{"Version":"2012-10-17","Statement":[]}"#;
        self.form("iam", "CreateRole", &[("RoleName", "nodes"), ("AssumeRolePolicyDocument", trust)]).ok();
        let made = serde_json::json!({ "name": cluster, "version": "1.34", "roleArn": format!("arn:aws:iam::{}:role/cluster", self.account),
            "resourcesVpcConfig": { "subnetIds": subnets.values().collect::<Vec<_>>() } });
        self.send("POST", "/clusters", "eks", &[("content-type", "application/json")], &made.to_string()).ok();
        subnets
    }

    /// Instances that run or may, by id, with their types.
    pub fn running(&self) -> BTreeMap<String, String> {
        let filter = [
            ("Filter.1.Name", "instance-state-name"),
            ("Filter.1.Value.1", "pending"),
            ("Filter.1.Value.2", "running"),
        ];
        let mut running = BTreeMap::new();
        let mut token = String::new();
        loop {
            let mut fields = filter.to_vec();
            if !token.is_empty() {
                fields.push(("NextToken", &token));
            }
            let said = self.ec2("DescribeInstances", &fields).ok();
            running.extend(said.all("instanceId").into_iter().zip(said.all("instanceType")));
            match said.all("nextToken").into_iter().next().filter(|token| !token.is_empty()) {
                Some(next) => token = next,
                None => return running,
            }
        }
    }
}
