//! Cutlist: `terraform plan` for Kubernetes nodes. This page is the architecture; `README.md` is for people who use it,
//! `.github/CONTRIBUTING.md` for people who change it.
//!
//! # Bird's-eye view
//!
//! ```text
//! Git revision --> definitions --+
//! Kubernetes  --> snapshot ------+--> core::plan::decide --> Plan --> render --> post --> gate --> apply --> record
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
//! *Definition*: one document of the repository, parsed and validated, with its place. *Revision*: the commit it was read at.
//! *Snapshot*: the cluster as a value; its file is plain Kubernetes objects. *Catalog*: instance types, offerings, prices.
//! *Step*: create, remove, adopt or hold one node. *Move*: the steps that stand or fall together. *Candidate*: a node that a
//! disruption method may remove. *The reference*: Karpenter 1.14, whose behaviour is matched. Everything else has
//! Karpenter's and Kubernetes' own names.
//!
//! # Code map
//!
//! Four rings. The direction of `use` is [`api`] <- [`core`] <- [`definitions`], [`render`] <- `controller` <- [`cli`];
//! [`adapters`] implement [`ports`] and know [`api`] and the plain data of [`core`], never each other, never the scheduler.
//!
//! - [`api`]: the resource kinds as types: Karpenter's, and our own (`cutlist.dev/v1alpha1`). Plain data.
//! - [`core`] decides. Neither I/O nor clock, and no randomness but the seed. Start at [`core::plan`].
//!   New nodes are chosen on paper: pods that topology binds to zones are sent there first, then a program of whole nodes says what to
//!   buy in each (`core/provision/cheapest/planned.rs`). Both that program and the lower bound are solved by column generation
//!   (`generation.rs`), which asks each offering for its best filling (`filling.rs`: a linear program of a few rows, `whole_pods.rs`:
//!   branch and bound by what that program says); where there are more sizes of pods than it has rows for, those of nearly one size are
//!   one (`grouping.rs`). A weighted sum of resources in its place, and an ascent on the bound, ended 2 to
//!   30 % below what could be proven. A buyer that goes by the prices of the linear program of parts, node by
//!   node, ended 5 to 35 % dearer. Consolidation asks a linear program of its own which nodes are worth keeping
//!   (`core/disrupt/consolidate/keeping`: column generation, too): where half of all nodes could go, the prices of new ones mislead.
//!   How near that comes to the best there is can be proven (`frontier.rs`): with a price on each move the same program bounds what nodes
//!   and moves cost together, so the fewest pods that anybody must move to end at a price. Within 3 % of the price bound that may
//!   be more pods for a dollar than the reference moves: nearness to the bound and few moves are one choice, which is what `payback` is for.
//! - [`definitions`] reads: text to values and findings. It never stops at the first mistake.
//! - [`render`] shows: plans and findings to text, JSON, Markdown, from the serialised form only.
//! - [`ports`]: the traits through which the controller reaches the world, and nothing else.
//! - [`adapters`] touch the world: one folder for each thing that is touched. `kubernetes` is a real cluster: watches feed one
//!   snapshot, and a write is seen by the next look whether or not its event came. `embedded` is a cluster and a cloud in memory. `aws` is
//!   EC2: every call is a method of one trait over plain data, so what decides is built and tested without the SDK.
//! - `controller` runs: observe, plan, post, gate, apply, record. While moves are under way it plans at every look, from what is
//!   there alone: where plans sent each pod stands on the NodeClaims, and the next plan starts from these places
//!   (`core/provision/expected.rs`), or each look would pack, and buy, anew, and kube-scheduler be told two nodes for one pod. What a
//!   look in between believes to be left over, or to be lacking for a few pods that still run, mostly is neither: plans that took nodes
//!   off for the one, and bought for the other, chased each other.
//!   The place of an evicted pod on a node that exists is a wish: its successor is bound before anybody could name a node to
//!   kube-scheduler, which spreads. So nodes take turns (`core/lifecycle/turns.rs`): only pods for one of them leave at a time, and the
//!   others with room are tainted `PreferNoSchedule` meanwhile. Foreseeing what kube-scheduler does instead, in the order of evictions,
//!   and planning for that, ended 1 % dearer, with more plans, and twice as far from the bound under `payback: Never`.
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
//!    `src/core/plan/check/tests.rs::each_pod_once`
//! 7. Diagnostic and reason codes are stable: one code, one meaning, never reused. `tests/lint/main.rs::every_code_has_a_case`
//! 8. Every loop, queue, retry and list has a stated limit; what is dropped is counted.
//!    `tests/tidy.rs::queues_are_bounded`, `src/core/snapshot/tests.rs::lists_inside_lists_and_aliases_have_a_limit`,
//!    `src/definitions/substitution.rs::ends_on_endless_nesting`
//! 9. What kube-scheduler does not take is not bought without end, whatever its reason.
//!    `tests/run/disagreements.rs::what_is_bought_in_vain_is_bounded_in_every_story`

pub mod adapters;
pub mod api;
pub mod cli;
pub mod controller;
pub mod core;
pub mod definitions;
pub mod ports;
pub mod render;
