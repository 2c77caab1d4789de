//! `cutlist lsp`
//!
//! One thread reads what the editor sends; this one does everything else, message by message. It takes all that waits before it looks at
//! the definitions again, so that somebody who types quickly is looked at once: nothing here needs a clock.

mod answers;
mod capabilities;
mod documents;
mod folders;
mod framing;
mod published;
mod session;

use std::io;
use std::sync::mpsc::Receiver;

use anyhow::Context;

use super::arguments::{DefinitionArguments, LspArguments};
use super::exit::{Failure, Outcome};
use framing::Incoming;
use session::{End, Session};

/// So many messages are taken before the definitions are looked at, whatever still waits.
const BATCH_MAX: usize = 256;

pub fn run(arguments: &LspArguments) -> Result<Outcome, Failure> {
    let incoming = framing::read_in_background(io::stdin());
    let mut out = io::stdout().lock();
    let mut session = Session::new(&arguments.definitions);
    loop {
        let end = session.take(batch(&incoming));
        let mut written = framing::write_all(&mut out, session.outgoing());
        if end.is_none() {
            // What was asked is answered before this, which takes longer.
            session.look();
            written = written.and_then(|()| framing::write_all(&mut out, session.outgoing()));
        }
        match end {
            Some(End::Clean) => return Ok(Outcome::Clean),
            Some(End::Broken(why)) => return Err(failure(why)),
            Some(End::Abrupt) => return Err(failure(anyhow::anyhow!("the editor went without `shutdown`"))),
            None => written.context("the editor does not read any more").map_err(failure)?,
        }
    }
}

/// A whole conversation, which waits for nothing: what is written after each message of the stream, with what is found then. For who tries
/// any input and wants the same from the same.
pub fn converse(stream: &mut impl io::BufRead) -> Vec<String> {
    let arguments = DefinitionArguments::default();
    let mut session = Session::new(&arguments);
    let mut written = Vec::new();
    while session.take(vec![framing::next(stream)]).is_none() {
        session.look();
        written.extend(session.outgoing());
    }
    written.extend(session.outgoing());
    written
}

/// At least one message, and all that wait behind it.
fn batch(incoming: &Receiver<Incoming>) -> Vec<Incoming> {
    let first = incoming.recv().unwrap_or(Incoming::Ended(None));
    let others = std::iter::from_fn(|| incoming.try_recv().ok()).take(BATCH_MAX);
    std::iter::once(first).chain(others).collect()
}

fn failure(error: impl Into<anyhow::Error>) -> Failure {
    let hint = "an editor starts this and speaks the Language Server Protocol with it: see examples/editors";
    Failure::failed(error).with_hint(hint)
}
