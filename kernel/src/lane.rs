//! From the bytes of records to accounts and queues: read, tell the time, count.
//!
//! Records are read some at a time, and then counted, in their order: whatever counting changes, no reading asks for.
//! In between, what accounts will be asked for is read once, in loops that wait for nothing they read. An account that
//! lies in none of the processor's caches takes longer to come than its record takes to be read; so many come at once.

use std::hint::black_box;

use crate::clock::{Clock, Times};
use crate::json::{Field, Paths};
use crate::numbers::double;
use crate::rules::{Rule, Sample, State, Why};
use crate::times::time_of;

const MAX_NAME_BYTES: usize = 256;
/// Records that are read before they are counted.
const WINDOW: usize = 32;

/// Where a metric's value comes from.
pub enum Value {
    None, // a count needs none
    Clipped { slot: usize, low: f64, per_unit: f64, steps: u64 },
}

/// How samples of a metric are read, and count.
pub struct Metric {
    pub clock: usize,
    pub user: usize,
    pub group: Option<usize>,
    pub value: Value,
    pub rule: Rule,
    pub is_active: bool,
}

/// What every record is asked for.
pub struct Plan {
    pub paths: Paths,
    pub clocks: Vec<Clock>,
    pub metrics: Vec<Metric>,
    pub order: Vec<usize>, // of the metrics: by clock, as the twin goes
}

/// A sample that was read and is not counted yet.
struct Waiting<'a> {
    sample: Sample<'a>,
    metric: usize,
    number: usize, // of the record
    hash: u64,     // of the account's name
}

/// What was read, in memory that one record after the other uses.
pub struct Found<'a> {
    fields: Vec<Field<'a>>,
    pub times: Vec<Times>, // of the last record, by clock
    samples: Vec<Waiting<'a>>,
}

impl Plan {
    /// Memory for what is read.
    pub fn found<'a>(&self) -> Found<'a> {
        Found { fields: vec![Field::Missing; self.paths.count], times: vec![], samples: vec![] }
    }

    /// Read a record, and move the clocks; `None` leaves it to the twin, and nothing was touched.
    #[inline(always)]
    pub fn read<'a>(&mut self, number: usize, raw: &'a [u8], stamp: i64, found: &mut Found<'a>) -> Option<()> {
        let before = found.samples.len();
        let is_read = self.times(raw, stamp, found).and_then(|()| self.samples(number, found));
        if is_read.is_none() {
            found.samples.truncate(before);
            return None;
        }
        self.move_clocks(found);
        Some(())
    }

    #[inline(always)]
    fn move_clocks(&mut self, found: &Found) {
        for (clock, times) in self.clocks.iter_mut().zip(&found.times) {
            clock.latest = times.latest;
        }
    }

    /// Read a record of which no time is late, and count nothing; `None` as in `read`, or if one is late.
    pub fn survey<'a>(&mut self, raw: &'a [u8], stamp: i64, found: &mut Found<'a>) -> Option<()> {
        self.times(raw, stamp, found)?;
        if found.times.iter().any(|times| times.own != times.effective) {
            return None;
        }
        let is_read = self.samples(0, found);
        found.samples.clear();
        is_read.map(|()| self.move_clocks(found))
    }

    #[inline(always)]
    fn times<'a>(&self, raw: &'a [u8], stamp: i64, found: &mut Found<'a>) -> Option<()> {
        found.fields.fill(Field::Missing);
        self.paths.read(raw, &mut found.fields)?;
        found.times.clear();
        for clock in &self.clocks {
            let own = match clock.slot {
                None => Clock::stamped(stamp),
                Some(slot) => time_of(found.fields[slot]),
            };
            found.times.push(clock.times(own?, stamp)?);
        }
        Some(())
    }

    #[inline(always)]
    fn samples(&self, number: usize, found: &mut Found) -> Option<()> {
        for &metric in &self.order {
            let Metric { clock, user, group, value, is_active, .. } = &self.metrics[metric];
            if !is_active {
                continue;
            }
            let Times { own, effective, .. } = found.times[*clock];
            let sample = Sample {
                user: user_of(found.fields[*user])?,
                group: match group {
                    None => None,
                    Some(slot) => Some(group_of(found.fields[*slot])?),
                },
                value: value.read(&found.fields)?,
                time: own,
                effective,
            };
            found.samples.push(Waiting { sample, metric, number, hash: 0 });
        }
        Some(())
    }
}

/// Samples that do not count.
#[derive(Default)]
pub struct LeftOut {
    pub counts: [u64; Why::ALL.len()],
    pub refusals: Vec<(usize, usize, &'static str)>, // numbers of the metric and of the record, and the reason
}

/// A plan, and what its metrics change.
pub struct Lane<'a> {
    pub plan: &'a mut Plan,
    pub states: Vec<State<'a>>, // by metric
    pub left_out: &'a mut LeftOut,
    pub name: Vec<u8>, // memory for names
}

impl Lane<'_> {
    /// Take in records, value and time stamp of each, from this number on; the number of the first that is left.
    pub fn take<'a>(&mut self, first: usize, records: impl Iterator<Item = (Option<&'a [u8]>, i64)>) -> usize {
        let mut found = self.plan.found();
        let mut next = first;
        for (raw, stamp) in records {
            let Some(raw) = raw else { break }; // a clock record has no value
            if self.plan.read(next, raw, stamp, &mut found).is_none() {
                break;
            }
            next += 1;
            if (next - first) % WINDOW == 0 {
                self.count(&mut found);
            }
        }
        self.count(&mut found);
        next
    }

    #[inline(always)]
    fn count(&mut self, found: &mut Found) {
        self.approach(&mut found.samples);
        let Lane { plan, states, left_out, .. } = self;
        for Waiting { sample, metric, number, .. } in found.samples.drain(..) {
            if let Err(why) = plan.metrics[metric].rule.add(&sample, &mut states[metric]) {
                if why.is_counted() {
                    left_out.counts[why as usize] += 1;
                } else {
                    left_out.refusals.push((metric, number, why.name()));
                }
            }
        }
    }

    /// Read what the accounts of these samples will be asked for.
    #[inline(always)]
    fn approach(&mut self, samples: &mut [Waiting]) {
        let Lane { plan, states, name, .. } = self;
        let rules = &plan.metrics;
        let mut seen = 0;
        for Waiting { sample, metric, hash, .. } in &mut *samples {
            let rule = &rules[*metric].rule;
            if let Some(store) = rule.store(sample, &states[*metric]) {
                *hash = store.hash(rule.name(sample, name));
            }
        }
        for Waiting { sample, metric, hash, .. } in &*samples {
            seen ^= rules[*metric].rule.store(sample, &states[*metric]).map_or(0, |store| store.slot(*hash));
        }
        for Waiting { sample, metric, hash, .. } in &*samples {
            seen ^= rules[*metric].rule.store(sample, &states[*metric]).map_or(0, |store| store.glance(*hash));
        }
        black_box(seen);
    }
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
