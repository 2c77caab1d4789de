//! EC2 behind `cutlist run`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::time::timeout;

use crate::adapters::aws::api::Tally;
use crate::adapters::aws::calls::{Calls, Connection as AwsConnection};
use crate::adapters::aws::cloud::{AwsCloud, Opening, Settings};
use crate::adapters::aws::resolution::cluster::Identity;
use crate::adapters::kubernetes::{Connection, ServerTime};
use crate::cli::arguments::{ControllerArguments, ModeArgument};
use crate::cli::exit::Failure;
use crate::cli::output;
use crate::core::catalog::regions::{Region, SaidBy};

/// For so long a look whether all is there is waited for: who starts while AWS is silent has pods to evict all the same.
const OPENED_WITHIN: Duration = Duration::from_secs(20);

/// Connects, looks whether the credentials are good, and says what is missing; who only observes goes on without any. Credentials and
/// endpoints are those of the AWS SDK; the region is that of the settings or of the nodes, else the SDK's.
pub async fn connect(
    controller: &ControllerArguments,
    region: &Region,
    connection: &Connection,
    installation: &str,
    tally: &Tally,
) -> Result<AwsCloud<Arc<Calls>, ServerTime>, Failure> {
    let Some(cluster) = controller.cluster_name.clone() else {
        let error = anyhow!("--cloud aws needs the name of the EKS cluster that nodes join");
        return Err(Failure::usage(error).with_hint("give --cluster-name NAME, or set CLUSTER_NAME"));
    };
    let is_known = region.said_by != SaidBy::Nobody;
    let region = is_known.then(|| region.name.clone());
    let aws = AwsConnection { region, tally: tally.clone(), ..AwsConnection::default() };
    let calls = Arc::new(Calls::connect(&aws).await);
    let version = connection.client.apiserver_version().await.ok();
    let name = cluster.clone();
    let identity = Identity {
        cluster,
        region: calls.region().to_owned(),
        installation: installation.to_owned(),
        kubernetes_version: version.map(|version| format!("{}.{}", version.major, version.minor)),
    };
    let may_write = controller.mode == ModeArgument::Enforce;
    let settings =
        Settings { identity, queue: controller.interruption_queue.clone(), may_write, tries_launches: !may_write };
    let cloud = AwsCloud::new(calls, connection.time.clone(), settings);
    match timeout(OPENED_WITHIN, cloud.open()).await {
        Err(_) => output::say(
            "missing: AWS has not answered what it was asked first; what only AWS can do waits until it does",
        ),
        Ok(Ok(opening)) => {
            say_opening(&opening, cloud.api().region());
            if opening.is_of(&connection.certificates) == Some(false) {
                output::say(&format!(
                    "cluster {name} of EKS has other certificates than the API server at {}, so it may be another cluster: nodes join the one of EKS; see that --cluster-name is right",
                    connection.address
                ));
            }
        }
        // Plans are made of what the program knows by itself, and say what they lack.
        Ok(Err(error)) if !may_write => {
            output::say(&format!("missing: {}; it is for all that EC2 says in plans", error.text()))
        }
        Ok(Err(error)) => {
            let text = error.text();
            return Err(Failure::failed(error).with_hint(format!("{text}; see that region and credentials are right")));
        }
    }
    Ok(cloud)
}

fn say_opening(opening: &Opening, region: &str) {
    let caller = &opening.caller;
    output::say(&format!("EC2 of account {} in {region} as {}", caller.account, caller.arn));
    for missing in &opening.missing {
        output::say(&format!("missing: {missing}"));
    }
}
