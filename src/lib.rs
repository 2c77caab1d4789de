//! Cutlist: `terraform plan` for Kubernetes nodes. This page is the architecture; `README.md` is for people who use it,
//! `.github/CONTRIBUTING.md` for people who change it.
//!
//! # Bird's-eye view
//!
//! ```text
//! Git revision --> definitions --+
//! Kubernetes  --> snapshot ------+--> core::planner::decide --> Plan --> render --> post --> gate --> apply --> record
//! EC2         --> catalog -------+
//! ```
//!
//! Three values go in: the definitions of one Git revision, the cluster at one moment, and what EC2 sells. One pure function
//! makes a plan of them: a list of steps, and a report of everything that was not done and why. The plan is shown where
//! people review it, and only then carried out, by code that decides nothing. `cutlist plan`, the controller and the preview
//! of a pull request call the same function, so what was reviewed is what runs.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | definition | one document of the repository, parsed and validated, with its place |
//! | revision | the commit that definitions were read at |
//! | snapshot | the cluster as a value; its file is plain Kubernetes objects |
//! | catalog | instance types, offerings, prices |
//! | step, move | a step creates, removes, adopts or holds one node; the steps of a move stand or fall together |
//! | candidate | a node that a disruption method may remove |
//! | method, pass | one reason for which nodes go (`core/disrupt/methods`, the table `METHODS`); one look of all methods at all candidates |
//! | ledger | what disruption budgets have left while a plan is made |
//! | target, rooms | a node as a place for pods that lose theirs; what is free on such nodes |
//! | guide, allotment | which nodes displaced pods should rather go to; how many of each size a purchase or a node should take |
//! | the reference | Karpenter 1.14, whose behaviour is matched |
//! | node, machine, host | a node is what pods run on; of the snapshot it is a machine, a NodeClaim with its Node; of the engine a host, which a node to be bought is too; machine and host have one number (`HostIndex`) |
//! | class (of pods) | pods that are alike for scheduling; a size class is classes that ask for nearly the same |
//! | template, variant | a NodePool compiled; one of its combinations of labels and taints |
//! | backlog, demand | pods that wait, and how many of each class are to be placed |
//! | offer, offering | what a NodePool may buy; one instance type in one zone for one capacity type |
//! | purchase | a node that a plan buys |
//! | bin, item, piece, column | words of cutting stock problems (`core/programs`): a node, pods of one size, one of them, and one filling of a node |
//! | worth | the dual price of a pod: what it adds to the cheapest fleet |
//! | keeping | the program that says which nodes are worth what they cost |
//! | looks, budget of work | what a search may do, counted and not timed, so that the same input gives the same bytes |
//! | nominated | `status.nominatedNodeName`: where kube-scheduler tries a pod first |
//! | turn | one node's time to receive pods that are evicted elsewhere |
//! | doubled | nodes that say that they are one instance: at most one of them has the room that each says it has |
//! | going first | a node that goes before its replacement is bought, since there is no room for both |
//! | own place | what a node itself takes of a limit, a reservation or a quota, where nothing else keeps it from being replaced: it goes first |
//! | heir | the NodePool that adopts the nodes of one that is gone |
//! | held back | a candidate that stays, with its obstacle |
//! | obstacle | what keeps a node from going, or a pod from being bought for: data with figures, said in words in the report |
//! | kind (of a reason) | what reasons with one code have in common, whatever figures and names of nodes and pods are in their sentences |
//! | refusal | why one place does not take one pod (`Refusal`); why no node that exists does (`ExistingRefusal`); of kube-scheduler's filters (`FilterRefusal`); of a move (`MoveRefusal`) |
//! | rollout, canary, wave | nodes that go because definitions changed; the first of them; those that go at one time |
//! | need | pods of one workload that ask for the same, whatever they are called |
//! | payback, horizon | in what time a move must repay itself; over what time moves are compared |
//! | displaced, rehome | pods that lose their node; finding them other places |
//! | quota, scope | something of which there is only so much; whose limit it is |
//! | shortfall | nodes that a static NodePool has too few, and can not have |
//! | relaxation | a preference of a pod that is given up because nothing has room with it |
//! | neighbour | a DaemonSet on nodes to come, whose pod takes room there |
//! | breaker | what stops launches of a pool after early ends, as in an electric circuit |
//! | doubt | what of the cluster is not known as it is now; nothing ends on its word |
//! | fidelity | planned against what happened: of pods, of nodes and of prices |
//! | early end | an instance that ends before its node joins |
//! | look | one time that the controller sees everything and does what can be done |
//! | notice | what is told about an object of the cluster as a Kubernetes Event |
//! | open (of a definition) | it has a variable without a value; beside a cluster it is settled by what the cluster shows |
//! | errand | requests to a forge that belong together: what one of them waited for in vain, no other waits for again |
//! | hidden, mask | a value that nobody is shown; what puts its name in its place |
//! | seal | the last line of a comment on a forge: a hash that tells whether somebody edited it |
//! | firing | one time at which the schedule of a budget begins |
//! | preview | what a change in Git would do to clusters, before it is merged |
//! | review, round | pull requests that are planned, posted and answered; one look at all that are open |
//! | withheld | pods whose places the judge refused, and that the plan is made again without |
//! | set aside | left alone for a while, because a call about it failed; what is done for the others goes on |
//! | surroundings | what something depends on beside that which it is about: ports, facts, other programs |
//! | standing | where one of several stands: a file among those that were read, a watch, who stands for election |
//! | manner | how something is written or shown, where there is a choice |
//! | judge | the check of a plan that shares no code with the planner, but for the record of failed rollouts |
//!
//! # Code map
//!
//! Four rings. The direction of `use` is [`api`] <- [`core`] <- [`definitions`], [`render`] <- `controller` <- [`cli`];
//! [`adapters`] implement [`ports`] and know [`api`] and the plain data of [`core`], never each other, never the scheduler.
//! [`api`] and [`core`] are crates of their own (`cutlist-api`, `cutlist-core`), which this one shows as rings like the others: the compiler
//! holds their direction, and a change further out does not build them again. `tests/rings.rs` holds the rest, and that no files use each other
//! in a circle, but for those that it names with a reason.
//!
//! - [`api`]: the resource kinds as types: Karpenter's, and our own (`cutlist.dev/v1alpha1`). Plain data.
//! - [`core`] decides. Neither I/O nor clock, and no randomness but the seed. Its page lists the rooms in their order; start at
//!   [`core::planner`].
//! - [`definitions`] reads: text to values and findings. It never stops at the first mistake. Its room `editing` knows what stands, and can
//!   stand, at a place of a text that is being typed; for an editor a reading keeps what did not change (`definitions/memory.rs`). Its room
//!   `migration` rewrites what is of a version before 1: each edit is refused where the text would then say anything but what is meant.
//! - [`render`] shows: plans and findings to text, JSON, Markdown, from the serialised form only.
//! - [`ports`]: the traits through which the controller reaches the world, and nothing else: `ports.rs` for nodes, and a file each for
//!   pull requests, notifications, and what operators look at.
//! - [`adapters`] touch the world: one folder for each thing that is touched. `kubernetes` is a real cluster: watches feed one
//!   snapshot, and a write is seen by the next look whether or not its event came. `embedded` is a cluster and a cloud in memory. `aws` is
//!   EC2: every call is a method of one trait over plain data, so what decides is built and tested without the SDK.
//! - `controller` runs: observe, plan, post, gate, apply, record. Its page lists the rooms in their order. It plans again at every look, and
//!   keeps to the places that earlier plans gave (`core/provision/expected.rs`). Nodes take turns in receiving pods
//!   (`core/lifecycle/eviction_order.rs`).
//! - [`cli`]: one file per command. The only code that builds adapters, and the only one that reads settings.
//!
//! # Invariants
//!
//! Each is held by the tests it names; `tests/tidy.rs` checks that they exist.
//!
//! 1. [`core`], [`definitions`] and [`render`] do no I/O and read no clock; the same input gives the same bytes.
//!    `tests/rings.rs::each_ring_uses_only_what_it_may`
//! 2. A plan can be written to a file, carried elsewhere, and applied there, or refused with a typed reason: stale parent,
//!    changed generation, superseded. `tests/render.rs::json_is_the_plan_and_nothing_else`
//! 3. The applier decides nothing. Each step has preconditions and is idempotent; a crash between any two calls loses no node,
//!    leaks no instance and launches nothing twice.
//!    `tests/run/crashes.rs::no_crash_loses_a_node_leaks_an_instance_or_launches_twice`
//! 4. `lint` needs no network. `plan --snapshot FILE` needs no cluster. `tests/rings.rs::each_ring_uses_only_what_it_may`
//! 5. Nothing is removed that a posted plan did not name.
//!    `tests/run/faults.rs::nothing_is_created_or_removed_that_no_posted_plan_named`
//! 6. Every candidate held back and every pod left pending has a reason code in the report.
//!    `src/core/check/tests.rs::each_pod_once`
//! 7. Diagnostic and reason codes are stable: one code, one meaning, never reused. `tests/lint/main.rs::every_code_has_a_case`
//! 8. Every loop, queue, retry and list has a stated limit; what is dropped is counted.
//!    `tests/tidy.rs::queues_are_bounded`, `src/core/snapshot/tests.rs::lists_inside_lists_and_aliases_have_a_limit`,
//!    `src/definitions/substitution.rs::ends_on_endless_nesting`
//! 9. What kube-scheduler does not take is not bought without end, whatever its reason.
//!    `tests/run/disagreements.rs::what_is_bought_in_vain_is_bounded_in_every_story`

pub mod adapters;
pub mod cli;
pub mod controller;
pub mod definitions;
pub mod ports;
pub mod render;

pub use cutlist_api as api;
pub use cutlist_core as core;

#[cfg(test)]
#[path = "core/testing.rs"]
#[expect(dead_code, reason = "the unit tests of the core use all of it")]
mod testing;
