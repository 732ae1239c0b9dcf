//! From the bytes of records to accounts and queues: parse each record, determine its times, count its samples.
//!
//! A window of records is parsed first and then counted, in the same order. That is sound because parsing depends on
//! nothing that counting changes. In between, `prefetch` touches the memory of every account that will be needed. An
//! account that is in none of the processor's caches takes longer to arrive than its record takes to parse; touching all
//! of them in a loop lets the processor wait for many at the same time.

use std::hint::black_box;

use crate::clock::{Clock, Times};
use crate::json::{Field, Paths};
use crate::numbers::double;
use crate::rules::{Rule, Sample, State, Why};
use crate::times::time_of;

const MAX_NAME_BYTES: usize = 256;
/// The number of records that are parsed before the first of them is counted.
const WINDOW: usize = 32;

/// Where a metric's value comes from.
pub enum Value {
    None, // a count has no value
    Clipped { slot: usize, low: f64, per_unit: f64, steps: u64 },
}

/// Where a metric's samples are found in a record, and the rule by which they count.
pub struct Metric {
    pub clock: usize,         // index of its clock in the plan
    pub user: usize,          // slot of the field
    pub group: Option<usize>, // likewise
    pub value: Value,
    pub rule: Rule,
    pub is_active: bool,
}

/// What is read from every record, for all metrics of the topic.
pub struct Plan {
    pub paths: Paths,
    pub clocks: Vec<Clock>,
    pub metrics: Vec<Metric>,
    pub order: Vec<usize>, // indices of the metrics, sorted by clock: the order in which the twin counts
}

/// A sample that was parsed and is not counted yet.
struct Waiting<'a> {
    sample: Sample<'a>,
    metric: usize,
    number: usize, // the record's number
    hash: u64,     // hash of the account's name, once `prefetch` has computed it
}

/// What was parsed. Fields and times are those of the last record; samples collect until they are counted.
pub struct Found<'a> {
    fields: Vec<Field<'a>>,
    pub times: Vec<Times>, // by clock
    samples: Vec<Waiting<'a>>,
}

impl Plan {
    /// Empty buffers of the right size.
    pub fn found<'a>(&self) -> Found<'a> {
        Found { fields: vec![Field::Missing; self.paths.count], times: vec![], samples: vec![] }
    }

    /// Parse a record and move the clocks. `None` leaves the record to the twin, and nothing has changed.
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

    /// Parse a record and move the clocks, but keep no sample. `None` as in `read`, and also if the record is late.
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
    fn times<'a>(&mut self, raw: &'a [u8], stamp: i64, found: &mut Found<'a>) -> Option<()> {
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

/// The samples that did not count: how many for each reason, and those whose record becomes a dead letter.
#[derive(Default)]
pub struct LeftOut {
    pub counts: [u64; Why::ALL.len()],
    pub refusals: Vec<(usize, usize, &'static str)>, // number of the metric, number of the record, reason
}

/// A plan, together with the state that its metrics change.
pub struct Lane<'a> {
    pub plan: &'a mut Plan,
    pub states: Vec<State<'a>>, // by metric
    pub left_out: &'a mut LeftOut,
    pub name: Vec<u8>, // a buffer in which names are put together
}

impl Lane<'_> {
    /// Take records, each a value and a timestamp, the first of which has the number `first`. Returns the number of the
    /// record at which it stopped, or the number after the last one.
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
        self.prefetch(&mut found.samples);
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

    /// Touch the memory that the accounts of these samples lie in: first the slots of the tables, then the records.
    ///
    /// Each loop reads addresses that do not depend on one another, so the processor overlaps the cache misses.
    #[inline(always)]
    fn prefetch(&mut self, samples: &mut [Waiting]) {
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
        black_box(seen); // else the compiler would leave the reads out
    }
}

impl Value {
    /// The grid index of a record's value, computed as `Grid.clip` in `shoal/mechanisms/grid.py` computes it.
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
        // The twin names a user by the number that its parser returns. Up to 18 digits that is the text as it stands; a
        // longer number may be another one there, and -0 is.
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
