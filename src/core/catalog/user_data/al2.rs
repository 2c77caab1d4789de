//! Amazon Linux 2: a script that calls `bootstrap.sh`, behind the parts of the class.

use cutlist_api::ec2_node_class::{AmiFamily, InstanceStorePolicy};

use super::kubelet::{Arguments, plain};
use super::mime_parts::{self, MimePart, SHELL_SCRIPT};
use super::{Bootstrap, Finding, UserDataError, parts};

/// What the script says also goes to the log of the instance, where people look for it.
const LOGGED: &str = "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1";

pub(super) fn render(bootstrap: &Bootstrap, findings: &mut Vec<Finding>) -> Result<String, UserDataError> {
    let mut parts = parts::of_class(bootstrap, false, findings)?;
    parts.push(MimePart::new(SHELL_SCRIPT, &script(bootstrap)?));
    Ok(mime_parts::write(&parts))
}

/// Values stand alone behind the names of options, since `bootstrap.sh` does not take `=`.
fn script(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let arguments = Arguments::read(AmiFamily::AL2, bootstrap)?;
    let cluster = &bootstrap.cluster;
    let quoted = |what: &str, text: &str| plain(what, text).map(|text| format!("'{text}'"));
    let mut first = format!(
        "/etc/eks/bootstrap.sh {} --apiserver-endpoint {}",
        quoted("the name of the cluster", &cluster.name)?,
        quoted("the endpoint of the cluster", &cluster.endpoint)?
    );
    if let Some(authority) = &cluster.certificate_authority {
        first
            .push_str(&format!(" --b64-cluster-ca {}", quoted("the certificate authority of the cluster", authority)?));
    }
    let mut options = vec![first];
    if let Some(address) = arguments.cluster_dns {
        if address.is_ipv6() {
            options.push("--ip-family ipv6".to_owned());
        }
        options.push(format!("--dns-cluster-ip '{address}'"));
    } else if cluster.is_ipv6() {
        options.push("--ip-family ipv6".to_owned());
    }
    // Its own table of instance types does not know what the class says.
    options.push("--use-max-pods false".to_owned());
    options.push(format!("--kubelet-extra-args '{}'", arguments.flags(bootstrap)?.join(" ")));
    if bootstrap.instance_store_policy == Some(InstanceStorePolicy::RAID0) {
        options.push("--local-disks raid0".to_owned());
    }
    Ok(format!("#!/bin/bash -xe\n{LOGGED}\n{}", options.join(" \\\n")))
}
