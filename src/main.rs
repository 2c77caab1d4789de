//! The program: parse, run, exit code.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A plan makes and drops many small things.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cutlist::cli::main()
}
