//! Lists that come in pages: all of them are followed, up to a limit.

use super::Action;
use super::failure::ApiError;
use crate::adapters::aws::failures::FailureClass;

/// A list of 1,000 instances a page would be 500,000 of them; an endless one ends here.
pub const PAGES_MAX: usize = 500;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// With what to ask for the next one; `None` at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The only page of a list.
    pub fn last(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Every page of a list, or the first failure: a list without its end looks like one in which things are missing.
/// An empty page in the middle is no end, since EC2 filters what it has cut.
pub async fn all<T>(
    action: Action,
    mut ask: impl AsyncFnMut(Option<String>) -> Result<Page<T>, ApiError>,
) -> Result<Vec<T>, ApiError> {
    let mut items = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let page = ask(token.clone()).await?;
        items.extend(page.items);
        let next = page.next.filter(|next| !next.is_empty());
        // The same token twice would ask for the same page for ever.
        if next.is_none() || next == token {
            return Ok(items);
        }
        token = next;
    }
    let message = format!("the list has more than {PAGES_MAX} pages");
    Err(ApiError { action, class: FailureClass::Invalid, code: "TooManyPages".to_owned(), message })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::Future;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn pages_are_followed_also_over_empty_ones() {
        let calls = Cell::new(0);
        let all = block_on(all(Action::DescribeInstances, async |token: Option<String>| {
            calls.set(calls.get() + 1);
            Ok(match token.as_deref() {
                None => Page { items: vec![1, 2], next: Some("a".to_owned()) },
                Some("a") => Page { items: Vec::new(), next: Some("b".to_owned()) },
                Some(_) => Page { items: vec![3], next: Some(String::new()) },
            })
        }));
        assert_eq!(all.unwrap(), [1, 2, 3]);
        assert_eq!(calls.get(), 3);
    }

    #[test]
    fn a_list_that_breaks_off_is_no_list() {
        let failed = block_on(all(Action::DescribeInstances, async |token: Option<String>| match token {
            None => Ok(Page { items: vec![1], next: Some("a".to_owned()) }),
            Some(_) => Err(ApiError::of(Action::DescribeInstances, "RequestLimitExceeded", "slow down")),
        }));
        assert_eq!(failed.unwrap_err().class, FailureClass::Throttled);
    }

    #[test]
    fn a_list_without_end_ends() {
        let calls = Cell::new(0_u32);
        let endless = block_on(all(Action::DescribeImages, async |_: Option<String>| {
            calls.set(calls.get() + 1);
            Ok(Page { items: vec![0], next: Some(calls.get().to_string()) })
        }));
        assert_eq!(endless.unwrap_err().code, "TooManyPages");
        let same = block_on(all(Action::DescribeImages, async |_: Option<String>| {
            Ok(Page { items: vec![0], next: Some("same".to_owned()) })
        }));
        assert_eq!(same.unwrap(), [0, 0]);
    }
}
