//! Windows Server 2019, 2022, 2025: PowerShell of the class, then the script that joins the cluster.
//!
//! Source: `Start-EKSBootstrap.ps1` of the EKS images; EC2Launch, which runs what stands between the tags.

use cutlist_api::ec2_node_class::AmiFamily;

use super::kubelet::{Arguments, plain};
use super::{Bootstrap, Finding, FindingCode, UserDataError, custom};

/// Tags of EC2Launch. Either of these ends ours, wherever it stands.
const OWN_TAGS: [&str; 2] = ["<powershell>", "</powershell>"];

/// Those that a line may begin with where they are meant as tags.
const OTHER_TAGS: [&str; 5] = ["<script>", "<persist>", "<detach>", "<runaslocalsystem>", "<powershellarguments>"];

pub(super) fn render(
    family: AmiFamily,
    bootstrap: &Bootstrap,
    findings: &mut Vec<Finding>,
) -> Result<String, UserDataError> {
    if bootstrap.instance_store_policy.is_some() {
        let text = "instanceStorePolicy has no effect on Windows, which makes no volume of local disks".to_owned();
        findings.push(Finding::new(FindingCode::WithoutEffect, None, text));
    }
    let arguments = Arguments::read(family, bootstrap)?;
    let cluster = &bootstrap.cluster;
    let quoted = |what: &str, text: &str| plain(what, text).map(|text| format!("'{text}'"));
    let mut call = format!(
        "& $EKSBootstrapScriptFile -EKSClusterName {} -APIServerEndpoint {}",
        quoted("the name of the cluster", &cluster.name)?,
        quoted("the endpoint of the cluster", &cluster.endpoint)?
    );
    if let Some(authority) = &cluster.certificate_authority {
        call.push_str(&format!(" -Base64ClusterCA {}", quoted("the certificate authority of the cluster", authority)?));
    }
    call.push_str(&format!(" -KubeletExtraArgs '{}'", arguments.flags(bootstrap)?.join(" ")));
    if let Some(address) = arguments.cluster_dns {
        call.push_str(&format!(" -DNSClusterIP '{address}'"));
    }
    let mut lines = vec!["<powershell>"];
    if let Some(text) = custom(bootstrap) {
        refuse_tags(text)?;
        lines.push(text);
    }
    lines.push("[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"");
    lines.push(&call);
    lines.push("</powershell>");
    Ok(lines.join("\n"))
}

fn refuse_tags(text: &str) -> Result<(), UserDataError> {
    for (index, line) in text.lines().enumerate() {
        let lower = line.to_lowercase();
        let own = OWN_TAGS.iter().find(|tag| lower.contains(*tag));
        let other = || OTHER_TAGS.iter().find(|tag| lower.trim_start().starts_with(*tag));
        if let Some(tag) = own.or_else(other) {
            let message = format!("`{tag}`: all of the text runs inside <powershell>, so leave the tags out");
            return Err(UserDataError::malformed(index + 1, message));
        }
    }
    Ok(())
}
