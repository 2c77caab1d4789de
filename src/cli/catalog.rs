//! `cutlist catalog`

#[cfg(feature = "aws")]
mod pull;
#[cfg(feature = "aws")]
mod refresh;

use std::path::Path;

use anyhow::Context;

use super::arguments::{CatalogAction, CatalogArguments, CatalogOrder, CatalogOutput};
use super::exit::{Failure, Outcome};
use super::inputs::{FileKind, read_file};
use super::output;
use crate::api::keys;
use crate::core::catalog::filter::{self, Filter, FilterError};
use crate::core::catalog::{BuiltInError, Catalog, InstanceType, assumptions};
use crate::core::model::resources::{CPU, MEMORY};
use crate::render;

const SHORT_NAMES: &str =
    "`cutlist catalog -o json` shows every label; `karpenter.k8s.aws/` and `instance-` may be left out";

pub fn run(arguments: &CatalogArguments) -> Result<Outcome, Failure> {
    match &arguments.action {
        None => show(arguments),
        #[cfg(feature = "aws")]
        Some(CatalogAction::Pull(arguments)) => pull::run(arguments),
        #[cfg(feature = "aws")]
        Some(CatalogAction::Refresh(arguments)) => refresh::run(arguments),
        #[cfg(not(feature = "aws"))]
        Some(CatalogAction::Pull(arguments)) => {
            let file = arguments.write.display();
            let error = anyhow::anyhow!(
                "this build can not ask EC2 for what {file} is to hold: it is without the feature `aws`"
            );
            Err(Failure::failed(error).with_hint("take a build with it: `cargo build --release --features aws`"))
        }
    }
}

fn show(arguments: &CatalogArguments) -> Result<Outcome, Failure> {
    let filters =
        arguments.filter.iter().map(|text| text.parse()).collect::<Result<Vec<Filter>, _>>().map_err(usage)?;
    let (catalog, notes) = match &arguments.catalog {
        Some(file) => (read(file)?, Vec::new()),
        None => built_in(&arguments.region)?,
    };
    let in_catalog = catalog.instance_types.len();
    let catalog = filter::apply(catalog, &filters).map_err(usage)?;
    let text = match arguments.output {
        CatalogOutput::Json => {
            let text = serde_json::to_string_pretty(&catalog).context("write the catalog as JSON");
            text.map_err(Failure::failed)? + "\n"
        }
        CatalogOutput::Text => text(&catalog, in_catalog, &notes, arguments.sort),
    };
    output::data(&text)?;
    Ok(Outcome::Clean)
}

fn usage(error: FilterError) -> Failure {
    match error {
        FilterError::Unknown { .. } => Failure::usage(error).with_hint(SHORT_NAMES),
        other => Failure::usage(other),
    }
}

/// The built-in catalog, and what it takes for granted.
pub(super) fn built_in(region: &str) -> Result<(Catalog, Vec<String>), Failure> {
    let catalog = Catalog::built_in(region).map_err(|error| match error {
        BuiltInError::UnknownRegion { .. } => Failure::usage(error)
            .with_hint("name one of these regions, or give a catalog of your own with --catalog FILE"),
        BuiltInError::Damaged(_) => Failure::failed(error),
    })?;
    Ok((catalog, assumptions(region).into_iter().map(|assumption| assumption.text).collect()))
}

/// Reads a catalog file; the error names it.
pub(super) fn read(file: &Path) -> Result<Catalog, Failure> {
    let bytes =
        read_file(file, FileKind::Catalog).map_err(|error| Failure::of_file(file.display().to_string(), error))?;
    Catalog::parse(bytes).with_context(|| file.display().to_string()).map_err(Failure::failed)
}

/// Types that are sold nowhere in the region would only fill the screen; JSON has them.
fn text(catalog: &Catalog, in_catalog: usize, notes: &[String], order: CatalogOrder) -> String {
    let mut rows: Vec<&InstanceType> = catalog.instance_types.iter().filter(|it| !it.offerings.is_empty()).collect();
    rows.sort_by_key(|it| by_size(it));
    if order == CatalogOrder::Price {
        // Those without a price come last; the sort is stable.
        rows.sort_by_key(|it| {
            it.lowest_price(keys::ON_DEMAND).map_or((true, Default::default()), |price| (false, price))
        });
    }
    let unsold = catalog.instance_types.len() - rows.len();
    let mut text = render::catalog::table(catalog, rows, in_catalog);
    if unsold > 0 {
        text += &format!("{unsold} more that match: not sold there (-o json lists them)\n");
    }
    for note in notes {
        text += &format!("{note}\n");
    }
    text
}

/// `c5.large`, `c5.xlarge`, `c5.2xlarge`: by family, then as they grow.
fn by_size(instance_type: &InstanceType) -> (String, i64, i64, String) {
    let family = instance_type.name.split('.').next().unwrap_or_default().to_owned();
    let amount = |resource| instance_type.capacity.get(resource);
    (family, amount(CPU), amount(MEMORY), instance_type.name.clone())
}
