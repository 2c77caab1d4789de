//! The account's quotas for instances, and what runs under them. Where they may not be asked, plans are made without them, and say so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use crate::adapters::aws::api::{ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::instances;
use crate::adapters::aws::resolution::known::LastAnswer;
use crate::api::cloud_facts::VcpuQuotaUse;
use crate::core::catalog::InstanceType;
use crate::core::catalog::vcpu_quotas::{VCPU_QUOTAS, code_of};
use crate::ports::{Instance, not_to_come};

/// A quota changes when somebody asks AWS for more, which takes hours.
const QUOTAS_LAST: SignedDuration = SignedDuration::from_hours(6);
/// Others of the account launch and end instances, too.
const USE_LASTS: SignedDuration = SignedDuration::from_mins(5);
/// EC2 shows an instance within so long after its launch.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// More are not told apart from what EC2 will count soon.
const LAUNCHED_MAX: usize = 10_000;

/// By code, virtual processors.
type Vcpus = BTreeMap<&'static str, u64>;

#[derive(Debug, Default)]
pub struct Quotas {
    /// Held while AWS is asked.
    answers: Mutex<Answers>,
    /// What was launched here and is not counted yet. Apart, so that a launch waits for no answer.
    launched: std::sync::Mutex<BTreeMap<String, Launched>>,
}

/// By the id of its instance.
#[derive(Debug)]
struct Launched {
    code: &'static str,
    vcpus: u64,
    at: Timestamp,
}

#[derive(Debug, Default)]
struct Answers {
    quotas: LastAnswer<Vcpus>,
    used: LastAnswer<Vcpus>,
    /// The instances that the use was counted of.
    counted: BTreeSet<String>,
}

impl Quotas {
    /// Instances that were launched, which count from now on. The same may be given again.
    pub fn launched<'i>(&self, instances: impl Iterator<Item = &'i Instance>, types: &[InstanceType], now: Timestamp) {
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        for instance in instances {
            let id = instances::instance_id(&instance.provider_id);
            let code = code_of(&instance.instance_type, &instance.capacity_type);
            let vcpus = types.iter().find(|it| it.name == instance.instance_type).and_then(InstanceType::vcpus);
            if let Some(((id, code), vcpus)) = id.zip(code).zip(vcpus)
                && launched.len() < LAUNCHED_MAX
            {
                launched.entry(id.to_owned()).or_insert(Launched { code, vcpus, at: now });
            }
        }
    }

    /// That one of them ends.
    pub fn ended(&self, id: &str) {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
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
        if answers.used.is_due(USE_LASTS, now) {
            match used(api, types).await {
                Ok((used, counted)) => {
                    answers.used.record(Ok(used), now);
                    answers.counted = counted;
                }
                Err(error) => answers.used.record(Err(error), now),
            }
        }
        let used = self.with_what_came(&answers);
        let quotas = answers.quotas.value().into_iter().flatten();
        let of_quota = |(code, vcpus): (&&str, &u64)| VcpuQuotaUse {
            code: (*code).to_owned(),
            vcpus: *vcpus,
            used: used.as_ref().map(|used| used.get(code).copied().unwrap_or_default()),
        };
        quotas.map(of_quota).collect()
    }

    /// What was counted, and what was launched since.
    fn with_what_came(&self, answers: &Answers) -> Option<Vcpus> {
        let mut used = answers.used.value()?.clone();
        let counted_at = answers.used.answer.as_ref().map(|answer| answer.at);
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        // One that EC2 should have shown, and did not, has ended.
        launched.retain(|id, it| {
            let was_seen = answers.counted.contains(id);
            let was_missed = counted_at.is_some_and(|at| {
                it.at = not_to_come(it.at, at);
                at.duration_since(it.at) >= SHOWN_WITHIN
            });
            !was_seen && !was_missed
        });
        launched.values().for_each(|it| *used.entry(it.code).or_default() += it.vcpus);
        Some(used)
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

/// What all instances of the account that run, or start, count together, and their ids. One of a type that is not sold in the region does not count: there
/// is no such instance.
async fn used(api: &impl Ec2Api, types: &[InstanceType]) -> Result<(Vcpus, BTreeSet<String>), ApiError> {
    let vcpus: BTreeMap<&str, u64> = types.iter().filter_map(|it| Some((it.name.as_str(), it.vcpus()?))).collect();
    let (mut used, mut counted) = (Vcpus::new(), BTreeSet::new());
    for instance in instances::of_account(api).await? {
        let code = code_of(&instance.instance_type, instances::capacity_type(&instance));
        if let Some((code, vcpus)) = code.zip(vcpus.get(instance.instance_type.as_str())) {
            *used.entry(code).or_default() += vcpus;
        }
        counted.insert(instance.id);
    }
    Ok((used, counted))
}
