//! The Python module: stores, queues, the reader that fills them, and batches to be written.

mod batch;
mod queue;
mod reader;
mod rows;
mod stores;
mod writing;

use pyo3::prelude::*;

pub use batch::{Record, RecordBatch};
pub use queue::{take, Queue};
pub use reader::Reader;
pub use rows::runs;
pub use stores::Stores;
pub use writing::NewBatch;

/// The version of the interface below. Raise it with every change of it, together with `INTERFACE` in
/// `shoal/agents/lane.py`: shoal refuses a kernel with another number.
const INTERFACE: u32 = 11;
/// The version of the package; shoal refuses a kernel of another version than its own.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The hot path of shoal's bound stage; without it shoal's own Python does the same.
#[pymodule]
mod shoal_kernel {
    #[pymodule_export]
    use super::{runs, take, NewBatch, Queue, Reader, Record, RecordBatch, Stores};

    #[pymodule_export]
    const INTERFACE: u32 = super::INTERFACE;

    #[pymodule_export]
    const VERSION: &str = super::VERSION;
}
