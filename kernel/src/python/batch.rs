//! Records of batches, or lines of a file, which stay bytes: Python gets an object only for a record that it asks for.

use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PySlice};

use crate::batches::{self, Header, HEADER};
use crate::lines;

/// Bytes of memory that a record takes in `places`.
const PLACE: usize = 8;

/// A record, with the attributes that aiokafka's records have.
#[pyclass(module = "shoal_kernel", frozen, get_all)]
pub struct Record {
    offset: i64,
    timestamp: i64,
    key: Option<Py<PyBytes>>,
    value: Option<Py<PyBytes>>,
    headers: Py<PyList>,
}

/// One batch; `records` is the part of `raw` that holds its records.
struct Piece {
    header: Header,
    raw: PyBackedBytes,
    records: Range<usize>,
}

enum Source {
    Batches(Vec<Piece>),
    Lines { raw: PyBackedBytes, first: i64 }, // the offset of the first line
}

struct Shared {
    source: Source,
    /// For each record the number of its piece and where in the piece it begins; for each line its begin and end.
    places: Vec<(u32, u32)>,
}

impl Shared {
    #[inline(always)]
    fn record(&self, index: usize) -> Option<batches::Record<'_>> {
        let &(one, two) = self.places.get(index)?;
        match &self.source {
            Source::Batches(pieces) => {
                let Piece { header, raw, records } = pieces.get(one as usize)?;
                batches::record(header, &mut raw.get(records.start + two as usize..records.end)?)
            }
            Source::Lines { raw, first } => {
                Some(batches::Record::line(raw.get(one as usize..two as usize)?, first.checked_add(index as i64)?))
            }
        }
    }

    fn size(&self, index: usize) -> usize {
        let (one, two) = self.places[index];
        match &self.source {
            Source::Batches(pieces) => {
                let end = match self.places.get(index + 1) {
                    Some(&(next, end)) if next == one => end as usize,
                    _ => pieces[one as usize].records.len(),
                };
                end - two as usize
            }
            Source::Lines { .. } => (two - one) as usize,
        }
    }
}

/// A sequence of records, from batches or from a file. A slice of it shares the bytes.
#[pyclass(module = "shoal_kernel", frozen)]
pub struct RecordBatch {
    shared: Arc<Shared>,
    range: Range<usize>,
}

impl RecordBatch {
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Value and timestamp of a record.
    #[inline(always)]
    pub fn look(&self, index: usize) -> Option<(Option<&[u8]>, i64)> {
        self.shared.record(self.range.start + index).map(|record| (record.value, record.timestamp))
    }

    fn get<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Record> {
        let broken = || PyValueError::new_err("a batch has changed");
        let record = self.shared.record(self.range.start + index).ok_or_else(broken)?;
        let bytes = |raw: &[u8]| PyBytes::new(py, raw).unbind();
        let headers = record.headers().ok_or_else(broken)?.into_iter();
        let headers: Vec<_> = headers.map(|(name, value)| (name, value.map(bytes))).collect();
        Ok(Record {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(bytes),
            value: record.value.map(bytes),
            headers: PyList::new(py, headers)?.unbind(),
        })
    }
}

#[pymethods]
impl RecordBatch {
    /// Whether the checksum of the batch in `raw[begin:end]` is right.
    #[staticmethod]
    fn is_intact(py: Python<'_>, raw: PyBackedBytes, begin: usize, end: usize) -> bool {
        py.detach(|| raw.get(begin..end).is_some_and(batches::is_intact))
    }

    /// The records of the batch in `raw[begin:end]` from offset `since` on. `body` has its records unpacked, if it is
    /// compressed.
    ///
    /// None if the batch has a form for which it is not certain that aiokafka reads the same.
    #[staticmethod]
    fn read(
        py: Python<'_>,
        raw: PyBackedBytes,
        begin: usize,
        end: usize,
        body: Option<PyBackedBytes>,
        since: i64,
    ) -> Option<RecordBatch> {
        let header = Header::read(raw.get(begin..end)?)?;
        let (raw, records) = match body {
            Some(body) if header.is_compressed => {
                let whole = 0..body.len();
                (body, whole)
            }
            None if !header.is_compressed => (raw, begin + HEADER..end),
            _ => return None,
        };
        let body = raw.get(records.clone())?;
        let places = py.detach(|| batches::walk(&header, body, since))?;
        let places: Vec<_> = places.into_iter().map(|place| (0, place)).collect();
        let range = 0..places.len();
        let source = Source::Batches(vec![Piece { header, raw, records }]);
        Some(RecordBatch { shared: Arc::new(Shared { source, places }), range })
    }

    /// One sequence of all records of these batches.
    #[staticmethod]
    fn join(py: Python<'_>, batches: Vec<Bound<'_, RecordBatch>>) -> PyResult<RecordBatch> {
        let count = batches.iter().map(|batch| batch.get().len()).sum();
        let (mut pieces, mut places) = (vec![], Vec::with_capacity(count));
        for batch in &batches {
            let RecordBatch { shared, range } = batch.get();
            let Source::Batches(more) = &shared.source else {
                return Err(PyTypeError::new_err("lines cannot be joined"));
            };
            let before = pieces.len() as u32;
            pieces.extend(more.iter().map(|one| Piece {
                header: one.header,
                raw: one.raw.clone_ref(py),
                records: one.records.clone(),
            }));
            places.extend(shared.places[range.clone()].iter().map(|&(piece, place)| (before + piece, place)));
        }
        let source = Source::Batches(pieces);
        Ok(RecordBatch { shared: Arc::new(Shared { source, places }), range: 0..count })
    }

    /// The lines in a block of a file, which must end where a line ends. The first one that is not blank has the offset
    /// `first`.
    ///
    /// Returns the lines; their bytes without blank lines, each line ended by a newline; and whether there were blank
    /// lines.
    #[staticmethod]
    fn lines(py: Python<'_>, raw: PyBackedBytes, first: i64) -> PyResult<(RecordBatch, Py<PyBytes>, bool)> {
        let cut = py.detach(|| lines::cut(&raw));
        let cut = cut.ok_or_else(|| PyValueError::new_err("so many lines at once are too long"))?;
        let joined = match (&cut.joined, raw.clone_ref(py).into_pyobject(py)?.cast_into::<PyBytes>()) {
            (None, Ok(bytes)) => bytes.unbind(),
            (None, Err(_)) => PyBytes::new(py, &raw).unbind(),
            (Some(joined), _) => PyBytes::new(py, joined).unbind(),
        };
        let range = 0..cut.places.len();
        let shared = Arc::new(Shared { source: Source::Lines { raw, first }, places: cut.places });
        Ok((RecordBatch { shared, range }, joined, cut.has_blanks))
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, which: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = which.cast::<PySlice>() {
            let found = slice.indices(self.len() as isize)?;
            if found.step != 1 {
                return Err(PyTypeError::new_err("a batch has no slices with steps"));
            }
            let first = self.range.start + found.start as usize;
            let range = first..first + found.slicelength;
            return Ok(Bound::new(py, RecordBatch { shared: self.shared.clone(), range })?.into_any());
        }
        let (index, length) = (which.extract::<isize>()?, self.len() as isize);
        let index = if index < 0 { index + length } else { index };
        if !(0..length).contains(&index) {
            return Err(PyIndexError::new_err("a batch has no such record"));
        }
        Ok(Bound::new(py, self.get(py, index as usize)?)?.into_any())
    }

    /// The offset of the last record; None if the sequence is empty.
    #[getter]
    fn offset(&self) -> Option<i64> {
        let last = self.range.clone().next_back()?;
        self.shared.record(last).map(|record| record.offset)
    }

    /// The bytes of memory that these records take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.range.clone().map(|index| self.shared.size(index) + PLACE).sum()
    }
}
