//! What several tests look at, made once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// By case, whichever test asks first. The others wait for it.
pub struct OnceForEach<R>(Mutex<BTreeMap<PathBuf, Arc<OnceLock<R>>>>);

impl<R: Clone> OnceForEach<R> {
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub fn get(&self, case: &Path, make: impl FnOnce() -> R) -> R {
        let made = Arc::clone(self.0.lock().unwrap().entry(case.to_owned()).or_default());
        made.get_or_init(make).clone()
    }
}
