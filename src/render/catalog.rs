//! A catalog as a table: one instance type per row.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::api::keys;
use crate::core::catalog::{Catalog, InstanceType, arithmetic, labels};
use crate::core::model::HourlyPrice;
use crate::core::model::resources::{CPU, PODS};

/// Spaces to the right of every column but the last.
const GAP: u16 = 2;

const NOTHING: &str = "-";

/// A few names of devices are longer than the line has room for.
const DEVICE_LETTERS_MAX: usize = 11;

/// What one column shows.
struct Column {
    title: &'static str,
    alignment: CellAlignment,
    value: fn(&InstanceType) -> String,
}

const COLUMNS: [Column; 11] = [
    Column { title: "INSTANCE TYPE", alignment: CellAlignment::Left, value: |it| it.name.clone() },
    Column { title: "VCPU", alignment: CellAlignment::Right, value: cores },
    Column { title: "GiB", alignment: CellAlignment::Right, value: memory },
    Column { title: "ARCH", alignment: CellAlignment::Left, value: |it| label(it, keys::ARCHITECTURE).to_owned() },
    Column { title: "PODS", alignment: CellAlignment::Right, value: |it| it.capacity.get(PODS).to_string() },
    Column { title: "GPU", alignment: CellAlignment::Left, value: devices },
    Column { title: "NVME GB", alignment: CellAlignment::Right, value: |it| label(it, labels::LOCAL_NVME).to_owned() },
    Column { title: "Gbps", alignment: CellAlignment::Right, value: network },
    Column { title: "ZONES", alignment: CellAlignment::Right, value: zones },
    Column { title: "$/h", alignment: CellAlignment::Right, value: |it| price(it, keys::ON_DEMAND) },
    Column { title: "SPOT $/h", alignment: CellAlignment::Right, value: |it| price(it, keys::SPOT) },
];

/// The rows in the given order, then what the figures are: at most 100 columns wide for the types that EC2 has.
/// `in_catalog` counts the types before filtering.
pub fn table<'a>(catalog: &Catalog, rows: impl IntoIterator<Item = &'a InstanceType>, in_catalog: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(COLUMNS.iter().map(|column| column.title));
    let mut shown = 0;
    for instance_type in rows {
        table.add_row(COLUMNS.iter().map(|column| (column.value)(instance_type)));
        shown += 1;
    }
    for (cells, column) in table.column_iter_mut().zip(&COLUMNS) {
        cells.set_padding((0, GAP)).set_cell_alignment(column.alignment);
    }
    let body = if shown == 0 { "no instance type is like that".to_owned() } else { table.trim_fmt() };
    format!("{body}\n\n{shown} of {in_catalog} instance types, {}, prices of {}\n", catalog.region, catalog.date)
}

fn label<'a>(instance_type: &'a InstanceType, key: &str) -> &'a str {
    instance_type.requirements.get(key).and_then(|values| values.first()).map_or(NOTHING, String::as_str)
}

fn cores(instance_type: &InstanceType) -> String {
    short(instance_type.capacity.get(CPU) as f64 / 1000.0)
}

fn memory(instance_type: &InstanceType) -> String {
    short(instance_type.sold_memory_bytes() as f64 / arithmetic::GIBIBYTE as f64)
}

fn network(instance_type: &InstanceType) -> String {
    let megabits = label(instance_type, labels::NETWORK_BANDWIDTH).parse::<f64>();
    megabits.map_or_else(|_| NOTHING.to_owned(), |megabits| short(megabits / 1000.0))
}

/// The number with at most one decimal, and without one that is zero.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// GPUs, or other accelerators: `8 h100`. EC2 counts a part of a GPU as none.
fn devices(instance_type: &InstanceType) -> String {
    let device = |count, name| match label(instance_type, count) {
        NOTHING => None,
        "0" => Some(format!("<1 {}", label(instance_type, name))),
        count => Some(format!("{count} {}", label(instance_type, name))),
    };
    let text = device(labels::GPU_COUNT, labels::GPU_NAME)
        .or_else(|| device(labels::ACCELERATOR_COUNT, labels::ACCELERATOR_NAME))
        .unwrap_or_else(|| NOTHING.to_owned());
    if text.chars().count() <= DEVICE_LETTERS_MAX {
        return text;
    }
    text.chars().take(DEVICE_LETTERS_MAX - 2).chain("..".chars()).collect()
}

fn zones(instance_type: &InstanceType) -> String {
    let mut zones: Vec<&str> = instance_type.offerings.iter().map(|offering| offering.zone.as_str()).collect();
    zones.sort_unstable();
    zones.dedup();
    zones.len().to_string()
}

/// The price with four decimals, or with two where nobody counts hundredths of a cent.
fn price(instance_type: &InstanceType, capacity_type: &str) -> String {
    let dollars = instance_type.lowest_price(capacity_type).map(HourlyPrice::dollars);
    dollars.map_or_else(
        || NOTHING.to_owned(),
        |dollars| if dollars < 100.0 { format!("{dollars:.4}") } else { format!("{dollars:.2}") },
    )
}
