//! The reader of one source partition's records.

use std::collections::HashMap;
use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::{Queue, RecordBatch, Stores};
use crate::clock::Clock;
use crate::json::Paths;
use crate::lane::{Lane, LeftOut, Metric, Plan, Value};
use crate::rules::{Home, State, Why};
use crate::spec::{Spec, ValueSpec};

/// The number of records of a list that are converted at a time.
const CHUNK: usize = 256;

/// A clock as Python describes it: path, lateness, `max_ahead`, whether late records are dropped, whether it goes by
/// beats.
type ClockSpec = (Option<String>, i64, i64, bool, bool);

/// Reads the records of one source partition, and counts their samples.
#[pyclass(module = "shoal_kernel")]
pub struct Reader {
    plan: Plan,
    stores: Vec<Vec<Py<Stores>>>, // by metric
    queues: Vec<Py<Queue>>,
    home: Home,
    left_out: LeftOut,
}

#[pymethods]
impl Reader {
    #[new]
    fn new(clocks: Vec<ClockSpec>, metrics: Vec<Spec>, home: Option<(u32, u32)>) -> PyResult<Self> {
        let mut paths = Paths::new();
        let clocks: Vec<Clock> = clocks.into_iter().map(|spec| clock_of(spec, home.is_none(), &mut paths)).collect();
        if metrics.iter().any(|spec| spec.clock >= clocks.len()) {
            return Err(PyValueError::new_err("a metric has no clock"));
        }
        let (mut made, mut stores, mut queues) = (vec![], vec![], vec![]);
        for spec in metrics {
            made.push(Metric {
                clock: spec.clock,
                user: paths.slot(&spec.user),
                group: spec.group.map(|path| paths.slot(&path)),
                value: value_of(spec.value, &mut paths),
                rule: spec.rule.rule()?,
                is_active: true,
            });
            stores.push(spec.stores);
            queues.push(spec.queue);
        }
        let mut order: Vec<usize> = (0..made.len()).collect();
        order.sort_by_key(|&metric| made[metric].clock);
        let home = home.map_or(Home::Everyone, |(partition, partitions)| Home::Murmur2 { partition, partitions });
        let plan = Plan { paths, clocks, metrics: made, order };
        Ok(Reader { plan, stores, queues, home, left_out: LeftOut::default() })
    }

    /// Say which metrics have begun.
    fn activate(&mut self, metrics: Vec<bool>) {
        for (metric, is_active) in self.plan.metrics.iter_mut().zip(metrics) {
            metric.is_active = is_active;
        }
    }

    #[getter]
    fn latest(&self) -> Vec<Option<i64>> {
        self.plan.clocks.iter().map(|clock| clock.latest).collect()
    }

    #[setter]
    fn set_latest(&mut self, latest: Vec<Option<i64>>) {
        for (clock, latest) in self.plan.clocks.iter_mut().zip(latest) {
            clock.latest = latest;
        }
    }

    /// Take records from number `first` on, until one is not plain. Returns the number of that one, or that of all
    /// records.
    ///
    /// A batch is read without the interpreter's lock, so that fetches and transactions continue meanwhile.
    fn feed(&mut self, py: Python<'_>, records: &Bound<'_, PyAny>, first: usize) -> PyResult<usize> {
        let Reader { plan, stores, queues, home, left_out } = self;
        let mut stores: Vec<Vec<PyRefMut<Stores>>> =
            stores.iter().map(|of_metric| of_metric.iter().map(|one| one.borrow_mut(py)).collect()).collect();
        let mut queues: Vec<PyRefMut<Queue>> = queues.iter().map(|queue| queue.borrow_mut(py)).collect();
        for store in stores.iter_mut().flatten() {
            store.0.check_room(records.len()?)?; // enough, for no record adds two names to one store
        }
        let states = stores
            .iter_mut()
            .zip(&mut queues)
            .map(|(stores, queue)| State {
                stores: stores.iter_mut().map(|one| &mut one.0).collect(),
                queue: &mut queue.0,
                home: *home,
                name: vec![],
            })
            .collect();
        let mut lane = Lane { plan, states, left_out, name: vec![] };
        if let Ok(batch) = records.cast::<RecordBatch>() {
            let batch = batch.get();
            return Ok(py.detach(|| lane.take(first, (first..batch.len()).map_while(|number| batch.look(number)))));
        }
        let records = records.cast::<PyList>()?;
        let mut next = first;
        while next < records.len() {
            let chunk = values(py, records, next..records.len().min(next + CHUNK))?;
            let end = next + chunk.len();
            next =
                lane.take(next, chunk.iter().map(|(value, stamp)| (value.as_ref().map(|one| one.as_bytes()), *stamp)));
            if next < end {
                break;
            }
        }
        Ok(next)
    }

    /// Read lines from number `first` on without counting them, until one is not plain or is late. Returns the number of
    /// that one, or that of all lines; the earliest and the latest time; and for each stretch of time, `stretch` long,
    /// a line in it.
    fn survey(&mut self, py: Python<'_>, lines: &RecordBatch, first: usize, stretch: i64) -> PyResult<Surveyed> {
        if stretch < 1 {
            return Err(PyValueError::new_err("a stretch of time is at least a microsecond long"));
        }
        let plan = &mut self.plan;
        Ok(py.detach(|| {
            let mut surveyed = Surveyed(first, None, HashMap::new());
            let mut found = plan.found();
            let mut current = None;
            for number in first..lines.len() {
                let Some((Some(raw), stamp)) = lines.look(number) else { break };
                if plan.survey(raw, stamp, &mut found).is_none() {
                    break;
                }
                for times in &found.times {
                    let (begun, ended) = surveyed.1.unwrap_or((times.own, times.own));
                    surveyed.1 = Some((begun.min(times.own), ended.max(times.own)));
                    let place = times.own.div_euclid(stretch);
                    if current != Some(place) {
                        current = Some(place);
                        surveyed.2.entry(place).or_insert(number);
                    }
                }
                surveyed.0 = number + 1;
            }
            surveyed
        }))
    }

    /// (reason, number of samples) of the samples that did not count since the last call, for reasons that are counted.
    fn take_counts(&mut self) -> Vec<(&'static str, u64)> {
        let counts = std::mem::take(&mut self.left_out.counts);
        Why::ALL.iter().zip(counts).filter(|&(_, count)| count > 0).map(|(why, count)| (why.name(), count)).collect()
    }

    /// (number of the metric, number of the record, reason) of the samples refused since the last call; their records
    /// become dead letters.
    fn take_refusals(&mut self) -> Vec<(usize, usize, &'static str)> {
        std::mem::take(&mut self.left_out.refusals)
    }
}

fn clock_of(spec: ClockSpec, in_file: bool, paths: &mut Paths) -> Clock {
    let (path, lateness, max_ahead, drops_late, beats) = spec;
    Clock { slot: path.map(|path| paths.slot(&path)), lateness, max_ahead, drops_late, beats, in_file, latest: None }
}

fn value_of(value: Option<ValueSpec>, paths: &mut Paths) -> Value {
    match value {
        None => Value::None,
        Some((path, low, per_unit, steps)) => Value::Clipped { slot: paths.slot(&path), low, per_unit, steps },
    }
}

/// The number of the line at which a survey stopped, the earliest and latest time, and the first line in each stretch of
/// time.
#[derive(IntoPyObject)]
struct Surveyed(usize, Option<(i64, i64)>, HashMap<i64, usize>);

/// The value and the timestamp of each of these records.
#[allow(clippy::type_complexity)]
fn values<'py>(
    py: Python<'py>,
    records: &Bound<'py, PyList>,
    range: Range<usize>,
) -> PyResult<Vec<(Option<Bound<'py, PyBytes>>, i64)>> {
    range
        .map(|number| {
            let record = records.get_item(number)?;
            let value = record.getattr(intern!(py, "value"))?.cast_into::<PyBytes>().ok();
            Ok((value, record.getattr(intern!(py, "timestamp"))?.extract()?))
        })
        .collect()
}
