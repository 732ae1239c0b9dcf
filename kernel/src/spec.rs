//! A metric and its rule as Python describes them (`shoal/stream/kernel/reader.py`), and the rule made of that.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::python::{Queue, Stores};
use crate::rules::{Bounder, Mean, Once, Overall, Rule};

/// `SharpBounder.table`: S, E, bits of a value, inner boundaries of the buckets, (end, number, weight) of each block,
/// level of the first block.
type Sharp = (u64, u64, u32, Vec<u64>, Vec<(u64, u32, u64)>, u32);

/// A value: path, low end of the range, grid steps per unit, grid steps.
pub type ValueSpec = (String, f64, f64, u64);

/// The items of the dictionary that describes a metric.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Spec {
    pub clock: usize,
    pub user: String,
    pub group: Option<String>,
    pub value: Option<ValueSpec>,
    pub rule: RuleSpec,
    pub stores: Vec<Py<Stores>>,
    pub queue: Py<Queue>,
}

/// A rule, known by its items.
#[derive(FromPyObject)]
pub enum RuleSpec {
    Mean(MeanSpec),
    Overall(OverallSpec),
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct MeanSpec {
    cap: u64,
    groups: u64,
    doubles: bool,
    sharp: Option<Sharp>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct OverallSpec {
    samples: Option<u64>,
    keys: u64,
    leaves_out: bool,
    alone: bool,
    start: Option<i64>,
    end: Option<i64>,
    declared: Option<Vec<String>>,
    newcomers: Vec<u64>,
    once: Option<String>,
}

impl RuleSpec {
    /// The rule that is described.
    pub fn rule(self) -> PyResult<Rule> {
        Ok(match self {
            RuleSpec::Mean(spec) => Rule::Mean(spec.mean()),
            RuleSpec::Overall(spec) => Rule::Overall(spec.overall()?),
        })
    }
}

impl MeanSpec {
    fn mean(self) -> Mean {
        let bounder = match self.sharp {
            Some((singles, alone, bits, inner, ends, first_level)) => {
                Bounder::Sharp { singles, alone, bits, inner, ends, first_level }
            }
            None if self.doubles => Bounder::Doubling,
            None => Bounder::OneByOne,
        };
        Mean { cap: self.cap, groups: self.groups, bounder }
    }
}

impl OverallSpec {
    fn overall(self) -> PyResult<Overall> {
        let once = match self.once.as_deref() {
            None => None,
            Some("key") => Some(Once::Key),
            Some("step") => Some(Once::Step),
            Some(other) => return Err(PyValueError::new_err(format!("once per {other}"))),
        };
        let declared = self.declared.map(|keys| {
            let mut keys: Vec<Vec<u8>> = keys.into_iter().map(String::into_bytes).collect();
            keys.sort_unstable();
            keys
        });
        let OverallSpec { samples, keys, leaves_out, alone, start, end, newcomers, .. } = self;
        Ok(Overall { samples, keys, leaves_out, alone, start, end, declared, newcomers, once })
    }
}
