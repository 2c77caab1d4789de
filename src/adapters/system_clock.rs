//! The clock of this machine, where there is no cluster whose time would count.

use jiff::Timestamp;

use crate::ports::Clock;

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this adapter is a clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
