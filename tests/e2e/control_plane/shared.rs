//! What all processes of one control plane share: its folder, and the watchdog over both.

use std::cell::{RefCell, RefMut};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::watchdog::Watchdog;

#[derive(Clone)]
pub struct Shared(Rc<Inner>);

struct Inner {
    folder: PathBuf,
    watchdog: RefCell<Watchdog>,
}

impl Shared {
    /// A new folder, which goes when the last process has gone, or when the test is killed.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("cutlist-e2e-").tempdir().unwrap().keep();
        let watchdog = RefCell::new(Watchdog::start(&folder));
        Self(Rc::new(Inner { folder, watchdog }))
    }

    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    pub fn watchdog(&self) -> RefMut<'_, Watchdog> {
        self.0.watchdog.borrow_mut()
    }
}
