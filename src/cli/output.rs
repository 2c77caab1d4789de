//! What commands print on standard output. A reader that closes the pipe has seen enough, which is no error.

use std::io::Write;

/// For people: what is no terminal gets it without terminal escapes.
pub fn text(text: &str) {
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    let _closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// For programs, as it is: looking for escapes in megabytes of JSON takes as long as making them.
pub fn data(text: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
