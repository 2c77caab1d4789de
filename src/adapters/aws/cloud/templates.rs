//! Launch templates that are there: made once for each content, used again, and swept when nothing has used them for long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::api::launch::{LaunchTemplateRequest, ListedTemplate};
use crate::adapters::aws::api::template::{LaunchTemplate, NAME_PREFIX};
use crate::adapters::aws::api::{Action, ApiError, Ec2Api, Filter, pages};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::launch_templates::{KnownTemplate, tags, unused};
use crate::adapters::aws::resolution::cluster::Identity;
use crate::ports::{Clock, not_to_come};

use super::pace::Pace;

/// What nothing has used for so long is deleted.
const UNUSED_FOR: SignedDuration = SignedDuration::from_hours(1);
const SWEPT_EVERY: SignedDuration = SignedDuration::from_mins(15);
/// Templates that are deleted at once: others have use for the calls.
const SWEPT_AT_ONCE: usize = 20;

/// What this process knows of templates.
#[derive(Debug, Default)]
pub struct Templates {
    known: Mutex<TemplatesSeen>,
}

#[derive(Debug, Default)]
struct TemplatesSeen {
    /// By name, when a launch last named it.
    used: BTreeMap<String, Timestamp>,
    /// Those that are listed, and when they first were.
    first_seen: BTreeMap<String, Timestamp>,
    swept_at: Option<Timestamp>,
}

impl TemplatesSeen {
    /// What a clock noted that was set back since was noted now: nothing goes earlier for it, nor later than it would from now on.
    fn count_anew(&mut self, now: Timestamp) {
        let noted = self.used.values_mut().chain(self.first_seen.values_mut()).chain(&mut self.swept_at);
        noted.for_each(|at| *at = not_to_come(*at, now));
    }
}

impl Templates {
    fn with<T>(&self, work: impl FnOnce(&mut TemplatesSeen) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sees to it that these templates exist: those that are not known here are made, all at the same time. A template that is there has the
    /// content of its name, whoever made it. The first failure is returned.
    pub async fn ensure<C: Clock>(
        &self,
        api: &impl Ec2Api,
        pace: &Pace<C>,
        templates: &BTreeMap<&str, &LaunchTemplate>,
    ) -> Result<(), ApiError> {
        let now = pace.now();
        let unknown: Vec<(&str, &LaunchTemplate)> = self.with(|known| {
            let lacking = templates.iter().filter(|(name, _)| !known.used.contains_key(**name));
            let lacking = lacking.map(|(name, template)| (*name, *template)).collect();
            let used = known.used.iter_mut().filter(|(name, _)| templates.contains_key(name.as_str()));
            used.for_each(|(_, at)| *at = now);
            lacking
        });
        let made = unknown.iter().map(|(name, template)| self.make(api, pace, name, template));
        join_all(made).await.into_iter().collect()
    }

    async fn make<C: Clock>(
        &self,
        api: &impl Ec2Api,
        pace: &Pace<C>,
        name: &str,
        template: &LaunchTemplate,
    ) -> Result<(), ApiError> {
        let request = request(name, template).dated(pace.now());
        let call = async || api.create_launch_template(&request, false).await;
        match pace.call(Action::CreateLaunchTemplate, 1, call).await {
            Err(error) if error.class != FailureClass::Conflict => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.with(|known| known.used.insert(name.to_owned(), pace.now()));
        Ok(())
    }

    /// EC2 does not have them (any more), whatever is known here.
    pub fn forget<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        self.with(|known| {
            for name in names {
                known.used.remove(name);
            }
        });
    }

    /// Deletes what nothing uses, if it is time for that. What can not be deleted is tried again the next time.
    pub async fn sweep<C: Clock>(&self, api: &impl Ec2Api, pace: &Pace<C>, identity: &Identity) {
        let now = pace.now();
        let is_due = self.with(|known| {
            known.count_anew(now);
            let is_due = known.swept_at.is_none_or(|at| now.duration_since(at) >= SWEPT_EVERY);
            if is_due {
                known.swept_at = Some(now);
            }
            is_due
        });
        if !is_due {
            return;
        }
        let owned = [
            Filter::new(format!("tag:{}", tags::owner_key(&identity.cluster)), ["owned"]),
            Filter::new("launch-template-name", [format!("{NAME_PREFIX}*")]),
        ];
        let ask = async |page: Option<String>| api.describe_launch_templates(&owned, page.as_deref()).await;
        let Ok(listed) = pages::all(Action::DescribeLaunchTemplates, ask).await else { return };
        for name in self.to_sweep(&listed, now) {
            self.forget([name.as_str()]);
            let call = async || api.delete_launch_template(&name).await;
            if let Err(error) = pace.call(Action::DeleteLaunchTemplate, 1, call).await
                && error.class != FailureClass::NotFound
                && error.class != FailureClass::TemplateGone
            {
                tracing::warn!(template = name, error = error.text(), "a launch template that nothing uses stays");
                return;
            }
        }
    }

    fn to_sweep(&self, listed: &[ListedTemplate], now: Timestamp) -> Vec<String> {
        self.with(|known| {
            let names: BTreeSet<&str> = listed.iter().map(|one| one.name.as_str()).collect();
            known.first_seen.retain(|name, _| names.contains(name.as_str()));
            let templates: Vec<KnownTemplate> = listed
                .iter()
                .map(|one| KnownTemplate {
                    id: one.id.clone(),
                    name: one.name.clone(),
                    first_seen: *known.first_seen.entry(one.name.clone()).or_insert(now),
                    last_used: known.used.get(&one.name).copied(),
                })
                .collect();
            // A launch names its templates anew each time it is made, which takes minutes at most.
            let unused = unused(&templates, &BTreeSet::new(), UNUSED_FOR, now);
            unused.into_iter().take(SWEPT_AT_ONCE).map(|template| template.name.clone()).collect()
        })
    }
}

/// The call that makes a template.
pub fn request(name: &str, template: &LaunchTemplate) -> LaunchTemplateRequest {
    let client_token = name.trim_start_matches(NAME_PREFIX).to_owned();
    LaunchTemplateRequest { name: name.to_owned(), client_token, template: template.clone() }
}
