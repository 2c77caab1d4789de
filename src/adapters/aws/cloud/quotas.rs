//! The account's quotas for instances, and what runs under them. Where they may not be asked, plans are made without them, and say so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use crate::adapters::aws::api::{ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::instances;
use crate::adapters::aws::resolution::known::Known;
use crate::api::cloud_facts::VcpuQuotaUse;
use crate::core::catalog::InstanceType;
use crate::core::catalog::vcpu_quotas::{VCPU_QUOTAS, code_of};

/// A quota changes when somebody asks AWS for more, which takes hours.
const QUOTAS_LAST: SignedDuration = SignedDuration::from_hours(6);
/// Others of the account launch and end instances, too.
const USE_LASTS: SignedDuration = SignedDuration::from_mins(5);
/// After a launch of our own the use is another one.
const USE_LASTS_AFTER_LAUNCH: SignedDuration = SignedDuration::from_secs(30);

/// By code, virtual processors.
type Vcpus = BTreeMap<&'static str, u64>;

#[derive(Debug, Default)]
pub struct Quotas {
    /// Held while AWS is asked.
    answers: Mutex<Answers>,
    /// Whether instances were launched since the use was counted. Apart, so that a launch waits for no answer.
    has_launched: AtomicBool,
}

#[derive(Debug, Default)]
struct Answers {
    quotas: Known<Vcpus>,
    used: Known<Vcpus>,
}

impl Quotas {
    /// That instances were launched since the use was counted.
    pub fn launched(&self) {
        self.has_launched.store(true, Ordering::Relaxed);
    }

    /// What is known now; asks where that is too old. `types`: what EC2 sells, which says what an instance of each type counts.
    pub async fn now(&self, api: &impl Ec2Api, types: &[InstanceType], now: Timestamp) -> Vec<VcpuQuotaUse> {
        let mut answers = self.answers.lock().await;
        if answers.quotas.is_due(QUOTAS_LAST, now) {
            let asked = quotas(api).await;
            answers.quotas.record(asked, now);
        }
        if answers.quotas.value().is_none() {
            return Vec::new();
        }
        let has_launched = self.has_launched.load(Ordering::Relaxed);
        let use_lasts = if has_launched { USE_LASTS_AFTER_LAUNCH } else { USE_LASTS };
        if answers.used.is_due(use_lasts, now) {
            // What is launched while EC2 counts may be missing in its answer.
            self.has_launched.store(false, Ordering::Relaxed);
            let counted = used(api, types).await;
            self.has_launched.fetch_or(has_launched && counted.is_err(), Ordering::Relaxed);
            answers.used.record(counted, now);
        }
        let used = answers.used.value();
        let quotas = answers.quotas.value().into_iter().flatten();
        let of_quota = |(code, vcpus): (&&str, &u64)| VcpuQuotaUse {
            code: (*code).to_owned(),
            vcpus: *vcpus,
            used: used.map(|used| used.get(code).copied().unwrap_or_default()),
        };
        quotas.map(of_quota).collect()
    }

    /// Why they are not known, or not as they are now, for people.
    pub async fn troubles(&self) -> Vec<String> {
        let answers = self.answers.lock().await;
        let of = |what: &str, trouble: Option<String>| trouble.map(|trouble| format!("{what}: {trouble}"));
        let quotas = of("the account's quotas for instances are not known", answers.quotas.trouble_text());
        let used = of("what runs under the account's quotas is not known", answers.used.trouble_text());
        quotas.into_iter().chain(used).collect()
    }
}

/// Those that the region has.
async fn quotas(api: &impl Ec2Api) -> Result<Vcpus, ApiError> {
    let mut found = Vcpus::new();
    for quota in VCPU_QUOTAS {
        match api.get_service_quota(quota.code).await {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count, and a cast saturates"
            )]
            Ok(answer) => drop(found.insert(quota.code, answer.value as u64)),
            Err(error) if error.class == FailureClass::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// What all instances of the account that run, or start, count together. One of a type that is not sold in the region does not count: there
/// is no such instance.
async fn used(api: &impl Ec2Api, types: &[InstanceType]) -> Result<Vcpus, ApiError> {
    let vcpus: BTreeMap<&str, u64> = types.iter().filter_map(|it| Some((it.name.as_str(), it.vcpus()?))).collect();
    let mut used = Vcpus::new();
    for instance in instances::of_account(api).await? {
        let code = code_of(&instance.instance_type, instances::capacity_type(&instance));
        if let Some((code, vcpus)) = code.zip(vcpus.get(instance.instance_type.as_str())) {
            *used.entry(code).or_default() += vcpus;
        }
    }
    Ok(used)
}
