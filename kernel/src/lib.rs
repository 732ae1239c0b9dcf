//! shoal's hot path in Rust: plain records of one source partition into capped contributions.
//!
//! The specification is the Python code, the *twin*: `shoal/stream/bound.py` and what it stands on. The kernel takes a
//! record only if it is of a plain form, in which it surely does what the twin does, and stops in front of any other.
//! The twin then takes that one, over the same stores and queues, and the kernel goes on after it. So both are always
//! in one state, and which of them took a record cannot be told from what they send.
//!
//! No code here is `unsafe`.

#![forbid(unsafe_code)]

mod batches;
mod clock;
mod deltas;
mod entries;
mod groups;
mod json;
mod lane;
mod lines;
mod messages;
mod numbers;
mod partitioning;
mod pseudonyms;
mod python;
mod queue;
mod rules;
mod spec;
mod store;
mod times;
