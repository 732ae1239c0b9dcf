//! The queues of contributions, as Python sees them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::groups::Groups;
use crate::messages;
use crate::pseudonyms::MOST_KEY_BYTES;
use crate::queue::{self, Block};

/// The contributions of one metric that wait to be sent.
#[pyclass(module = "shoal_kernel")]
pub struct Queue(pub(super) queue::Queue);

#[pymethods]
impl Queue {
    /// `label`: name/version of the metric; `homes`: the number of contributions partitions; `key`: that of the
    /// metric's pseudonyms; `every`: the length of a tick, if there are ticks; `parts`: the most parts of a level.
    #[new]
    fn new(
        metric: &str,
        label: &str,
        homes: u32,
        key: &[u8],
        every: Option<i64>,
        merges: bool,
        parts: u64,
    ) -> PyResult<Self> {
        if key.len() > MOST_KEY_BYTES || homes == 0 || every.is_some_and(|every| every < 1) {
            return Err(PyValueError::new_err("a key has at most 64 bytes, a tick a length, and a topic partitions"));
        }
        Ok(Queue(queue::Queue::new(Groups::new(metric, label, homes), key, every, merges, parts)))
    }

    fn send(&mut self, group: Option<&str>, effective: i64, user: &[u8], block: (u64, u32, u64, i128, Option<u8>)) {
        let (number, level, samples, total, part) = block;
        self.0.send(group.map(str::as_bytes), effective, user, Block { number, level, samples, total, part });
    }
}

/// The rows and the partials of one message, each an object of JSON.
type Part<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Empty the queues; returns for each contributions partition the contents of its messages, which have bounded sizes.
#[pyfunction]
pub fn take<'py>(py: Python<'py>, queues: Vec<Py<Queue>>, homes: usize) -> PyResult<Vec<Vec<Part<'py>>>> {
    let mut queues: Vec<PyRefMut<Queue>> = queues.iter().map(|queue| queue.borrow_mut(py)).collect();
    let mut queues: Vec<&mut queue::Queue> = queues.iter_mut().map(|queue| &mut queue.0).collect();
    if queues.iter().any(|queue| queue.groups.partitions() as usize != homes) {
        return Err(PyValueError::new_err("queues are for other contributions partitions"));
    }
    let taken = py.detach(|| messages::take(&mut queues, homes));
    let taken = taken.map_err(|_| PyTypeError::new_err("Integer exceeds 64-bit range"))?; // orjson's error, in the twin
    let bytes = |raw: &[u8]| PyBytes::new(py, raw);
    let parts =
        |parts: Vec<messages::Part>| parts.iter().map(|part| (bytes(&part.rows), bytes(&part.partials))).collect();
    Ok(taken.into_iter().map(parts).collect())
}
