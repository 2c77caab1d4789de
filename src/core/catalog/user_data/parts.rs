//! `spec.userData` as parts, on the families that cloud-init starts: an archive, one text of a kind that cloud-init knows by its first line,
//! or a NodeConfig where that is read.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_yaml::Value;

use super::mime_parts::{self, MimePart, NODE_CONFIG, SHELL_SCRIPT};
use super::{Bootstrap, Finding, FindingCode, UserDataError, custom};

/// What a text is by how it begins, the longer before the shorter. Source: cloud-init, user data formats.
const KINDS: [(&str, &str); 10] = [
    ("#!", SHELL_SCRIPT),
    ("#cloud-config-archive", "text/cloud-config-archive"),
    ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
    ("#cloud-config", "text/cloud-config"),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#upstart-job", "text/upstart-job"),
    ("#include-once", "text/x-include-once-url"),
    ("#include", "text/x-include-url"),
    ("#part-handler", "text/part-handler"),
    ("## template: jinja", "text/jinja2"),
];

/// The parts of the class; none where it adds nothing. `reads_node_configs`: nodeadm is there.
pub(super) fn of_class(
    bootstrap: &Bootstrap,
    reads_node_configs: bool,
    findings: &mut Vec<Finding>,
) -> Result<Vec<MimePart>, UserDataError> {
    // Archives and scripts that were written on Windows; neither cloud-init nor a shell takes their line ends.
    let Some(text) = custom(bootstrap).map(|text| text.replace("\r\n", "\n")) else { return Ok(Vec::new()) };
    let parts = if mime_parts::is_archive(&text) {
        mime_parts::read(&text, findings)?
    } else {
        one_part(&text, reads_node_configs, findings)?.into_iter().collect()
    };
    for part in &parts {
        let Some(text) = part.text()? else { continue };
        match part.content_type().as_str() {
            "text/x-shellscript" if !text.starts_with("#!") => {
                let said = if stands_for_another(&text) {
                    "the text is in base64: write it as it is, it is encoded when nodes are launched"
                } else {
                    "the script has no first line such as `#!/bin/bash`, without which it is not started"
                };
                let code = FindingCode::NoInterpreter;
                findings.push(Finding::new(code, Some(part.line), said.to_owned()));
            }
            NODE_CONFIG if reads_node_configs => drop(node_config_of(part)?),
            _ => {}
        }
    }
    Ok(parts)
}

/// Whether a text is another one in base64, as EC2's own API takes it: a script, an archive, settings, or something compressed.
fn stands_for_another(text: &str) -> bool {
    const STARTS: [&[u8]; 6] = [b"#!", b"#cloud", b"MIME-Version:", b"Content-Type:", b"apiVersion:", &[0x1f, 0x8b]];
    let digits: String = text.split_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(digits).unwrap_or_default();
    STARTS.iter().any(|start| bytes.starts_with(start))
}

fn one_part(
    text: &str,
    reads_node_configs: bool,
    findings: &mut Vec<Finding>,
) -> Result<Option<MimePart>, UserDataError> {
    if let Some((_, content_type)) = KINDS.iter().find(|(start, _)| text.starts_with(start)) {
        return Ok(Some(MimePart::new(content_type, text)));
    }
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        let text = "there are comments alone, so it is left out".to_owned();
        findings.push(Finding::new(FindingCode::NothingInIt, Some(1), text));
        return Ok(None);
    }
    if !reads_node_configs {
        return Ok(Some(MimePart::new(SHELL_SCRIPT, text)));
    }
    let is_mapping = match document(text, 1) {
        Ok(value) => value.is_mapping(),
        Err(error) if looks_like_a_node_config(text) => return Err(error),
        Err(_) => false,
    };
    // Of what is a mapping, and no NodeConfig, the reader says so.
    Ok(Some(MimePart::new(if is_mapping { NODE_CONFIG } else { SHELL_SCRIPT }, text)))
}

fn looks_like_a_node_config(text: &str) -> bool {
    text.lines().any(|line| ["apiVersion:", "kind:", "spec:"].iter().any(|key| line.starts_with(key)))
}

/// The NodeConfig of a part; `None` where it can not be read here. In base64 it has one place, that of the part.
pub(super) fn node_config_of(part: &MimePart) -> Result<Option<Value>, UserDataError> {
    let Some(text) = part.text()? else { return Ok(None) };
    let found = node_config(&text, part.line).map_err(|error| match (error, &text) {
        (UserDataError::Malformed { message, .. }, Cow::Owned(_)) => UserDataError::malformed(part.line, message),
        (error, _) => error,
    });
    found.map(Some)
}

/// The one document of a NodeConfig whose text begins at this line.
fn node_config(text: &str, line: usize) -> Result<Value, UserDataError> {
    let value = document(text, line)?;
    let is = |key: &str, expected: &dyn Fn(&str) -> bool| value.get(key).and_then(Value::as_str).is_some_and(expected);
    if is("kind", &|kind| kind == "NodeConfig") && is("apiVersion", &|version| version.starts_with("node.eks.aws/")) {
        return Ok(value);
    }
    let message = "this is no NodeConfig: that has `apiVersion: node.eks.aws/v1alpha1` and `kind: NodeConfig`; a script \
                   begins with `#!`, and cloud-init's YAML with `#cloud-config`";
    Err(UserDataError::malformed(line, message))
}

fn document(text: &str, line: usize) -> Result<Value, UserDataError> {
    let malformed = |error: &serde_yaml::Error| {
        // The end of the text may be a line behind the last one.
        let last = text.lines().count().max(1);
        let at = error.location().map_or(1, |location| location.line().clamp(1, last));
        let text = error.to_string();
        // Its own places are counted in the part.
        let cause = text.split(" at line ").next().unwrap_or_default();
        UserDataError::malformed(line + at - 1, format!("the YAML is not understood: {cause}"))
    };
    let mut documents = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let value = Value::deserialize(document).map_err(|error| malformed(&error))?;
        // Behind a last `---` stands nothing that could be lost.
        if value.is_null() && !documents.is_empty() {
            continue;
        }
        documents.push(value);
        if documents.len() > 1 {
            let message = "nodeadm reads only the first YAML document of a part: give each a part of its own";
            return Err(UserDataError::malformed(line + start_of_second(text), message));
        }
    }
    Ok(documents.pop().unwrap_or(Value::Null))
}

/// Lines before the marker behind which the second document stands.
fn start_of_second(text: &str) -> usize {
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#') && line.trim_end() != "---";
    let first = text.lines().position(is_content).unwrap_or(0);
    let markers = text.lines().enumerate().skip(first);
    markers.filter(|(_, line)| line.starts_with("---")).map(|(index, _)| index).next().unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, reads_node_configs: bool) -> Result<(Vec<MimePart>, Vec<Finding>), UserDataError> {
        let bootstrap = Bootstrap { user_data: Some(text.to_owned()), ..Bootstrap::default() };
        let mut findings = Vec::new();
        of_class(&bootstrap, reads_node_configs, &mut findings).map(|parts| (parts, findings))
    }

    fn kind(text: &str, reads_node_configs: bool) -> String {
        of(text, reads_node_configs).unwrap().0[0].content_type()
    }

    #[test]
    fn a_text_is_what_it_begins_with() {
        for reads_node_configs in [false, true] {
            for (text, expected) in [
                ("#!/bin/bash\necho hello", "text/x-shellscript"),
                ("#!/bin/bash\n# nothing else", "text/x-shellscript"),
                ("#!/bin/bash\necho \"a: b\"", "text/x-shellscript"),
                ("#cloud-config\nruncmd: []", "text/cloud-config"),
                ("#cloud-config-archive\n[]", "text/cloud-config-archive"),
                ("#cloud-boothook\nx", "text/cloud-boothook"),
                ("#include-once\nhttps://example.com", "text/x-include-once-url"),
                ("#include\nhttps://example.com", "text/x-include-url"),
                ("## template: jinja\n#cloud-config", "text/jinja2"),
                ("echo hello", "text/x-shellscript"),
            ] {
                assert_eq!(kind(text, reads_node_configs), expected, "{text}");
            }
        }
        let config = "# ours\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n";
        assert_eq!(kind(config, true), NODE_CONFIG);
        assert_eq!(kind(config, false), "text/x-shellscript");
        assert_eq!(of(config, false).unwrap().1[0].code, FindingCode::NoInterpreter);
    }

    #[test]
    fn what_could_not_run_is_named() {
        assert_eq!(of("echo hello\n", true).unwrap().1[0].code, FindingCode::NoInterpreter);
        for text in ["IyEvYmluL2Jhc2gKZWNobyBoaQo=", "H4sIAAAAAAACA1NW1E/KzNNPSizO\n4AIANz9SBgwAAAA=\n"] {
            assert!(of(text, true).unwrap().1[0].text.contains("base64"), "{text}");
        }
        let (parts, findings) = of("# only\n\n  # comments\n", true).unwrap();
        assert_eq!((parts.len(), findings[0].code), (0, FindingCode::NothingInIt));
        assert_eq!(of("  \n\t\n", true).unwrap(), (vec![], vec![]));
    }

    #[test]
    fn a_node_config_is_one_and_parses() {
        let error = |text: &str| of(text, true).unwrap_err().to_string();
        assert!(error("a: b\n").starts_with("spec.userData:1: this is no NodeConfig"));
        assert!(error("apiVersion: v1\nkind: ConfigMap\n").contains("this is no NodeConfig"));
        let unbalanced = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {\n";
        assert!(error(unbalanced).contains("the YAML is not understood"));
        let twice = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nkind: NodeConfig\n";
        assert!(error(twice).contains("not understood"), "a key twice");
        let two = "---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n---\nkind: NodeConfig\n";
        assert!(error(two).starts_with("spec.userData:4: nodeadm reads only the first"), "{}", error(two));
        for behind_it in ["---\n", "...\n", "\n---\n# nothing\n"] {
            let config = format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n{behind_it}");
            assert_eq!(kind(&config, true), NODE_CONFIG, "{config}");
        }
        let archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: \
                       application/node.eks.aws\n\nkind: [\n--b--\n";
        assert!(error(archive).starts_with("spec.userData:8: ") || error(archive).starts_with("spec.userData:7: "));
        assert!(of(archive, false).is_ok(), "nobody reads it there");
        let encoded = |body: &str| {
            format!(
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: application/node.eks.aws\n\
                 Content-Transfer-Encoding: base64\n\n{body}\n--b--\n"
            )
        };
        assert!(error(&encoded("YTogYg==")).contains("this is no NodeConfig"), "nodeadm decodes it");
        assert!(error(&encoded("!!!")).contains("is in base64, and is not"));
    }

    #[test]
    fn line_ends_of_windows_are_not_kept() {
        assert_eq!(of("#!/bin/sh\r\necho\r\n", false).unwrap().0[0].body, "#!/bin/sh\necho\n");
    }
}
