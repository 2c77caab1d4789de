//! Says what of the cluster is not seen as it is, while that lasts.

use jiff::Timestamp;

use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::pace::TROUBLE_SAID_AGAIN;
use crate::core::snapshot::Doubts;
use crate::core::snapshot::doubts::Unreadable;

/// What was said last, and when.
#[derive(Debug, Default)]
pub struct Doubted {
    said: Doubts,
    said_at: Option<Timestamp>,
}

impl Doubted {
    /// At once when it is something else than before, and once a minute while it lasts; once more when it is over.
    pub fn tell(&mut self, doubts: &Doubts, now: Timestamp, journal: &mut Journal) {
        if doubts.is_empty() {
            if self.said_at.take().is_some() {
                self.said = Doubts::default();
                journal.say(now, &Event::SeenWhole);
            }
            return;
        }
        // A clock that was set back makes nothing silent for long.
        let is_due =
            self.said_at.is_none_or(|said_at| now < said_at || now.duration_since(said_at) >= TROUBLE_SAID_AGAIN);
        if is_due || self.is_other(doubts) {
            self.said = doubts.clone();
            self.said_at = Some(now);
            journal.say(now, &Event::Doubted { doubts: Box::new(doubts.clone()) });
        }
    }

    /// Of one trouble the causes change from attempt to attempt.
    fn is_other(&self, doubts: &Doubts) -> bool {
        let same_kinds = self.said.kinds.keys().eq(doubts.kinds.keys());
        let objects = |doubts: &Doubts| doubts.unreadable.iter().map(Unreadable::object).collect::<Vec<_>>();
        !same_kinds || self.said.doubled != doubts.doubled || objects(&self.said) != objects(doubts)
    }
}
