//! The kernel without what Python sees of it, and what must hold of it for any bytes.
//!
//! The modules are the kernel's own files: none of them is public there, and none of them needs Python.

#![forbid(unsafe_code)]
#![allow(dead_code)] // what only Python calls

#[path = "../../src/batches.rs"]
mod batches;
#[path = "../../src/clock.rs"]
mod clock;
#[path = "../../src/deltas.rs"]
mod deltas;
#[path = "../../src/entries.rs"]
mod entries;
#[path = "../../src/groups.rs"]
mod groups;
#[path = "../../src/json/mod.rs"]
mod json;
#[path = "../../src/lane.rs"]
mod lane;
#[path = "../../src/lines.rs"]
mod lines;
#[path = "../../src/messages.rs"]
mod messages;
#[path = "../../src/numbers.rs"]
mod numbers;
#[path = "../../src/partitioning.rs"]
mod partitioning;
pub mod properties;
#[path = "../../src/pseudonyms.rs"]
mod pseudonyms;
#[path = "../../src/queue.rs"]
mod queue;
#[path = "../../src/rows.rs"]
mod rows;
#[path = "../../src/rules/mod.rs"]
mod rules;
#[path = "../../src/store/mod.rs"]
mod store;
#[path = "../../src/times.rs"]
mod times;
#[path = "../../src/words.rs"]
mod words;
#[path = "../../src/writing.rs"]
mod writing;
