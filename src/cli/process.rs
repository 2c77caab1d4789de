//! What commands that take a while have of their process: a runtime, signals, standard output.

use std::io::Write;

use crate::controller::Shutdown;

use super::exit::Failure;
use super::output;

/// On this thread alone; where it is paused, its clock goes on when nothing is left to do.
pub(super) fn runtime(is_paused: bool) -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(is_paused).build().map_err(Failure::failed)
}

/// Text with terminal escapes goes in; what is no terminal gets it without.
pub(super) fn standard_output() -> Box<dyn Write> {
    Box::new(output::Masked::new(anstream::AutoStream::auto(std::io::stdout())))
}

/// The first Ctrl-C asks for an end after the call that is under way; the second does not wait.
pub(super) fn shutdown_on_signal() -> Shutdown {
    let shutdown = Shutdown::default();
    let requested = shutdown.clone();
    listen(async move {
        if told_to_stop().await.is_err() {
            return;
        }
        output::say("stopping after the call that is under way; Ctrl-C again to abort");
        requested.request();
        if told_to_stop().await.is_ok() {
            abort();
        }
    });
    shutdown
}

/// The first Ctrl-C does not wait: for commands that leave nothing behind.
pub(super) fn abort_on_signal() {
    listen(async {
        if told_to_stop().await.is_ok() {
            abort();
        }
    });
}

/// On a thread of its own: a large cluster is planned for in seconds, in which nothing else runs on this one. Without that
/// thread signals do what they do to any process.
fn listen(signals: impl Future<Output = ()> + Send + 'static) {
    let task = move || runtime(false).map(|runtime| runtime.block_on(signals)).unwrap_or_default();
    let _detached = std::thread::Builder::new().name("signals".to_owned()).spawn(task);
}

/// Ctrl-C, or what Kubernetes sends to a container that should end.
pub(super) async fn told_to_stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "nobody wants to wait; nothing is left to clean up")]
pub(super) fn abort() -> ! {
    std::process::exit(130)
}
