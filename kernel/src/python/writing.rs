//! Record batches that are to be written, as Python sees them.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::writing::{Batch, Content};

/// A batch of a transaction.
#[pyclass(module = "shoal_kernel")]
pub struct NewBatch(Batch);

/// Key, value and headers of a record.
type Written<'py> = (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, Vec<(String, Bound<'py, PyBytes>)>);

#[pymethods]
impl NewBatch {
    /// Put records into as many batches as needed, in order, each of fewer bytes than `full` or one record.
    #[staticmethod]
    fn fill(records: Vec<Written<'_>>, stamp: i64, full: usize) -> Vec<NewBatch> {
        let mut batches: Vec<NewBatch> = vec![];
        for (key, value, headers) in &records {
            let headers: Vec<(&[u8], &[u8])> =
                headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let content = Content {
                key: key.as_ref().map(|raw| raw.as_bytes()),
                value: value.as_ref().map(|raw| raw.as_bytes()),
                headers: &headers,
            };
            let is_in = batches.last_mut().is_some_and(|batch| batch.0.add(&content, full));
            if !is_in {
                let mut batch = Batch::new(stamp);
                batch.add(&content, full);
                batches.push(NewBatch(batch));
            }
        }
        batches
    }

    /// How many records it has.
    fn __len__(&self) -> usize {
        self.0.count() as usize
    }

    /// Its bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.len()
    }

    /// The batch of this producer, whole.
    fn finish<'py>(&mut self, py: Python<'py>, producer: i64, epoch: i16, sequence: i32) -> Bound<'py, PyBytes> {
        let batch = &mut self.0;
        let raw = py.detach(|| batch.finish(producer, epoch, sequence));
        PyBytes::new(py, raw)
    }
}
