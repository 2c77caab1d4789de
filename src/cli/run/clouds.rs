//! Where nodes come from, and where revisions are told of: both are chosen here, and nowhere else.

use anyhow::anyhow;

use crate::adapters::embedded::{EmbeddedWorld, FileAccess, Hosted, SavedCloud, SavedFile, WorldSettings};
use crate::adapters::forge::{UnusedRevisions, Voice};
use crate::adapters::kubernetes::Connection;
use crate::adapters::kubernetes::nodes::ClusterNodes;
use crate::cli::arguments::{CloudArgument, ControllerArguments, ModeArgument, RunArguments};
use crate::cli::cluster::unreadable;
use crate::cli::exit::{Failure, Outcome};
use crate::cli::inputs::{FileKind, catalog_of_file, read_file};
use crate::cli::output;
use crate::cli::patience::awaited;
use crate::cli::post::resolve;
use crate::core::catalog::regions::Region;
use crate::core::catalog::{BuiltInError, Catalog};
use crate::ports::{NodeObjects, PortErrorKind, Repository};
use crate::render::posting::fitted_line;

use super::drive::Drive;
use super::now;

/// For the file that keeps the instances of the embedded cloud.
const FILE_ACCESS: FileAccess = FileAccess {
    read: |file| file.exists().then(|| read_file(file, FileKind::Instances)).transpose(),
    write: |file, bytes| std::fs::write(file, bytes),
    rename: |from, to| std::fs::rename(from, to),
};

/// Whether the cloud that is named can be had.
pub fn check(controller: &ControllerArguments) -> Result<(), Failure> {
    match controller.cloud {
        Some(CloudArgument::Embedded) => Ok(()),
        Some(CloudArgument::Aws) if cfg!(feature = "aws") => Ok(()),
        Some(CloudArgument::Aws) => Err(without_ec2()),
        // Observing needs prices and instance types, which the built-in catalog has.
        None if controller.mode == ModeArgument::Observe => Ok(()),
        None => {
            let error = anyhow!("it is not said where nodes come from");
            Err(Failure::usage(error).with_hint(
                "add --cloud aws for EC2, --cloud embedded to try it, or --mode observe to plan beside Karpenter",
            ))
        }
    }
}

fn without_ec2() -> Failure {
    let error = anyhow!("this build of cutlist has no EC2: it was made without the Cargo feature aws");
    Failure::usage(error).with_hint(
        "take a released build, or build it with `cargo build --release --locked --all-features`; --cloud embedded needs no account",
    )
}

/// Opens the cloud and the forge that are named, and drives the controller on them until the end.
pub async fn choose_and_drive(
    drive: Drive<'_>,
    repository: impl Repository,
    region: &Region,
) -> Result<Outcome, Failure> {
    let Drive { arguments, connection, shutdown, .. } = drive;
    let controller = &arguments.controller;
    let catalog = match &arguments.catalog {
        Some(file) => catalog_of_file(file)?,
        None => catalog(controller.cloud, &region.name)?,
    };
    output::show_words_of(&catalog);
    let forge = forge(arguments)?;
    match controller.cloud {
        #[cfg(feature = "aws")]
        Some(CloudArgument::Aws) => {
            let tally = &drive.watched.tally;
            let connected = super::aws::connect(controller, region, connection, &drive.installation, tally);
            let cloud = awaited("EC2", connected).await?;
            // Where nobody says which, it is the SDK's.
            let drive = Drive { region: cloud.api().region().to_owned(), ..drive };
            let (ears, leadership) = (cloud.ears(), drive.leadership.clone());
            let may_act = move || leadership.leads();
            let (cloud, calls) = crate::adapters::aws::beside::Beside::start(cloud, catalog.into(), may_act);
            let beside = async {
                tokio::join!(ears.listen(), calls);
            };
            Box::pin(drive.until_the_end(repository, cloud, forge, beside)).await
        }
        #[cfg(not(feature = "aws"))]
        Some(CloudArgument::Aws) => Err(without_ec2()),
        // Who observes may name none.
        Some(CloudArgument::Embedded) | None => {
            let opened = embedded(arguments, catalog, connection);
            let (world, cloud) = awaited("the NodeClaims of the cluster", opened).await?;
            let hosted = Hosted::new(&world, ClusterNodes(connection.client.clone()));
            let boots = boots(hosted, controller.mode, || shutdown.is_requested());
            Box::pin(drive.until_the_end(repository, cloud, forge, boots)).await
        }
    }
}

/// What this program knows of the region. EC2 says itself what it sells, also in a region that is newer than the program or of another
/// partition: there the catalog has the words of all others.
fn catalog(cloud: Option<CloudArgument>, region: &str) -> Result<Catalog, Failure> {
    let catalog = match Catalog::built_in(region) {
        Err(BuiltInError::UnknownRegion { .. }) if cloud == Some(CloudArgument::Aws) => {
            Catalog::built_in_anywhere().map(|anywhere| Catalog { region: region.to_owned(), ..anywhere })
        }
        known => known,
    };
    catalog.map_err(|error| Failure::failed(error).with_hint("set spec.region in cutlist.yaml"))
}

/// What the operator calls the cluster: with other clouds than EC2 the name counts for nothing, and the environment may have one.
pub fn cluster_name(controller: &ControllerArguments) -> Option<String> {
    controller.cluster_name.clone().filter(|_| controller.cloud == Some(CloudArgument::Aws))
}

/// The cloud in memory, with the instances of an earlier process: of the file that keeps them, or else as the cluster's claims tell.
async fn embedded(
    arguments: &RunArguments,
    catalog: Catalog,
    connection: &Connection,
) -> Result<(EmbeddedWorld, SavedCloud), Failure> {
    let controller = &arguments.controller;
    let seconds = controller.boot_seconds;
    let settings = WorldSettings { seconds_to_join: (seconds, seconds), ..WorldSettings::new(arguments.seed, now()) };
    let world = EmbeddedWorld::new(settings, catalog);
    let file = controller.cloud_state.as_deref();
    let cloud = SavedCloud::new(&world, file.map(|file| SavedFile::new(file, FILE_ACCESS)));
    match file {
        Some(_) => {
            let restored = cloud.restore();
            restored.map_err(|error| Failure::failed(error).with_hint("remove the file to begin anew"))?;
        }
        // A cluster without the kinds has no claims.
        None => match ClusterNodes(connection.client.clone()).claims_and_classes().await {
            Ok((claims, _)) => cloud.learn(&claims),
            Err(error) if error.kind == PortErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error, &connection.address)),
        },
    }
    Ok((world, cloud))
}

/// Instances join the cluster as nodes, and leave it. Where it is only observed nothing is written, and they do neither.
async fn boots(hosted: Hosted<impl NodeObjects>, mode: ModeArgument, is_stopped: impl Fn() -> bool) {
    match mode {
        ModeArgument::Observe => std::future::pending().await,
        ModeArgument::Enforce => hosted.run(is_stopped).await,
    }
}

/// The forge that revisions are told of.
fn forge(arguments: &RunArguments) -> Result<UnusedRevisions, Failure> {
    if arguments.forge.forge.is_none() {
        return Ok(UnusedRevisions::default());
    }
    let forge = resolve(&arguments.forge, None)?.connect()?;
    let voice = Voice { line: |text, characters| output::shown(&fitted_line(text, characters)), say: output::say };
    Ok(UnusedRevisions::on(forge, &arguments.forge.forge_name, voice))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::rc::Rc;
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;
    use crate::api::ec2_node_class::EC2NodeClass;
    use crate::api::node_claim::NodeClaim;
    use crate::ports::PortError;

    /// An API server that counts the nodes that are registered.
    #[derive(Clone, Default)]
    struct Counted(Rc<Cell<usize>>);

    /// What an earlier process kept in its file.
    fn kept() -> Vec<u8> {
        let machine = json!({
            "providerId": "aws:///us-east-1a/i-1", "claimUid": "u", "instanceType": "m5.large", "zone": "us-east-1a",
            "capacityType": "on-demand", "imageId": "ami-1", "launchedAt": "2026-11-20T08:00:00Z", "nodeClaim": "a",
            "nodeName": "node-a", "ending": false,
        });
        json!([machine]).to_string().into_bytes()
    }

    impl NodeObjects for Counted {
        async fn claims_and_classes(&self) -> Result<(Vec<NodeClaim>, Vec<EC2NodeClass>), PortError> {
            Ok((Vec::new(), Vec::new()))
        }

        async fn register(&self, _node: &Node) -> Result<(), PortError> {
            self.0.set(self.0.get() + 1);
            Ok(())
        }

        async fn remove(&self, _name: &str) -> Result<(), PortError> {
            Ok(())
        }
    }

    #[test]
    fn ec2_is_there_in_regions_that_the_program_does_not_know() {
        for region in ["us-gov-west-1", "cn-north-1", "eu-north-9"] {
            let of_ec2 = catalog(Some(CloudArgument::Aws), region).unwrap();
            assert_eq!(of_ec2.region, region);
            assert!(catalog(Some(CloudArgument::Embedded), region).is_err() && catalog(None, region).is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_observes_registers_no_node() {
        for (mode, registered) in [(ModeArgument::Observe, 0), (ModeArgument::Enforce, 1)] {
            let settings = WorldSettings::new(0, "2026-11-20T09:00:00Z".parse().unwrap());
            let world = EmbeddedWorld::new(settings, Catalog::built_in("us-east-1").unwrap());
            let access = FileAccess { read: |_| Ok(Some(kept())), ..FILE_ACCESS };
            SavedCloud::new(&world, Some(SavedFile::new(Path::new("cloud.json"), access))).restore().unwrap();
            let nodes = Counted::default();
            let machines = boots(Hosted::new(&world, nodes.clone()), mode, || false);
            assert!(tokio::time::timeout(Duration::from_secs(600), machines).await.is_err());
            assert_eq!(nodes.0.get(), registered, "{mode:?}");
        }
    }
}
