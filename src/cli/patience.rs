//! What is waited for, said where its answer takes long: to whoever watches, a process that says nothing hangs.

use std::time::Duration;

use tokio::time::sleep;

use crate::cli::output;

/// Most answers come within a second.
const SAID_AFTER: Duration = Duration::from_secs(10);
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// The answer, however long it takes. `what` is waited for: the rest of a sentence.
pub async fn awaited<T>(what: &str, answer: impl Future<Output = T>) -> T {
    said_until(what, output::say, answer).await
}

async fn said_until<T>(what: &str, say: impl Fn(&str), answer: impl Future<Output = T>) -> T {
    tokio::pin!(answer);
    let (mut waited, mut pause) = (Duration::ZERO, SAID_AFTER);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = sleep(pause) => {}
        }
        waited = waited.saturating_add(pause);
        pause = SAID_AGAIN;
        say(&format!("waits for {what}: no answer for {} seconds", waited.as_secs()));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_said_now_and_then() {
        let said = RefCell::new(Vec::new());
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        let after = |seconds: u64| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        };
        assert_eq!(said_until("the lease", say, after(9)).await, 9);
        assert_eq!(said.take(), [""; 0]);
        assert_eq!(said_until("the lease", say, after(135)).await, 135);
        let expected = [10, 70, 130].map(|seconds| format!("waits for the lease: no answer for {seconds} seconds"));
        assert_eq!(said.take(), expected);
    }
}
