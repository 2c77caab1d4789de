//! CL0015 to CL0023: what is wrong with kustomizations, and which files are read because of them.

use super::Rule;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};

pub static INVALID: Rule = Rule::pass(
    "CL0015",
    "kustomization",
    Error,
    "A kustomization can be built: what it names is there, and its patches fit.",
);
pub static NOT_CARRIED_OUT: Rule = Rule::pass(
    "CL0016",
    "kustomization-in-part",
    Warning,
    "A kustomization has only parts that are carried out here: no charts, generators, transformers or addresses.",
);
pub static WITHOUT_EFFECT: Rule =
    Rule::pass("CL0017", "patch-without-effect", Warning, "The target of a patch means an object that is there.");
pub static APART: Rule = Rule::pass(
    "CL0018",
    "not-in-the-kustomization",
    Note,
    "A file beside a kustomization that does not name it is no part of what is built.",
);
pub static SEVERAL: Rule = Rule::pass(
    "CL0019",
    "several-kustomizations",
    Error,
    "A plan is of one kustomization, where several define the same: name the folder of the one that is meant.",
);
pub static LINK: Rule = Rule::pass(
    "CL0021",
    "link-not-followed",
    Note,
    "A symbolic link that leads out of the repository, or nowhere, is not followed.",
);

pub static SEVERAL_FOLDERS: Rule = Rule::pass(
    "CL0022",
    "several-folders",
    Note,
    "Folders that define the same name are for different clusters, and each is judged alone.",
);

pub static OUTSIDE: Rule = Rule::pass(
    "CL0023",
    "file-outside",
    Warning,
    "The files that a kustomization names lie in its folder or below it.",
);

pub static RULES: &[&Rule] =
    &[&INVALID, &NOT_CARRIED_OUT, &WITHOUT_EFFECT, &APART, &SEVERAL, &LINK, &SEVERAL_FOLDERS, &OUTSIDE];
