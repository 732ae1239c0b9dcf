//! The stores of accounts, as Python sees them.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::deltas::Packed;
use crate::store::{self, Overflow};

impl From<Overflow> for PyErr {
    /// The error that the twin raises for the same reason.
    fn from(_: Overflow) -> PyErr {
        PyOverflowError::new_err("a number of an account is too large, or there are more than 2**32 accounts of a kind")
    }
}

/// Period, how many names, their entries, and what these cost.
type PyPacked<'py> = (i64, usize, Bound<'py, PyBytes>, usize);

fn in_python(py: Python<'_>, (period, count, entries, cost): Packed) -> PyPacked<'_> {
    (period, count, PyBytes::new(py, &entries), cost)
}

/// The stores of one metric's accounts, by period.
#[pyclass(module = "shoal_kernel")]
pub struct Stores(pub(super) store::Stores);

#[pymethods]
impl Stores {
    #[new]
    fn new(length: Option<i64>, widths: Vec<usize>, durable: bool) -> PyResult<Self> {
        if widths.iter().any(|&width| width > 16) || length.is_some_and(|length| length < 1) {
            return Err(PyValueError::new_err("a number has at most 16 bytes, and a period a length"));
        }
        Ok(Stores(store::Stores::new(length, widths, durable)))
    }

    /// Make the stores of a period, if there are none.
    fn open(&mut self, period: i64) {
        self.0.of(period);
    }

    fn get(&self, kind: usize, period: i64, name: &[u8]) -> Option<u128> {
        let store = self.0.look(period, kind)?;
        store.find(name).map(|place| store.number(place))
    }

    fn put(&mut self, kind: usize, period: i64, name: &[u8], number: u128) -> PyResult<()> {
        self.0.check_room(1)?;
        let store = &mut self.0.of(period)[kind];
        let place = store.place(name);
        store.put(place, number);
        Ok(())
    }

    /// The names in the order in which they came.
    fn names<'py>(&self, py: Python<'py>, kind: usize, period: i64) -> Vec<Bound<'py, PyBytes>> {
        let Some(store) = self.0.look(period, kind) else { return vec![] };
        (0..store.len() as u32).map(|place| PyBytes::new(py, store.name(place))).collect()
    }

    fn size(&self, kind: usize, period: i64) -> usize {
        self.0.look(period, kind).map_or(0, store::Store::len)
    }

    fn sizes(&self) -> Vec<usize> {
        self.0.sizes()
    }

    fn periods(&self) -> Vec<i64> {
        self.0.periods()
    }

    /// Forget the periods that end by the promise.
    fn close(&mut self, promise: Option<i64>) {
        self.0.close(promise);
    }

    fn clear(&mut self, period: i64) {
        self.0.forget(period);
    }

    fn cleared(&mut self, kind: usize) -> Vec<i64> {
        self.0.cleared(kind)
    }

    /// [(period, how many names, entries, cost)] of what changed since the last call.
    fn changed<'py>(&mut self, py: Python<'py>, kind: usize, full: usize) -> PyResult<Vec<PyPacked<'py>>> {
        Ok(self.0.changed(kind, full)?.into_iter().map(|packed| in_python(py, packed)).collect())
    }

    /// Names in their order, from number `first` on.
    fn pack<'py>(
        &self,
        py: Python<'py>,
        kind: usize,
        period: i64,
        first: usize,
        most: usize,
        full: usize,
    ) -> PyPacked<'py> {
        in_python(py, self.0.pack(kind, period, first, most, full))
    }

    /// Restore entries of a record, without Python's lock: there may be many.
    fn take(
        &mut self,
        py: Python<'_>,
        kind: usize,
        period: i64,
        record: u64,
        entries: &[u8],
        in_order: bool,
    ) -> PyResult<()> {
        let taken = py.detach(|| self.0.take(kind, period, record, entries, in_order));
        taken.ok_or_else(|| PyValueError::new_err("entries are cut off, or have a number that is too large"))
    }

    /// [(end of a run of names, record)]: all was restored.
    fn settle(&mut self, kind: usize, period: i64) -> Vec<(usize, u64)> {
        self.0.settle(kind, period)
    }
}
