//! Where events go.

use jiff::Timestamp;

use super::Event;

type Recorder = dyn FnMut(Timestamp, &Event);

/// Hands each event to whoever shows or keeps it.
pub struct Journal {
    recorder: Box<Recorder>,
}

impl Journal {
    pub fn new(recorder: impl FnMut(Timestamp, &Event) + 'static) -> Self {
        Self { recorder: Box::new(recorder) }
    }

    pub fn say(&mut self, now: Timestamp, event: &Event) {
        (self.recorder)(now, event);
    }
}
