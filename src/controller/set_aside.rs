//! Calls that fail for one object each: it is set aside, and what is done for the others goes on.

use crate::ports::PortError;

/// The first of them, to be said and tried again.
#[derive(Debug, Default)]
pub struct SetAside(Option<PortError>);

impl SetAside {
    /// What came of the call; `None`: its object is set aside. `Err`: it is the server that fails.
    pub fn unless<T>(&mut self, outcome: Result<T, PortError>) -> Result<Option<T>, PortError> {
        match outcome {
            Err(error) if error.is_of_one_object() => {
                self.0.get_or_insert(error);
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }

    /// When all was tried.
    pub fn told<T>(self, value: T) -> Result<T, PortError> {
        self.0.map_or(Ok(value), Err)
    }

    pub fn into_first(self) -> Option<PortError> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::PortErrorKind;

    #[test]
    fn one_object_is_set_aside_and_a_server_that_fails_is_not() {
        let failed = |kind| Err::<(), _>(PortError { operation: format!("{kind:?}"), kind, source: None });
        let mut aside = SetAside::default();
        assert!(matches!(aside.unless(Ok(7)), Ok(Some(7))));
        for kind in [PortErrorKind::Refused, PortErrorKind::Denied, PortErrorKind::Internal, PortErrorKind::Permanent] {
            assert!(matches!(aside.unless(failed(kind)), Ok(None)), "{kind:?}");
        }
        assert!(aside.unless(failed(PortErrorKind::Temporary)).is_err());
        assert_eq!(aside.told(()).unwrap_err().operation, "Refused");
    }
}
