//! `cutlist approve`

use anyhow::anyhow;

use crate::adapters::kubernetes::{Approval, approve, user_name};

use super::arguments::ApproveArguments;
use super::cluster::{connected, unreadable};
use super::exit::{Failure, Outcome};
use super::output;

pub fn run(arguments: &ApproveArguments) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    runtime.block_on(async {
        let connection = connected(&arguments.cluster).await?;
        let known = user_name(&connection.client).await.map_err(|error| unreadable(error, &connection.address))?;
        let by = match (known, arguments.by.clone()) {
            (Some(known), Some(by)) if known != by => {
                let error = anyhow!("the API server knows you as {known}, not as {by}");
                return Err(Failure::failed(error).with_hint("approve in your own name: leave out --by"));
            }
            (Some(known), _) => known,
            (None, by) => by.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "somebody".to_owned()),
        };
        let approval = approve(&connection.client, &arguments.plan, &by, None).await;
        let list = "`kubectl get nodeplans` lists the plans there are";
        match approval.map_err(|error| unreadable(error, &connection.address))? {
            Approval::Given { name, by } => {
                output::text(&format!("nodeplan {name} is approved by {by}\n"))?;
                Ok(Outcome::Clean)
            }
            Approval::NotWaiting { name, phase } => {
                let error = anyhow!("nodeplan {name} does not wait for approval: it is {phase:?}");
                Err(Failure::failed(error).with_hint(list))
            }
            Approval::NoSuchPlan => {
                Err(Failure::failed(anyhow!("there is no nodeplan {}", arguments.plan)).with_hint(list))
            }
            Approval::Ambiguous { names } => {
                let error = anyhow!("{} may be any of {}", arguments.plan, names.join(", "));
                Err(Failure::failed(error).with_hint("give more characters"))
            }
        }
    })
}
