//! `cutlist catalog refresh`: writes the file that the built-in catalog is made from.

use anyhow::Context;

use super::super::arguments::CatalogRefreshArguments;
use super::super::exit::{Failure, Outcome};
use super::super::output;
use crate::adapters::aws::calls::{Calls, Connection};
use crate::adapters::aws::facts;
use crate::core::catalog::facts::Facts;

pub fn run(arguments: &CatalogRefreshArguments) -> Result<Outcome, Failure> {
    let facts = read(arguments.endpoint_url.as_deref()).map_err(|error| {
        Failure::failed(error).with_hint(
            "the usual AWS credentials are used (environment, profile, role); moto's server takes any, \
             such as AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any",
        )
    })?;
    write(&facts, &arguments.write).map_err(Failure::failed)?;
    output::say(&format!(
        "{}: {} instance types, {} zones of {} regions",
        arguments.write.display(),
        facts.instance_types.len(),
        facts.zones.len(),
        facts.regions().len(),
    ));
    Ok(Outcome::Clean)
}

fn read(endpoint_url: Option<&str>) -> anyhow::Result<Facts> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let in_region = |region: Option<&str>| Connection {
        region: region.map(str::to_owned),
        endpoint_url: endpoint_url.map(str::to_owned),
        ..Connection::default()
    };
    let facts = runtime.block_on(async {
        let home = Calls::connect(&in_region(None)).await;
        let connect = async |region: &str| Calls::connect(&in_region(Some(region))).await;
        facts::read(&home, connect, |region| output::say(&format!("reading {region}"))).await
    })?;
    anyhow::ensure!(!facts.instance_types.is_empty(), "EC2 describes no instance types there; nothing was written");
    Ok(facts)
}

/// Beside the file first, then renamed: an interrupted run leaves the old one.
fn write(facts: &Facts, file: &std::path::Path) -> anyhow::Result<()> {
    let bytes = facts.write().context("compress the instance types")?;
    let beside = file.with_extension("new");
    std::fs::write(&beside, bytes).with_context(|| beside.display().to_string())?;
    std::fs::rename(&beside, file).with_context(|| file.display().to_string())
}
