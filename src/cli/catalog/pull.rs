//! `cutlist catalog pull`: asks EC2 what it sells, and writes it as `--catalog` takes it.

use anyhow::Context;
use jiff::Timestamp;

use super::super::arguments::CatalogPullArguments;
use super::super::exit::{Failure, Outcome};
use super::super::{output, replacing};
use crate::adapters::aws::calls::{Calls, Connection};
use crate::adapters::aws::catalog::pull;

pub fn run(arguments: &CatalogPullArguments) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let place = Connection { region: arguments.region.clone(), ..Connection::default() };
    let pulled = runtime.block_on(async {
        let calls = Calls::connect(&place).await;
        pull(&calls, calls.region(), Timestamp::now()).await
    });
    let (catalog, doubts) = pulled.map_err(|error| {
        Failure::failed(error).with_hint("see that region, credentials and the permissions of `observe` are right")
    })?;
    let text = serde_json::to_string_pretty(catalog.as_ref()).context("write the catalog as JSON");
    let text = text.map_err(Failure::failed)? + "\n";
    replacing::write(&arguments.write, &text).map_err(Failure::failed)?;
    doubts.iter().for_each(|doubt| output::say(doubt));
    let sold = catalog.instance_types.iter().filter(|it| !it.offerings.is_empty()).count();
    output::say(&format!("{}: {sold} instance types of {}", arguments.write.display(), catalog.region));
    Ok(Outcome::Clean)
}
