//! One object as a watch tells of it.

use super::doubts::Unreadable;
use super::kinds::Stored;
use super::parse::from_json;

/// The object that is written in JSON; or what can be told of one that does not have the shape of its kind. Fails where it can not be told
/// which one it is.
pub fn read_one<T: Stored>(text: &str) -> serde_json::Result<Result<T, Box<Unreadable>>> {
    let mistake = match from_json(text) {
        Ok(object) => return Ok(Ok(object)),
        Err(mistake) => mistake,
    };
    let unreadable = mistake.value.map(|value| Unreadable::new(T::KIND, &value, &mistake.said));
    unreadable
        .filter(|unreadable| !unreadable.name.is_empty())
        .map(|unreadable| Err(Box::new(unreadable)))
        .ok_or(mistake.error)
}
