//! The stores of accounts, as Python sees them.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::store::{self, Change, Kind, Overflow};

fn records<'py>(py: Python<'py>, changes: Vec<Change>) -> Vec<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)> {
    let bytes = |raw: Vec<u8>| PyBytes::new(py, &raw);
    changes.into_iter().map(|(key, value)| (bytes(key), value.map(bytes))).collect()
}

impl From<Overflow> for PyErr {
    /// The error that the twin raises for the same reason.
    fn from(_: Overflow) -> PyErr {
        PyOverflowError::new_err("a number of an account is too large, or there are more than 2**32 accounts of a kind")
    }
}

/// The stores of one metric's accounts, by period.
#[pyclass(module = "shoal_kernel")]
pub struct Stores(pub(super) store::Stores);

#[pymethods]
impl Stores {
    #[new]
    fn new(length: Option<i64>, kinds: Vec<(Vec<u8>, usize)>, durable: bool) -> PyResult<Self> {
        if kinds.iter().any(|&(_, width)| width > 16) || length.is_some_and(|length| length < 1) {
            return Err(PyValueError::new_err("a number has at most 16 bytes, and a period a length"));
        }
        let kinds = kinds.into_iter().map(|(tag, width)| Kind { tag, width }).collect();
        Ok(Stores(store::Stores::new(length, kinds, durable)))
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

    fn restore(&mut self, kind: usize, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.0.check_room(1)?;
        self.0.restore(kind, key, value).ok_or_else(|| PyValueError::new_err("no key or number of an account"))
    }

    /// Complete the restoration: all records were taken.
    fn restored(&mut self) {
        self.0.restored();
    }

    fn changes<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)>> {
        Ok(records(py, self.0.changes()?))
    }

    fn close<'py>(
        &mut self,
        py: Python<'py>,
        promise: Option<i64>,
        most: usize,
    ) -> Vec<(Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>)> {
        records(py, self.0.close(promise, most))
    }
}
