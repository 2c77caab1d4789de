//! What is typed about signatures of commits. All of it is the operator's: who commits can not allow themselves anything.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct SigningArguments {
    /// Use a revision only if its commit is signed by an SSH key of this file, which is as `ssh-keygen` takes it (ALLOWED SIGNERS); read each
    /// time
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
    /// Or by an OpenPGP key of this file of armoured public keys, such as that of the forge which makes the merges; read each time
    #[arg(long, value_name = "FILE")]
    pub openpgp_keys: Option<PathBuf>,
    /// Who of them must have signed which change, by path, kind of definition and branch (schemas/signing-policy.json); read each time
    #[arg(long, value_name = "FILE")]
    pub signing_policy: Option<PathBuf>,
}

impl SigningArguments {
    pub fn are_given(&self) -> bool {
        *self != Self::default()
    }
}
