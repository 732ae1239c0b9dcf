//! The hot path of shoal's bound stage: reads plain records of one source partition and queues capped contributions.
//!
//! The Python code is the specification and is called the *twin*: `shoal/stream/bound.py` and the modules it uses. The
//! kernel takes a record only if it has a plain form, for which the kernel is certain to do what the twin does. It stops
//! at any other record; the twin processes that one, with the same stores and queues, and the kernel continues after it.
//! So there is one state, not two, and the output does not show which of the two processed a record.
//!
//! Bytes come in as Kafka batches (`batches`) or as lines of a file (`lines`). `lane` takes them through the parsers
//! (`json`, `numbers`, `times`, `clock`) to the `rules`, which decide what counts. Their accounts are in `store`, and
//! `deltas` writes these to the changelog; contributions wait in `queue`, and `messages` writes them as JSON. `writing`
//! makes the record batches of a transaction. `words` searches bytes eight at a time. `python` is all that Python sees.
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
mod rows;
mod rules;
mod spec;
mod store;
mod times;
mod words;
mod writing;
