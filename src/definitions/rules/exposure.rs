//! CL0477 to CL0482: classes that EC2 makes nodes of, and that open more than is meant, or get less.
//! Sources: the EC2 user guide, "Use IMDS" and "Amazon EBS encryption"; Karpenter's AWS provider, `EC2NodeClass`; the recipes of EKS' images.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::Rule;
use super::kubelet_types::CLASSES;
use super::launching::line_of_block;
use crate::core::model::Quantity;
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};

pub static SECRET: Rule = Rule::document(
    "CL0477",
    "secret-in-user-data",
    Warning,
    "User data has no password, key or token in it: every pod of a node can read it.",
    CLASSES,
    secrets,
);
pub static SMALLER_THAN_IMAGE: Rule = Rule::document(
    "CL0478",
    "volume-below-image",
    Warning,
    "The root volume is as large as what the image is made of.",
    CLASSES,
    smaller_than_image,
);
pub static WITHOUT_TOKENS: Rule = Rule::document(
    "CL0479",
    "metadata-without-tokens",
    Note,
    "The metadata service asks for a token: what only sends requests on behalf of others gets no credentials of the node.",
    CLASSES,
    without_tokens,
);
pub static UNENCRYPTED: Rule =
    Rule::document("CL0480", "unencrypted-volume", Note, "Volumes say that they are encrypted.", CLASSES, unencrypted);
pub static PUBLIC_ADDRESS: Rule = Rule::document(
    "CL0481",
    "public-address",
    Note,
    "Nodes have no public address unless they need one.",
    CLASSES,
    public_address,
);
pub static EVERY_TAG: Rule = Rule::document(
    "CL0482",
    "selects-everything",
    Warning,
    "A term selects by some value: one that takes every value also takes what is of other clusters.",
    CLASSES,
    every_tag,
);

pub static RULES: &[&Rule] =
    &[&SECRET, &SMALLER_THAN_IMAGE, &WITHOUT_TOKENS, &UNENCRYPTED, &PUBLIC_ADDRESS, &EVERY_TAG];

const USER_DATA_AT: &str = "/spec/userData";
const MAPPINGS: &str = "/spec/blockDeviceMappings";

/// What a secret looks like, and what it is. Names are looked for in lower case.
struct Looks {
    what: &'static str,
    pattern: Regex,
    is_of_lower_case: bool,
}

/// Forms that their makers chose so that they are found, and names that nothing else has.
static LOOKS: LazyLock<Vec<Looks>> = LazyLock::new(|| {
    let forms = [
        ("an access key of AWS", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", false),
        ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----", false),
        ("a token of GitHub", r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{22})", false),
        ("a token of GitLab", r"\bglpat-[0-9A-Za-z_-]{20}", false),
        ("a signed token", r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.", false),
        // The secret itself stands behind the name, and not where the secret is or what makes it.
        (
            "a secret",
            r#"(?:password|passwd|secret_access_key|secret_?key|client_?secret|api_?key|auth_?token|access_?token)["']?\s*[=:]\s*["']?[^\s"'$<>`(){}\[\]/*%|&;]{8}"#,
            true,
        ),
    ];
    let looks = |(what, pattern, is_of_lower_case)| {
        let pattern = Regex::new(pattern).ok()?;
        Some(Looks { what, pattern, is_of_lower_case })
    };
    forms.into_iter().filter_map(looks).collect()
});

/// What stands in the place of a secret, or says where it is.
const STANDS_FOR: [&str; 10] =
    ["replace", "your", "change", "xxxx", "placeholder", "redacted", "arn:", "http", "file:", "ssm"];

fn secret_in(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let is_found = |looks: &&Looks| {
        let text = if looks.is_of_lower_case { lower.as_str() } else { line };
        let found = looks.pattern.find(text).map(|found| found.as_str());
        found.is_some_and(|found| !looks.is_of_lower_case || !STANDS_FOR.iter().any(|word| found.contains(word)))
    };
    LOOKS.iter().find(is_found).map(|looks| looks.what)
}

fn secrets(document: &Document) -> Vec<Finding> {
    let Some(text) = document.str(USER_DATA_AT) else { return Vec::new() };
    let found = text.lines().zip(1..).filter_map(|(line, number)| Some((number, secret_in(line)?)));
    let finding = |(number, what): (usize, &str)| {
        let message = format!("the user data has {what} in it, and every pod of a node can ask for its user data");
        let mut finding = Finding::at(&SECRET, document, USER_DATA_AT, FindingPlace::Key, message);
        finding.span = line_of_block(document, number).unwrap_or(finding.span);
        finding.hint("let the node fetch it with its role, such as from Secrets Manager; and replace what stood here, since it is in Git")
    };
    found.map(finding).collect()
}

/// The least size of the root volume of images that AWS makes for EKS, in GiB, by the family of an alias and the device.
const IMAGES: [(&str, &str, i64); 6] = [
    ("al2", "/dev/xvda", 4),
    ("al2023", "/dev/xvda", 20),
    ("bottlerocket", "/dev/xvda", 2),
    ("windows2019", "/dev/sda1", 50),
    ("windows2022", "/dev/sda1", 50),
    ("windows2025", "/dev/sda1", 50),
];

fn smaller_than_image(document: &Document) -> Vec<Finding> {
    const GIBIBYTE: i64 = 1 << 30;
    let alias = document.str("/spec/amiSelectorTerms/0/alias").unwrap_or_default();
    let family = alias.split('@').next().unwrap_or_default();
    let mut findings = Vec::new();
    for (mapping, value) in document.items(MAPPINGS) {
        let device = value.get("deviceName").and_then(Value::as_str).unwrap_or_default();
        let least = IMAGES.iter().find(|(of, at, _)| (*of, *at) == (family, device)).map(|(.., least)| *least);
        let at = format!("{mapping}/ebs/volumeSize");
        let size = document.str(&at).and_then(|size| size.parse::<Quantity>().ok());
        let (Some(least), Some(size)) = (least, size) else { continue };
        // Karpenter asks for whole GiB, rounded up.
        if size.units().saturating_add(GIBIBYTE - 1) / GIBIBYTE < least {
            let message =
                format!("images of {family} have a root volume of {least}Gi: EC2 launches nothing with a smaller one");
            let finding = Finding::at(&SMALLER_THAN_IMAGE, document, &at, FindingPlace::Value, message);
            findings.push(finding.hint(format!("write `{least}Gi` or more")));
        }
    }
    findings
}

fn without_tokens(document: &Document) -> Vec<Finding> {
    let at = "/spec/metadataOptions/httpTokens";
    if document.str(at) != Some("optional") || document.str("/spec/metadataOptions/httpEndpoint") == Some("disabled") {
        return Vec::new();
    }
    let message = "the metadata service answers without a token (IMDSv1): who makes a pod fetch an address gets the credentials of the node";
    let finding = Finding::at(&WITHOUT_TOKENS, document, at, FindingPlace::Value, message);
    vec![finding.hint("write `required`, which is also what stands there if it is left out")]
}

fn unencrypted(document: &Document) -> Vec<Finding> {
    let of_mapping = |(mapping, value): (String, &Value)| {
        let ebs = value.get("ebs").and_then(Value::as_object)?;
        let (at, place, message) = match ebs.get("encrypted").map(Value::as_bool) {
            Some(Some(false)) => (
                format!("{mapping}/ebs/encrypted"),
                FindingPlace::Value,
                "the volume is not encrypted, unless the account encrypts all",
            ),
            // An encrypted snapshot makes an encrypted volume.
            None if !ebs.contains_key("snapshotID") => (
                format!("{mapping}/ebs"),
                FindingPlace::Key,
                "whether the volume is encrypted, the account decides: Karpenter encrypts its own volumes, and not those that are written here",
            ),
            _ => return None,
        };
        Some(Finding::at(&UNENCRYPTED, document, &at, place, message))
    };
    let of_mapping = document.items(MAPPINGS).filter_map(of_mapping);
    of_mapping.map(|finding| finding.hint("write `encrypted: true`: it costs nothing")).collect()
}

fn public_address(document: &Document) -> Vec<Finding> {
    let at = "/spec/associatePublicIPAddress";
    if document.value.pointer(at).and_then(Value::as_bool) != Some(true) {
        return Vec::new();
    }
    let message =
        "every node gets a public address, which costs, and is reached from everywhere that its security groups allow";
    let finding = Finding::at(&PUBLIC_ADDRESS, document, at, FindingPlace::Value, message);
    vec![finding.hint("leave it out where the subnets have a NAT gateway, or endpoints of what the nodes need")]
}

fn every_tag(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (list, what) in
        [("/spec/subnetSelectorTerms", "subnets"), ("/spec/securityGroupSelectorTerms", "security groups")]
    {
        for (term, value) in document.items(list) {
            let tags = value.get("tags").and_then(Value::as_object).filter(|tags| !tags.is_empty());
            let takes_all = tags.is_some_and(|tags| tags.values().all(|value| value.as_str() == Some("*")));
            let others = ["id", "name"].iter().any(|field| value.get(*field).is_some());
            if takes_all && !others {
                let message =
                    format!("`*` is every value: these are {what} of all clusters in the region that have the tag");
                let first = document.members(&format!("{term}/tags")).next().map(|(at, ..)| at).unwrap_or(term);
                let finding = Finding::at(&EVERY_TAG, document, &first, FindingPlace::Value, message);
                findings.push(finding.hint("write the value that those of this cluster have, or select by `id`"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_where_they_are() {
        for (line, expected) in [
            ("export AWS_ACCESS_KEY_ID=AKIAABCDEFGHIJKLMNOP", Some("an access key of AWS")),
            ("-----BEGIN RSA PRIVATE KEY-----", Some("a private key")),
            ("-----BEGIN CERTIFICATE-----", None),
            ("AWS_SECRET_ACCESS_KEY=abcdefghijklmnopqrstuvwxyz0123456789ABCD", Some("a secret")),
            ("  password: \"correct-horse\"", Some("a secret")),
            ("DB_PASSWORD=$(aws secretsmanager get-secret-value --secret-id db)", None),
            ("DB_PASSWORD=${PASSWORD}", None),
            ("password: arn:aws:secretsmanager:us-east-1:111122223333:secret:db", None),
            ("api_key: REPLACE_ME", None),
            ("password-file: /etc/password", None),
            ("TOKEN=$(curl -X PUT http://169.254.169.254/latest/api/token)", None),
            ("curl -H \"X-aws-ec2-metadata-token: $TOKEN\"", None),
            ("passwd -l root", None),
            ("echo 'PasswordAuthentication no' >> /etc/ssh/sshd_config", None),
        ] {
            assert_eq!(secret_in(line), expected, "{line}");
        }
    }
}
