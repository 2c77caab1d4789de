//! Whatever a class says: no panic, an error has a line that exists, and what comes out is read as what was put in.

use std::collections::BTreeMap;

use cutlist::api::ec2_node_class::{AmiFamily, InstanceStorePolicy};
use cutlist::core::catalog::user_data::{Bootstrap, Cluster, UserDataError, render};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use proptest::sample::select;
use toml_edit::{DocumentMut, Item};

use crate::machine;

const FAMILIES: [AmiFamily; 7] = [
    AmiFamily::AL2,
    AmiFamily::AL2023,
    AmiFamily::Bottlerocket,
    AmiFamily::Custom,
    AmiFamily::Windows2019,
    AmiFamily::Windows2022,
    AmiFamily::Windows2025,
];

/// Lines that mean something to one of the readers.
const LINES: [&str; 30] = [
    "",
    " ",
    "#!/bin/bash",
    "# a comment",
    "echo hello",
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed; boundary=\"b\"",
    "Content-Type: multipart/mixed; boundary=\"//\"",
    "Content-Type: text/x-shellscript",
    "Content-Type: application/node.eks.aws",
    "Content-Transfer-Encoding: base64",
    "--b",
    "--b--",
    "--//",
    "--//--",
    "---",
    "apiVersion: node.eks.aws/v1alpha1",
    "kind: NodeConfig",
    "spec: {kubelet: {config: {maxPods: 1}, flags: [--v=2]}}",
    "#cloud-config",
    "<powershell>",
    "[settings]",
    "[settings.kubernetes]",
    "settings.kubernetes.max-pods = 1",
    "a = 1",
    "é = \"é\"",
    "\"",
    "{ [",
    "\ta: b",
    "key: &a [*a]",
];

/// Lines of settings; about half of all sequences parse.
const SETTINGS: [&str; 22] = [
    "# a comment",
    "",
    "[settings]",
    "[settings.kubernetes]",
    "[settings.kubernetes.node-labels]",
    "[settings.kubernetes.node-taints]",
    "[settings.kubernetes.eviction-hard]",
    "[settings.bootstrap-commands.000-mount-instance-storage]",
    "[settings.bootstrap-commands.a]",
    "[settings.ntp]",
    "[[settings.list]]",
    "settings.kubernetes.max-pods = 1",
    "settings.kubernetes.node-labels.a = \"b\"",
    "settings.kubernetes.node-labels = { \"a/b\" = \"c\" }",
    "settings = { kubernetes = { cluster-name = \"x\" }, ntp = { time-servers = [\"a\"] } }",
    "kubernetes = { max-pods = 3, node-taints = { a = [\"b:c\"] } }",
    "kubernetes.kube-reserved.cpu = \"1\"",
    "max-pods = 5 # five",
    "node-labels.x = \"y\"",
    "x = \"y\"",
    "motd = '''a\nb'''",
    "unheard-of = [1, 2]",
];

fn bootstrap(user_data: String, uses_local_disks: bool) -> Bootstrap {
    Bootstrap {
        cluster: Cluster {
            name: "demo".to_owned(),
            endpoint: "https://demo.example.com".to_owned(),
            certificate_authority: Some("Y2EK".to_owned()),
            service_cidr: Some("10.100.0.0/16".to_owned()),
            dns_address: Some("10.100.0.10".parse().unwrap()),
        },
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        kubelet: BTreeMap::from([("kubeReserved".to_owned(), serde_json::json!({ "cpu": "100m" }))]),
        max_pods: 58,
        instance_store_policy: uses_local_disks.then_some(InstanceStorePolicy::RAID0),
        user_data: Some(user_data),
        ..Bootstrap::default()
    }
}

fn text(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    let ends = select(vec!["\n", "\n", "\r\n"]);
    (vec(select(lines), 0..12), ends, any::<bool>())
        .prop_map(|(lines, end, is_ended)| lines.join(end) + if is_ended { end } else { "" })
}

/// The values below `settings` that are not ours to set, by path.
fn of_others(document: &DocumentMut) -> BTreeMap<String, String> {
    fn collect(path: &str, item: &Item, found: &mut BTreeMap<String, String>) {
        let is_ours = ["node-taints", "kube-reserved"].iter().any(|key| path.ends_with(key));
        match item.as_table_like() {
            Some(_) if is_ours => {}
            Some(table) => table.iter().for_each(|(key, item)| collect(&format!("{path}/{key}"), item, found)),
            None => drop(found.insert(path.to_owned(), item.to_string().trim().to_owned())),
        }
    }
    let mut found = BTreeMap::new();
    collect("", document.as_item(), &mut found);
    let ours = ["cluster-name", "max-pods", "api-server", "cluster-dns-ip", "cluster-certificate"];
    found.retain(|path, _| {
        let key = path.rsplit('/').next().unwrap();
        let is_ours = path.starts_with("/settings/kubernetes/") && ours.contains(&key);
        !is_ours && !path.contains("000-mount")
    });
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_text_is_taken_or_refused_with_its_line(text in text(&LINES), family in select(FAMILIES.to_vec())) {
        let bootstrap = bootstrap(text.clone(), false);
        match render(family, &bootstrap) {
            Ok(rendered) if family == AmiFamily::Custom => assert_eq!(rendered.text, text),
            Ok(rendered) => {
                let node = machine::boot(family, &rendered.text);
                let asked = machine::asked_for(&bootstrap);
                assert_eq!(node.without_labels_of_the_class(&asked), asked);
            }
            Err(UserDataError::Malformed { line, message }) => {
                assert!((1..=text.lines().count().max(1)).contains(&line), "{line}: {message}");
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn any_characters_are_taken_or_refused(text in any::<String>(), family in select(FAMILIES.to_vec())) {
        drop(render(family, &bootstrap(text, true)));
    }

    #[test]
    fn settings_of_the_class_stay(text in text(&SETTINGS), uses_local_disks in any::<bool>()) {
        let bootstrap = bootstrap(text.clone(), uses_local_disks);
        let Ok(rendered) = render(AmiFamily::Bottlerocket, &bootstrap) else { return Ok(()) };
        let node = machine::boot(AmiFamily::Bottlerocket, &rendered.text);
        let asked = machine::asked_for(&bootstrap);
        assert_eq!(node.without_labels_of_the_class(&asked), asked);
        let after = of_others(&rendered.text.parse().unwrap());
        for (path, value) in of_others(&text.parse().unwrap()) {
            assert_eq!(after.get(&path), Some(&value), "{path} of\n{text}\nin\n{}", rendered.text);
        }
        assert!(rendered.text.contains("[settings.bootstrap-commands.000-mount-instance-storage]") || !uses_local_disks);
    }
}
