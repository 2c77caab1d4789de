//! `spec.kubelet` as arguments: what the families pass on whose images take no whole KubeletConfiguration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

use crate::model::Quantity;
use cutlist_api::duration::go_nanoseconds;
use cutlist_api::ec2_node_class::AmiFamily;

use super::{Bootstrap, UserDataError, labels, taints};

/// The values of the fields that every family knows, each checked and as text.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The class's own, else that of the cluster.
    pub cluster_dns: Option<IpAddr>,
    pub pods_per_core: Option<i64>,
    pub system_reserved: BTreeMap<String, String>,
    pub kube_reserved: BTreeMap<String, String>,
    pub eviction_hard: BTreeMap<String, String>,
    pub eviction_soft: BTreeMap<String, String>,
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    pub eviction_max_pod_grace_period: Option<i64>,
    pub image_gc_high_threshold_percent: Option<i64>,
    pub image_gc_low_threshold_percent: Option<i64>,
    pub cpu_cfs_quota: Option<bool>,
}

impl Arguments {
    /// What does not reach the kubelet of this family is an error: a node without it is not what was asked for.
    pub fn read(family: AmiFamily, bootstrap: &Bootstrap) -> Result<Self, UserDataError> {
        refuse_taints(bootstrap)?;
        let mut arguments = Self { cluster_dns: bootstrap.cluster.dns_address, ..Self::default() };
        for (name, value) in &bootstrap.kubelet {
            if !family.takes_kubelet_field(name) {
                let message = format!("images of {family:?} do not take it");
                return Err(UserDataError::field(format!("spec.kubelet.{name}"), message));
            }
            let field = Field { name, value };
            match name.as_str() {
                // The one family that takes several takes them as they are.
                "clusterDNS" if family == AmiFamily::AL2023 => {}
                "clusterDNS" => arguments.cluster_dns = field.address()?.or(arguments.cluster_dns),
                "podsPerCore" => arguments.pods_per_core = field.count()?,
                "systemReserved" => arguments.system_reserved = field.amounts(is_quantity)?,
                "kubeReserved" => arguments.kube_reserved = field.amounts(is_quantity)?,
                "evictionHard" => arguments.eviction_hard = field.amounts(is_threshold)?,
                "evictionSoft" => arguments.eviction_soft = field.amounts(is_threshold)?,
                "evictionSoftGracePeriod" => arguments.eviction_soft_grace_period = field.amounts(is_duration)?,
                "evictionMaxPodGracePeriod" => arguments.eviction_max_pod_grace_period = field.count()?,
                "imageGCHighThresholdPercent" => arguments.image_gc_high_threshold_percent = field.count()?,
                "imageGCLowThresholdPercent" => arguments.image_gc_low_threshold_percent = field.count()?,
                "cpuCFSQuota" => arguments.cpu_cfs_quota = field.flag()?,
                // What the class says of `maxPods` is in `max_pods`, an expression already reckoned out.
                _ => {}
            }
        }
        Ok(arguments)
    }

    /// The command line, in an order that does not change.
    pub fn flags(&self, bootstrap: &Bootstrap) -> Result<Vec<String>, UserDataError> {
        let taints = taints::at_registration(&bootstrap.taints);
        let taints = taints.iter().map(|taint| plain("taint", &taints::flag(taint)).map(str::to_owned));
        let mut flags = vec![
            node_labels(bootstrap)?,
            format!("--register-with-taints=\"{}\"", taints.collect::<Result<Vec<_>, _>>()?.join(",")),
            format!("--max-pods={}", bootstrap.max_pods),
        ];
        let number = |name: &str, value: Option<i64>| value.map(|value| format!("--{name}={value}"));
        flags.extend(number("pods-per-core", self.pods_per_core));
        flags.extend(joined("system-reserved", &self.system_reserved, "="));
        flags.extend(joined("kube-reserved", &self.kube_reserved, "="));
        flags.extend(joined("eviction-hard", &self.eviction_hard, "<"));
        flags.extend(joined("eviction-soft", &self.eviction_soft, "<"));
        flags.extend(joined("eviction-soft-grace-period", &self.eviction_soft_grace_period, "="));
        flags.extend(number("eviction-max-pod-grace-period", self.eviction_max_pod_grace_period));
        flags.extend(number("image-gc-high-threshold", self.image_gc_high_threshold_percent));
        flags.extend(number("image-gc-low-threshold", self.image_gc_low_threshold_percent));
        flags.extend(self.cpu_cfs_quota.map(|enforced| format!("--cpu-cfs-quota={enforced}")));
        Ok(flags)
    }
}

/// Taints are those of the NodePool: others would not be reckoned with.
fn refuse_taints(bootstrap: &Bootstrap) -> Result<(), UserDataError> {
    if bootstrap.kubelet.contains_key("registerWithTaints") {
        let message = "is set here; give taints in spec.template.spec.taints of the NodePool";
        return Err(UserDataError::field("spec.kubelet.registerWithTaints", message));
    }
    Ok(())
}

/// `--node-labels="a=b,c=d"`, sorted.
pub(super) fn node_labels(bootstrap: &Bootstrap) -> Result<String, UserDataError> {
    let labels = labels::of_node(bootstrap).into_iter().map(|(key, value)| {
        let label = format!("{key}={value}");
        plain("label", &label).map(str::to_owned)
    });
    Ok(format!("--node-labels=\"{}\"", labels.collect::<Result<Vec<_>, _>>()?.join(",")))
}

/// The text, where no shell, no PowerShell and no systemd reads anything else into it.
pub(super) fn plain<'t>(what: &str, text: &'t str) -> Result<&'t str, UserDataError> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-._/:=+%,@~[]".contains(character);
    if text.chars().all(is_plain) {
        return Ok(text);
    }
    let message = format!("{text:?} has a character that can not be passed on a command line");
    Err(UserDataError::field(what, message))
}

fn joined(name: &str, values: &BTreeMap<String, String>, separator: &str) -> Option<String> {
    let entries: Vec<String> = values.iter().map(|(key, value)| format!("{key}{separator}{value}")).collect();
    (!entries.is_empty()).then(|| format!("--{name}=\"{}\"", entries.join(",")))
}

/// A field of `spec.kubelet`; `null` counts as not set.
struct Field<'f> {
    name: &'f str,
    value: &'f Value,
}

impl Field<'_> {
    fn wrong(&self, expected: &str) -> UserDataError {
        UserDataError::field(format!("spec.kubelet.{}", self.name), format!("`{}` is not {expected}", self.value))
    }

    fn count(&self) -> Result<Option<i64>, UserDataError> {
        match self.value {
            Value::Null => Ok(None),
            value => {
                let count = value.as_i64().filter(|count| (0..=i64::from(i32::MAX)).contains(count));
                count.map(Some).ok_or_else(|| self.wrong("a whole number from 0"))
            }
        }
    }

    fn flag(&self) -> Result<Option<bool>, UserDataError> {
        match self.value {
            Value::Null => Ok(None),
            value => value.as_bool().map(Some).ok_or_else(|| self.wrong("true or false")),
        }
    }

    /// The one address of a list; several would have to be left out in silence.
    fn address(&self) -> Result<Option<IpAddr>, UserDataError> {
        let addresses = match self.value {
            Value::Null => return Ok(None),
            Value::Array(addresses) => addresses.as_slice(),
            _ => return Err(self.wrong("a list of one address")),
        };
        match addresses {
            [] => Ok(None),
            [address] => {
                let address = address.as_str().and_then(|text| text.parse().ok());
                address.map(Some).ok_or_else(|| self.wrong("a list of one address"))
            }
            _ => Err(self.wrong("a list of one address, which is all that this image family takes")),
        }
    }

    /// A map of names to amounts of one kind.
    fn amounts(&self, is_amount: fn(&str) -> bool) -> Result<BTreeMap<String, String>, UserDataError> {
        let entries = match self.value {
            Value::Null => return Ok(BTreeMap::new()),
            Value::Object(entries) => entries,
            _ => return Err(self.wrong("a map")),
        };
        let mut amounts = BTreeMap::new();
        for (key, value) in entries {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => String::new(),
            };
            let is_name = |text: &str| {
                !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || "-._/".contains(it))
            };
            if !is_name(key) || !is_amount(&text) {
                let field = format!("spec.kubelet.{}.{key}", self.name);
                return Err(UserDataError::field(field, format!("`{value}` is no amount that it can have")));
            }
            amounts.insert(key.clone(), text);
        }
        Ok(amounts)
    }
}

fn is_quantity(text: &str) -> bool {
    text.parse::<Quantity>().is_ok_and(|quantity| !quantity.is_negative())
}

fn is_threshold(text: &str) -> bool {
    text.strip_suffix('%').map_or_else(|| is_quantity(text), |share| is_quantity(share) && !share.contains(['e', 'E']))
}

fn is_duration(text: &str) -> bool {
    text.is_ascii() && go_nanoseconds(text).is_some_and(|nanoseconds| nanoseconds >= 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(kubelet: Value) -> Bootstrap {
        Bootstrap { kubelet: serde_json::from_value(kubelet).unwrap(), max_pods: 29, ..Bootstrap::default() }
    }

    fn refused(kubelet: Value) -> String {
        Arguments::read(AmiFamily::AL2, &with(kubelet)).unwrap_err().to_string()
    }

    #[test]
    fn every_field_becomes_a_flag_in_an_order_of_its_own() {
        let bootstrap = with(json!({
            "clusterDNS": ["10.0.0.9"], "maxPods": 29, "podsPerCore": 8, "cpuCFSQuota": false,
            "systemReserved": { "memory": "200Mi", "cpu": "100m" }, "kubeReserved": { "pid": 1000, "cpu": "80m" },
            "evictionHard": { "nodefs.available": "10%", "memory.available": "5%" },
            "evictionSoft": { "memory.available": "500Mi" }, "evictionSoftGracePeriod": { "memory.available": "1m30s" },
            "evictionMaxPodGracePeriod": 60, "imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 80,
        }));
        let arguments = Arguments::read(AmiFamily::AL2, &bootstrap).unwrap();
        assert_eq!(arguments.cluster_dns, Some("10.0.0.9".parse().unwrap()));
        assert_eq!(
            arguments.flags(&bootstrap).unwrap(),
            [
                r#"--node-labels="karpenter.sh/do-not-sync-taints=true""#,
                r#"--register-with-taints="karpenter.sh/unregistered:NoExecute""#,
                "--max-pods=29",
                "--pods-per-core=8",
                r#"--system-reserved="cpu=100m,memory=200Mi""#,
                r#"--kube-reserved="cpu=80m,pid=1000""#,
                r#"--eviction-hard="memory.available<5%,nodefs.available<10%""#,
                r#"--eviction-soft="memory.available<500Mi""#,
                r#"--eviction-soft-grace-period="memory.available=1m30s""#,
                "--eviction-max-pod-grace-period=60",
                "--image-gc-high-threshold=85",
                "--image-gc-low-threshold=80",
                "--cpu-cfs-quota=false",
            ]
        );
    }

    #[test]
    fn what_does_not_reach_the_kubelet_is_an_error() {
        assert_eq!(
            refused(json!({ "seccompDefault": true })),
            "spec.kubelet.seccompDefault: images of AL2 do not take it"
        );
        let bottlerocket = Arguments::read(AmiFamily::Bottlerocket, &with(json!({ "podsPerCore": 1 })));
        assert!(bottlerocket.unwrap_err().to_string().starts_with("spec.kubelet.podsPerCore: "));
        assert!(refused(json!({ "registerWithTaints": [] })).contains("spec.template.spec.taints"));
        assert!(
            refused(json!({ "clusterDNS": ["10.0.0.1", "10.0.0.2"] })).contains("all that this image family takes")
        );
        for kubelet in [
            json!({ "podsPerCore": -1 }),
            json!({ "podsPerCore": "4" }),
            json!({ "cpuCFSQuota": "no" }),
            json!({ "clusterDNS": "10.0.0.1" }),
            json!({ "clusterDNS": ["dns'; reboot #"] }),
            json!({ "kubeReserved": { "cpu": "vcpus * 10" } }),
            json!({ "kubeReserved": { "cpu\"": "1" } }),
            json!({ "kubeReserved": { "cpu": null } }),
            json!({ "systemReserved": ["cpu"] }),
            json!({ "evictionHard": { "memory.available": "5 %" } }),
            json!({ "evictionHard": { "memory.available": "-1Mi" } }),
            json!({ "evictionSoftGracePeriod": { "memory.available": "soon" } }),
        ] {
            assert!(refused(kubelet.clone()).starts_with("spec.kubelet."), "{kubelet}");
        }
        let nothing = with(json!({ "clusterDNS": [], "kubeReserved": null, "podsPerCore": null }));
        assert!(Arguments::read(AmiFamily::AL2, &nothing).unwrap().cluster_dns.is_none());
    }

    #[test]
    fn no_label_ends_a_command() {
        let mut bootstrap = with(json!({}));
        bootstrap.labels.insert("team".to_owned(), "a'; reboot; '".to_owned());
        assert!(node_labels(&bootstrap).unwrap_err().to_string().starts_with("label: "));
    }
}
