//! What is typed for notifications. All of it is the operator's: who commits definitions can neither silence nor lead them elsewhere.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::api::notification::NotificationKind;

#[derive(Clone, Debug, Args)]
pub struct NotificationArguments {
    /// File that holds the address of a Slack incoming webhook, which is a secret; read each time. Or put it into the variable
    /// CUTLIST_NOTIFY_SLACK_URL
    #[arg(long, value_name = "FILE")]
    pub notify_slack_file: Option<PathBuf>,
    /// File that holds the address of a webhook; read each time. Or put it into the variable CUTLIST_NOTIFY_WEBHOOK_URL
    #[arg(long, value_name = "FILE")]
    pub notify_webhook_file: Option<PathBuf>,
    /// What the webhook gets, as a Jinja template; default: all of it as JSON (schemas/notification.json)
    ///
    /// Where the file's name ends in `.json`, `.json.j2` or `.json.jinja`, values are written as JSON, and the whole must be some.
    #[arg(long, value_name = "FILE")]
    pub notify_template: Option<PathBuf>,
    /// What to tell
    #[arg(
        long, value_parser = kinds(), value_name = "KIND", value_delimiter = ',',
        default_values = NotificationKind::USUAL.map(NotificationKind::word)
    )]
    pub notify_on: Vec<NotificationKind>,
    /// Send notifications without encryption to other machines, as within a cluster
    #[arg(long)]
    pub notify_allow_plain_http: bool,
}

fn kinds() -> impl TypedValueParser<Value = NotificationKind> {
    PossibleValuesParser::new(NotificationKind::ALL.map(|kind| PossibleValue::new(kind.word()).help(help(kind))))
        .try_map(|word| {
            NotificationKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or("no kind of notification")
        })
}

fn help(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::PlanWaits => "A plan is carried out only when somebody approves it",
        NotificationKind::RolloutHalted => {
            "New nodes of a pool did not become ready, and no more of its nodes are replaced"
        }
        NotificationKind::BudgetReached => "A node stays because `moneyPerHour` of a budget has not enough left",
        NotificationKind::PlanApplied => "What a plan was to do is done",
        NotificationKind::PlanFailed => "A plan was stopped on its way",
    }
}
