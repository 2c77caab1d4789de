//! How much an event matters.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Told on the objects concerned; no line of a log or screen, of which there would be thousands.
    Debug,
    Info,
    Warn,
    Error,
}
