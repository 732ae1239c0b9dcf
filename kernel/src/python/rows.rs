//! Rows that were written as JSON, as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::rows;

/// Key as JSON, where its rows begin and end in the bytes, their samples and their earliest time.
type Run<'py> = (Bound<'py, PyBytes>, usize, usize, u64, i64);

/// What there is of each key in an object of rows by key; None if it is not written as a queue writes it.
#[pyfunction]
pub fn runs<'py>(py: Python<'py>, raw: &[u8]) -> Option<Vec<Run<'py>>> {
    let found = py.detach(|| rows::runs(raw))?;
    let run = |run: rows::Run| {
        let key = PyBytes::new(py, &raw[run.key]);
        (key, run.rows.start, run.rows.end, run.samples, run.earliest)
    };
    Some(found.into_iter().map(run).collect())
}
