//! What EC2 says about instance types and zones, as it stands in the binary (`data/instance-types.jsonl.gz`).
//!
//! The file is JSON lines, compressed: a [`Header`] with the zones of every region, then one [`InstanceFacts`] per
//! line, by name. `cutlist catalog refresh` (Cargo feature `aws`) writes it from an EC2 endpoint:
//!
//! ```text
//! cargo run --features aws -- catalog refresh                                       # an account: every region enabled in it
//! cargo run --features aws -- catalog refresh --endpoint-url http://127.0.0.1:5000  # moto's server
//! ```
//!
//! The committed file comes from moto 5.2.5. Only facts are kept here; what Karpenter derives from them is computed
//! in `labels.rs` and `arithmetic.rs`, so that a changed formula needs no new data.

use std::io::{Read, Write};
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};

/// The version of the file's layout.
const FORMAT_VERSION: u32 = 1;

/// Far above the 0.5 MB that the file holds: a damaged one can not fill the memory.
const BYTES_MAX: u64 = 64 << 20;

const EMBEDDED: &[u8] = include_bytes!("data/instance-types.jsonl.gz");

/// Everything that EC2 describes, for all regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// By region, then by name.
    pub zones: Vec<Zone>,
    /// By name.
    pub instance_types: Vec<InstanceFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Zone {
    pub region: String,
    /// `us-east-1a`
    pub name: String,
    /// `use1-az6`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// One instance type, in the units of `DescribeInstanceTypes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceFacts {
    pub name: String,
    pub vcpus: i64,
    pub memory_mebibytes: i64,
    /// `x86_64`, `arm64`, `i386`; in EC2's order.
    pub architectures: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_manufacturer: Option<String>,
    /// 0 where EC2 does not say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sustained_clock_speed_megahertz: i64,
    /// `nitro`, `xen`, or empty on bare metal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hypervisor: String,
    /// `on-demand`, `spot`, `capacity-block`.
    pub usage_classes: Vec<String>,
    pub network: Network,
    /// Maximum in Mbps, for types that are EBS-optimised by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs_bandwidth_megabits: Option<i64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub nitro_enclaves: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub nested_virtualization: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_storage: Option<LocalStorage>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inference_accelerators: Vec<Accelerator>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neuron_devices: Vec<NeuronDevice>,
    /// Indices into [`Facts::zones`], ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// Interfaces that each network card carries, by card index.
    pub interfaces_per_card: Vec<i64>,
    #[serde(default, skip_serializing_if = "is_zero_index")]
    pub default_card: usize,
    pub ipv4_addresses_per_interface: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub efa_interfaces: i64,
    /// Elastic Network Adapter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ena: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub encryption_in_transit: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalStorage {
    /// All disks together; 10^9 bytes each.
    pub gigabytes: i64,
    #[serde(default, skip_serializing_if = "is_false")]
    pub nvme: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    pub name: String,
    pub manufacturer: String,
    pub count: i64,
    /// Of one GPU.
    pub memory_mebibytes: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accelerator {
    pub name: String,
    pub manufacturer: String,
    pub count: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NeuronDevice {
    pub name: String,
    pub count: i64,
    pub cores_per_device: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("the instance types can not be decompressed")]
    Compression(#[source] std::io::Error),
    #[error("line {line} of the instance types is not understood")]
    Line { line: usize, source: serde_json::Error },
    #[error("the instance types are of version {0}, and this program reads version {FORMAT_VERSION}")]
    Version(u32),
    #[error("the instance types are empty")]
    Empty,
    #[error("{instance_type} is offered in zone number {zone}, which is not listed")]
    UnknownZone { instance_type: String, zone: usize },
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    zones: Vec<Zone>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero_index(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The facts in this binary, read once.
pub fn embedded() -> Result<&'static Facts, &'static FactsError> {
    static FACTS: OnceLock<Result<Facts, FactsError>> = OnceLock::new();
    FACTS.get_or_init(|| Facts::read(EMBEDDED)).as_ref()
}

/// The same of one instance type, read when it is first asked for: reading all of them takes longer than planning a small cluster.
pub fn embedded_type(name: &str) -> Option<&'static InstanceFacts> {
    static TEXT: OnceLock<String> = OnceLock::new();
    static LINES: OnceLock<Vec<Line>> = OnceLock::new();
    // What is wrong with the file, `embedded` says.
    let text = TEXT.get_or_init(|| decompressed(EMBEDDED).unwrap_or_default());
    let lines = LINES.get_or_init(|| text.lines().skip(1).filter_map(Line::new).collect());
    let line = &lines[lines.binary_search_by(|line| line.name.cmp(name)).ok()?];
    line.facts.get_or_init(|| serde_json::from_str(line.text).ok()).as_ref()
}

/// What the file says of one instance type.
struct Line {
    name: &'static str,
    text: &'static str,
    facts: OnceLock<Option<InstanceFacts>>,
}

impl Line {
    /// The name comes first.
    fn new(text: &'static str) -> Option<Self> {
        let (name, _) = text.strip_prefix("{\"name\":\"")?.split_once('"')?;
        Some(Self { name, text, facts: OnceLock::new() })
    }
}

fn decompressed(compressed: &[u8]) -> Result<String, FactsError> {
    let mut text = String::new();
    GzDecoder::new(compressed).take(BYTES_MAX).read_to_string(&mut text).map_err(FactsError::Compression)?;
    Ok(text)
}

impl Facts {
    /// Reads what [`Facts::write`] wrote.
    pub fn read(compressed: &[u8]) -> Result<Self, FactsError> {
        let text = decompressed(compressed)?;
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let (line, header) = lines.next().ok_or(FactsError::Empty)?;
        let header: Header = serde_json::from_str(header).map_err(|source| FactsError::Line { line, source })?;
        if header.version != FORMAT_VERSION {
            return Err(FactsError::Version(header.version));
        }
        let mut facts = Self { zones: header.zones, instance_types: Vec::new() };
        for (line, text) in lines {
            let instance_type: InstanceFacts =
                serde_json::from_str(text).map_err(|source| FactsError::Line { line, source })?;
            if let Some(zone) = instance_type.zones.iter().copied().find(|zone| *zone >= facts.zones.len()) {
                return Err(FactsError::UnknownZone { instance_type: instance_type.name, zone });
            }
            facts.instance_types.push(instance_type);
        }
        Ok(facts)
    }

    /// The file: the same facts give the same bytes.
    pub fn write(&self) -> std::io::Result<Vec<u8>> {
        // No modification time and no file name in the gzip header: they would differ from run to run.
        let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
        serde_json::to_writer(&mut encoder, &Header { version: FORMAT_VERSION, zones: self.zones.clone() })?;
        for instance_type in &self.instance_types {
            encoder.write_all(b"\n")?;
            serde_json::to_writer(&mut encoder, instance_type)?;
        }
        encoder.write_all(b"\n")?;
        encoder.finish()
    }

    /// Regions in which anything is offered, by name.
    pub fn regions(&self) -> Vec<&str> {
        let mut regions: Vec<&str> = self.zones.iter().map(|zone| zone.region.as_str()).collect();
        regions.dedup();
        regions
    }
}

impl InstanceFacts {
    /// The architecture as Kubernetes names it; `None` where no Linux or Windows image of EKS runs, such as on a Mac.
    pub fn architecture(&self) -> Option<&'static str> {
        self.architectures.iter().find_map(|architecture| match architecture.as_str() {
            "x86_64" => Some("amd64"),
            "arm64" => Some("arm64"),
            _ => None,
        })
    }

    /// All devices of a GPU manufacturer, as EC2 spells it.
    pub fn gpus_of(&self, manufacturer: &str) -> i64 {
        self.gpus.iter().filter(|gpu| gpu.manufacturer == manufacturer).map(|gpu| gpu.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_is_what_the_generator_writes_from_these_facts() {
        let facts = embedded().unwrap();
        // Which bytes they are compressed to depends on the library that another dependency chooses for all.
        let [written, committed] = [&facts.write().unwrap(), EMBEDDED].map(|bytes| decompressed(bytes).unwrap());
        assert!(written == committed, "run `cutlist catalog refresh` again");
        assert!(EMBEDDED.len() <= 1 << 20);
    }

    #[test]
    fn types_and_zones_are_sorted_and_unique() {
        let facts = embedded().unwrap();
        assert!(facts.zones.is_sorted());
        assert!(facts.instance_types.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(facts.instance_types.iter().all(|facts| facts.zones.is_sorted()));
        assert!(facts.instance_types.len() > 1300);
        assert!(facts.regions().contains(&"ap-northeast-2"));
    }

    #[test]
    fn of_one_type_the_same_is_read() {
        let all = &embedded().unwrap().instance_types;
        assert!(all.iter().all(|facts| embedded_type(&facts.name) == Some(facts)));
        assert_eq!(embedded_type("m5.none"), None);
    }

    #[test]
    fn damaged_files_are_refused() {
        assert!(matches!(Facts::read(b"no gzip"), Err(FactsError::Compression(_))));
        assert!(matches!(Facts::read(&EMBEDDED[..1000]), Err(FactsError::Compression(_))));
        let compress = |text: &[u8]| {
            let mut encoder = GzBuilder::new().write(Vec::new(), Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert!(matches!(Facts::read(&compress(b"")), Err(FactsError::Empty)));
        assert!(matches!(Facts::read(&compress(b"{\"version\":2,\"zones\":[]}")), Err(FactsError::Version(2))));
        assert!(matches!(
            Facts::read(&compress(b"{\"version\":1,\"zones\":[]}\n{")),
            Err(FactsError::Line { line: 2, .. })
        ));
    }
}
