//! `cutlist schema`

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::arguments::{ExportArguments, SchemaAction, SchemaArguments};
use super::exit::{Failure, Outcome};
use super::output;
use crate::definitions::{PublishedSchema, published_schemas};

pub fn run(arguments: &SchemaArguments) -> Result<Outcome, Failure> {
    match &arguments.action {
        SchemaAction::Export(ExportArguments { folder }) => export(folder).map_err(Failure::failed),
    }
}

/// One file for each kind, and says where they are.
fn export(folder: &Path) -> anyhow::Result<Outcome> {
    let schemas = published_schemas();
    for PublishedSchema { group, kind, version, schema } in &schemas {
        let file = folder.join(group).join(format!("{}_{version}.json", kind.to_lowercase()));
        let above = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(above).with_context(|| format!("{} can not be made", above.display()))?;
        output::file(&file, &text(schema)?, output::Form::Data)?;
    }
    output::say(&format!("wrote {} schemas to {}", schemas.len(), folder.display()));
    Ok(Outcome::Clean)
}

fn text(schema: &Value) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(schema).map(|text| text + "\n")
}
