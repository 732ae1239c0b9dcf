//! The reader of one source partition's records.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::{Queue, RecordBatch, Stores};
use crate::clock::{Clock, Times};
use crate::json::{Field, Paths};
use crate::numbers::double;
use crate::queue;
use crate::rules::{Home, Rule, Sample, Why};
use crate::spec::Spec;
use crate::store;
use crate::times::time_of;

const MAX_NAME_BYTES: usize = 256;
/// Of one topic; with more, the twin takes all.
const MAX_FIELDS: usize = 24;
const MAX_METRICS: usize = 16;
const NO_TIMES: Times = Times { own: 0, effective: 0, latest: None };

/// Where a metric's value comes from.
enum Value {
    None, // a count needs none
    Clipped { slot: usize, low: f64, per_unit: f64, steps: u64 },
}

struct Metric {
    clock: usize,
    user: usize,
    group: Option<usize>,
    value: Value,
    rule: Rule,
    stores: Vec<Py<Stores>>,
    queue: Py<Queue>,
    is_active: bool,
}

/// A clock as Python says it: path, lateness, most ahead, whether late records are dropped, whether it goes by beats.
type ClockSpec = (Option<String>, i64, i64, bool, bool);
/// A sample of a record, ready to count.
struct Found<'a> {
    user: &'a [u8],
    group: Option<&'a [u8]>,
    value: u64,
}

/// Reads the records of one source partition, and counts their samples.
#[pyclass(module = "shoal_kernel")]
pub struct Reader {
    paths: Paths,
    clocks: Vec<Clock>,
    metrics: Vec<Metric>,
    order: Vec<usize>, // of the metrics: by clock, as the twin goes
    home: Home,
    counts: [u64; Why::ALL.len()],
    refusals: Vec<(usize, usize, &'static str)>,
}

#[pymethods]
impl Reader {
    #[new]
    fn new(clocks: Vec<ClockSpec>, metrics: Vec<Spec>, home: Option<(u32, u32)>) -> PyResult<Self> {
        let mut paths = Paths::new();
        let clocks: Vec<Clock> = clocks
            .into_iter()
            .map(|(path, lateness, max_ahead, drops_late, beats)| Clock {
                slot: path.map(|path| paths.slot(&path)),
                lateness,
                max_ahead,
                drops_late,
                beats,
                latest: None,
            })
            .collect();
        let mut made = vec![];
        for spec in metrics {
            if spec.clock >= clocks.len() {
                return Err(PyValueError::new_err("a metric has no clock"));
            }
            let value = match spec.value {
                None => Value::None,
                Some((path, low, per_unit, steps)) => Value::Clipped { slot: paths.slot(&path), low, per_unit, steps },
            };
            made.push(Metric {
                clock: spec.clock,
                user: paths.slot(&spec.user),
                group: spec.group.map(|path| paths.slot(&path)),
                value,
                rule: spec.rule.rule()?,
                stores: spec.stores,
                queue: spec.queue,
                is_active: true,
            });
        }
        if paths.count > MAX_FIELDS || made.len() > MAX_METRICS {
            return Err(PyValueError::new_err("the metrics of one topic read too many fields for the kernel"));
        }
        let mut order: Vec<usize> = (0..made.len()).collect();
        order.sort_by_key(|&metric| made[metric].clock);
        let home = home.map_or(Home::Everyone, |(partition, partitions)| Home::Murmur2 { partition, partitions });
        Ok(Reader { paths, clocks, metrics: made, order, home, counts: [0; Why::ALL.len()], refusals: vec![] })
    }

    /// Say which metrics have begun.
    fn activate(&mut self, metrics: Vec<bool>) {
        for (metric, is_active) in self.metrics.iter_mut().zip(metrics) {
            metric.is_active = is_active;
        }
    }

    #[getter]
    fn latest(&self) -> Vec<Option<i64>> {
        self.clocks.iter().map(|clock| clock.latest).collect()
    }

    #[setter]
    fn set_latest(&mut self, latest: Vec<Option<i64>>) {
        for (clock, latest) in self.clocks.iter_mut().zip(latest) {
            clock.latest = latest;
        }
    }

    /// Take in records from number `first` on, up to one that is not plain; return its number, or their count.
    ///
    /// A batch is read without the interpreter's lock, so that fetches and transactions go on meanwhile.
    fn feed(&mut self, py: Python<'_>, records: &Bound<'_, PyAny>, first: usize) -> PyResult<usize> {
        let Reader { paths, clocks, metrics, order, home, counts, refusals } = self;
        let mut stores: Vec<Vec<PyRefMut<Stores>>> =
            metrics.iter().map(|metric| metric.stores.iter().map(|one| one.borrow_mut(py)).collect()).collect();
        let mut queues: Vec<PyRefMut<Queue>> = metrics.iter().map(|metric| metric.queue.borrow_mut(py)).collect();
        for store in stores.iter().flatten() {
            store.0.check_room(records.len()?)?; // no record adds two names to one store
        }
        let sinks = stores
            .iter_mut()
            .zip(&mut queues)
            .map(|(stores, queue)| (stores.iter_mut().map(|one| &mut one.0).collect(), &mut queue.0))
            .collect();
        let mut lane = Lane { paths, clocks, metrics, order, home, counts, refusals, sinks, name: vec![] };
        if let Ok(batch) = records.cast::<RecordBatch>() {
            let batch = batch.get();
            return Ok(py.detach(|| {
                (first..batch.len())
                    .find(|&number| match batch.look(number) {
                        Some((Some(raw), stamp)) => !lane.take(number, raw, stamp),
                        _ => true, // a clock record has no value
                    })
                    .unwrap_or(batch.len().max(first))
            }));
        }
        let records = records.cast::<PyList>()?;
        for number in first..records.len() {
            let record = records.get_item(number)?;
            let raw = record.getattr(intern!(py, "value"))?;
            let Ok(raw) = raw.cast::<PyBytes>() else { return Ok(number) }; // a clock record has no value
            let stamp: i64 = record.getattr(intern!(py, "timestamp"))?.extract()?;
            if !lane.take(number, raw.as_bytes(), stamp) {
                return Ok(number);
            }
        }
        Ok(records.len())
    }

    /// Look through lines from number `first` on, and count nothing, up to one that not every metric surely reads in a
    /// time of its own; return its number, the first and last time, and a line of each stretch of time so long.
    fn survey(&mut self, py: Python<'_>, lines: &RecordBatch, first: usize, stretch: i64) -> PyResult<Surveyed> {
        if stretch < 1 {
            return Err(PyValueError::new_err("a stretch of time has a length"));
        }
        let Reader { paths, clocks, metrics, order, .. } = self;
        Ok(py.detach(|| {
            let mut found = Surveyed(first, None, HashMap::new());
            let mut current = None;
            for number in first..lines.len() {
                let Some((Some(raw), stamp)) = lines.look(number) else { break };
                let mut fields = [Field::Missing; MAX_FIELDS];
                let mut times = [NO_TIMES; MAX_METRICS];
                let is_read = read(paths, metrics, order, raw, &mut fields).is_some();
                if !is_read || !tell(clocks, &fields, stamp, &mut times) {
                    break;
                }
                let times = &times[..clocks.len()];
                if times.iter().any(|times| times.own != times.effective) {
                    break;
                }
                for (clock, times) in clocks.iter_mut().zip(times) {
                    clock.latest = times.latest;
                    let (begun, ended) = found.1.unwrap_or((times.own, times.own));
                    found.1 = Some((begun.min(times.own), ended.max(times.own)));
                    let place = times.own.div_euclid(stretch);
                    if current != Some(place) {
                        current = Some(place);
                        found.2.entry(place).or_insert(number);
                    }
                }
                found.0 = number + 1;
            }
            found
        }))
    }

    /// How many samples did not count since the last call, by reason.
    fn take_counts(&mut self) -> Vec<(&'static str, u64)> {
        let counts = std::mem::replace(&mut self.counts, [0; Why::ALL.len()]);
        Why::ALL.iter().zip(counts).filter(|&(_, count)| count > 0).map(|(why, count)| (why.name(), count)).collect()
    }

    /// (number of the metric, number of the record, reason) of the samples refused since the last call.
    fn take_refusals(&mut self) -> Vec<(usize, usize, &'static str)> {
        std::mem::take(&mut self.refusals)
    }
}

/// Number of the line that is left, first and last time, and the first line in each stretch of time.
#[derive(IntoPyObject)]
struct Surveyed(usize, Option<(i64, i64)>, HashMap<i64, usize>);

/// A reader while it reads.
struct Lane<'a> {
    paths: &'a Paths,
    clocks: &'a mut [Clock],
    metrics: &'a [Metric],
    order: &'a [usize],
    home: &'a Home,
    counts: &'a mut [u64; Why::ALL.len()],
    refusals: &'a mut Vec<(usize, usize, &'static str)>,
    sinks: Vec<(Vec<&'a mut store::Stores>, &'a mut queue::Queue)>,
    name: Vec<u8>,
}

impl Lane<'_> {
    /// Take in one record; false leaves it to the twin, and nothing was touched.
    #[inline(always)]
    fn take(&mut self, number: usize, raw: &[u8], stamp: i64) -> bool {
        let Lane { paths, clocks, metrics, order, home, counts, refusals, sinks, name } = self;
        let mut fields = [Field::Missing; MAX_FIELDS];
        let Some(samples) = read(paths, metrics, order, raw, &mut fields) else { return false };
        let mut times = [NO_TIMES; MAX_METRICS];
        if !tell(clocks, &fields, stamp, &mut times) {
            return false;
        }
        for (clock, times) in clocks.iter_mut().zip(&times) {
            clock.latest = times.latest;
        }
        for (found, &metric) in samples.iter().zip(order.iter()) {
            let Some(found) = found else { continue };
            let (stores, queue) = &mut sinks[metric];
            let Times { own, effective, .. } = times[metrics[metric].clock];
            let sample = Sample { user: found.user, group: found.group, value: found.value, time: own, effective };
            if let Err(why) = metrics[metric].rule.add(&sample, stores, queue, home, name) {
                if why.is_counted() {
                    counts[why as usize] += 1;
                } else {
                    refusals.push((metric, number, why.name()));
                }
            }
        }
        true
    }
}

/// The samples of a record, in order; `None` leaves it to the twin.
#[inline(always)]
fn read<'a>(
    paths: &Paths,
    metrics: &[Metric],
    order: &[usize],
    raw: &'a [u8],
    fields: &mut [Field<'a>; MAX_FIELDS],
) -> Option<[Option<Found<'a>>; MAX_METRICS]> {
    paths.read(raw, fields)?;
    let mut samples = [const { None }; MAX_METRICS];
    for (sample, &metric) in samples.iter_mut().zip(order) {
        let metric = &metrics[metric];
        if metric.is_active {
            *sample = Some(Found {
                user: user_of(fields[metric.user])?,
                group: match metric.group {
                    None => None,
                    Some(slot) => Some(group_of(fields[slot])?),
                },
                value: metric.value.read(fields)?,
            });
        }
    }
    Some(samples)
}

/// The times of a record by each clock; false leaves it to the twin.
#[inline(always)]
fn tell(clocks: &[Clock], fields: &[Field; MAX_FIELDS], stamp: i64, times: &mut [Times; MAX_METRICS]) -> bool {
    clocks.iter().zip(times).all(|(clock, times)| {
        let own = match clock.slot {
            None => Clock::stamped(stamp),
            Some(slot) => time_of(fields[slot]),
        };
        match own.and_then(|own| clock.times(own, stamp)) {
            None => false,
            Some(found) => {
                *times = found;
                true
            }
        }
    })
}

impl Value {
    /// The grid index of a record's value, as `Grid.clip` in `shoal/mechanisms/grid.py` has it.
    #[inline(always)]
    fn read(&self, fields: &[Field]) -> Option<u64> {
        let Value::Clipped { slot, low, per_unit, steps } = *self else { return Some(0) };
        let (Field::Integer(text) | Field::Decimal(text)) = fields[slot] else { return None };
        let steps_above = (double(text)? - low) * per_unit;
        Some(if steps_above <= 0.0 {
            0
        } else if steps_above >= steps as f64 {
            steps
        } else {
            (steps_above + 0.5) as u64
        })
    }
}

#[inline(always)]
fn user_of(field: Field<'_>) -> Option<&[u8]> {
    match field {
        Field::Text(text) if (1..=MAX_NAME_BYTES).contains(&text.len()) => Some(text),
        // Longer numbers may not be those that the twin's parser makes of them; -0 is not.
        Field::Integer(text) if text.len() <= 18 && text != b"-0" => Some(text),
        _ => None,
    }
}

#[inline(always)]
fn group_of(field: Field<'_>) -> Option<&[u8]> {
    match field {
        Field::True => Some(b"true"),
        Field::False => Some(b"false"),
        other => user_of(other),
    }
}
