//! `cutlist crds`

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::api::definitions;

use super::exit::{Failure, Outcome};
use super::output;

pub fn run() -> Result<Outcome, Failure> {
    output::data(&stream(&definitions::all()).map_err(Failure::failed)?)?;
    Ok(Outcome::Clean)
}

/// One YAML document after the other, as `kubectl apply -f -` reads them.
fn stream(definitions: &[CustomResourceDefinition]) -> Result<String, serde_yaml::Error> {
    definitions.iter().map(|definition| Ok(format!("---\n{}", serde_yaml::to_string(definition)?))).collect()
}
