//! Bottlerocket: settings in TOML. Those of the class are kept as they were written, with comments and order, and ours are set in them.
//!
//! Source: Bottlerocket's documentation of its settings; `settings.bootstrap-commands` and `apiclient ephemeral-storage`.

mod check;
mod known;
mod version;

use std::collections::BTreeMap;

use toml_edit::{Array, Document, Item, Table, Value, value};

use cutlist_api::ec2_node_class::{AmiFamily, InstanceStorePolicy};

use super::kubelet::Arguments;
use super::{Bootstrap, Finding, UserDataError, custom, labels, taints};

pub use version::version_of;

/// The command that makes one volume of the local disks, before all others.
const STORAGE_COMMAND: &str = "000-mount-instance-storage";

/// What is bound to that volume where the image has no list of its own.
const BOUND_FOLDERS: [&str; 3] = ["/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"];

pub(super) fn render(bootstrap: &Bootstrap, findings: &mut Vec<Finding>) -> Result<String, UserDataError> {
    let ours = Ours::new(bootstrap, &Arguments::read(AmiFamily::Bottlerocket, bootstrap)?);
    let text = custom(bootstrap).unwrap_or_default();
    let parsed = Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| check::line_of(text, span.start));
        UserDataError::malformed(line, format!("the TOML is not understood: {}", error.message()))
    })?;
    check::read(parsed.as_table(), text, &ours, findings)?;
    let mut document = parsed.into_mut();
    ours.set(document.as_table_mut())?;
    Ok(document.to_string())
}

/// What is set below `settings`.
struct Ours {
    /// Of `kubernetes`, by key.
    values: Vec<(&'static str, Value)>,
    /// Of `kubernetes.node-labels`: those of the class stay beside them.
    node_labels: Vec<(String, Value)>,
    /// Tables of `kubernetes` that replace the class's: a node with other values than are reckoned with is not what was planned.
    tables: Vec<(&'static str, Vec<(String, Value)>)>,
    /// Of `bootstrap-commands`.
    storage_command: Option<Table>,
}

impl Ours {
    fn new(bootstrap: &Bootstrap, arguments: &Arguments) -> Self {
        let cluster = &bootstrap.cluster;
        let percent = |percent: Option<i64>| percent.map(|percent| percent.to_string().into());
        let values: [(&'static str, Option<Value>); 9] = [
            ("api-server", Some(cluster.endpoint.as_str().into())),
            ("cluster-certificate", cluster.certificate_authority.as_deref().map(Value::from)),
            ("cluster-name", Some(cluster.name.as_str().into())),
            ("cluster-dns-ip", arguments.cluster_dns.map(|address| address.to_string().into())),
            ("max-pods", Some(bootstrap.max_pods.into())),
            ("eviction-max-pod-grace-period", arguments.eviction_max_pod_grace_period.map(Value::from)),
            // Bottlerocket takes these two as text.
            ("image-gc-high-threshold-percent", percent(arguments.image_gc_high_threshold_percent)),
            ("image-gc-low-threshold-percent", percent(arguments.image_gc_low_threshold_percent)),
            ("cpu-cfs-quota-enforced", arguments.cpu_cfs_quota.map(Value::from)),
        ];
        let amounts = [
            ("system-reserved", &arguments.system_reserved),
            ("kube-reserved", &arguments.kube_reserved),
            ("eviction-hard", &arguments.eviction_hard),
            ("eviction-soft", &arguments.eviction_soft),
            ("eviction-soft-grace-period", &arguments.eviction_soft_grace_period),
        ];
        let stated = amounts.into_iter().filter(|(_, amounts)| !amounts.is_empty());
        let entries = |amounts: &BTreeMap<String, String>| {
            amounts.iter().map(|(key, amount)| (key.clone(), Value::from(amount.as_str()))).collect()
        };
        let mut tables: Vec<(&'static str, Vec<(String, Value)>)> =
            stated.map(|(name, amounts)| (name, entries(amounts))).collect();
        tables.push(("node-taints", node_taints(bootstrap)));
        let labels = labels::of_node(bootstrap).into_iter();
        let uses_local_disks = bootstrap.instance_store_policy == Some(InstanceStorePolicy::RAID0);
        Self {
            values: values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
            node_labels: labels.map(|(key, label)| (key.to_owned(), label.into())).collect(),
            tables,
            storage_command: uses_local_disks.then(|| storage_command(bootstrap.image_version.as_deref())),
        }
    }

    fn set(self, root: &mut Table) -> Result<(), UserDataError> {
        let settings = table_in(root, "settings")?;
        if settings.is_empty() {
            settings.set_implicit(true);
        }
        let kubernetes = table_in(settings, "kubernetes")?;
        for (key, ours) in self.values {
            put(kubernetes, key, value(ours));
        }
        let node_labels = table_in(kubernetes, "node-labels")?;
        for (key, ours) in self.node_labels {
            put(node_labels, &key, value(ours));
        }
        for (name, entries) in self.tables {
            let table = table_in(kubernetes, name)?;
            table.clear();
            for (key, ours) in entries {
                put(table, &key, value(ours));
            }
        }
        if let Some(command) = self.storage_command {
            let commands = table_in(settings, "bootstrap-commands")?;
            if commands.is_empty() {
                commands.set_implicit(true);
            }
            put(commands, STORAGE_COMMAND, Item::Table(command));
        }
        Ok(())
    }
}

/// In the place of what has this key, or at the end.
fn put(table: &mut Table, key: &str, ours: Item) {
    match table.get_mut(key) {
        Some(had) => *had = ours,
        None => drop(table.insert(key, ours)),
    }
}

/// The table of this name, made where there is none. One that stands on a line gets lines of its own, since others are put into it.
fn table_in<'t>(parent: &'t mut Table, key: &str) -> Result<&'t mut Table, UserDataError> {
    let item = parent.entry(key).or_insert_with(|| Item::Table(Table::new()));
    if item.is_inline_table() {
        *item = std::mem::take(item).into_table().map_or_else(|other| other, Item::Table);
        if let Some(mut name) = parent.key_mut(key) {
            name.fmt();
        }
    }
    // What is no table was refused where its line is known.
    parent
        .get_mut(key)
        .and_then(Item::as_table_mut)
        .ok_or_else(|| UserDataError::malformed(1, format!("{key} is not a table")))
}

/// Lists of `value:effect`, by key.
fn node_taints(bootstrap: &Bootstrap) -> Vec<(String, Value)> {
    let mut by_key: BTreeMap<String, Array> = BTreeMap::new();
    for taint in taints::at_registration(&bootstrap.taints) {
        let entry = taints::below_key(&taint);
        by_key.entry(taint.key).or_default().push(entry);
    }
    by_key.into_iter().map(|(key, list)| (key, list.into())).collect()
}

fn storage_command(image_version: Option<&str>) -> Table {
    let words = |words: &[&str]| words.iter().copied().collect::<Array>();
    let mut bind = words(&["apiclient", "ephemeral-storage", "bind"]);
    if !version::binds_by_itself(image_version) {
        bind.push("--dirs");
        bind.extend(BOUND_FOLDERS);
    }
    let commands: Array = [words(&["apiclient", "ephemeral-storage", "init"]), bind].into_iter().collect();
    let mut command = Table::new();
    command.insert("commands", value(commands));
    command.insert("mode", value("always"));
    command.insert("essential", value(true));
    command
}
