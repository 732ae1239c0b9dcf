//! What metrics have to send, as Python sees it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::queue::{self, Block};

/// Group, start of a tick, and its sums.
type GroupSums<'py> = (Option<String>, i64, Bound<'py, PyList>);

/// What one metric has to send.
#[pyclass(module = "shoal_kernel")]
pub struct Queue(pub(super) queue::Queue);

#[pymethods]
impl Queue {
    #[new]
    fn new(key: &[u8], every: Option<i64>, merges: bool) -> PyResult<Self> {
        if key.len() > 64 || every.is_some_and(|every| every < 1) {
            return Err(PyValueError::new_err("a key has at most 64 bytes, and a tick a length"));
        }
        Ok(Queue(queue::Queue::new(key, every, merges)))
    }

    fn send(&mut self, group: Option<&str>, effective: i64, user: &[u8], block: (u64, u32, u64, i128, Option<u8>)) {
        let (number, level, samples, total, part) = block;
        self.0.send(group.map(str::as_bytes), effective, user, Block { number, level, samples, total, part });
    }

    /// [(group, rows)], in the order of their first rows; the queue has none of them any more.
    fn take_rows<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<(Option<String>, Bound<'py, PyList>)>> {
        let mut taken = vec![];
        for (group, rows) in self.0.take_rows() {
            let list = PyList::empty(py);
            for row in rows {
                let name = PyString::new(py, std::str::from_utf8(&row.hexadecimal()).expect("digits are ASCII"));
                list.append((row.effective, name, row.number, row.level, row.samples, row.total))?;
            }
            taken.push((self.0.group(group).map(str::to_owned), list));
        }
        Ok(taken)
    }

    /// [(group, start of the tick, [cell, samples, total, ...])], in the order of their first samples; likewise.
    fn take_partials<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<GroupSums<'py>>> {
        let mut taken = vec![];
        for partial in self.0.take_partials() {
            let flat = PyList::empty(py);
            for sums in &partial.cells {
                flat.append(sums.cell)?;
                flat.append(sums.samples)?;
                flat.append(sums.total)?;
            }
            taken.push((self.0.group(partial.group).map(str::to_owned), partial.tick * self.0.every(), flat));
        }
        Ok(taken)
    }
}
