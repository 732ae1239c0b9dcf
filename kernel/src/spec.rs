//! A metric and its rule as Python describes them (`shoal/stream/kernel/reader.py`), and the rule made of that.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::python::{Queue, Stores};
use crate::rules::{Bounder, Mean, Once, Rule, TwoSided, Unit};

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

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RuleSpec {
    kind: String,
    cap: u64,
    groups: u64,
    alone: bool,
    sharp: Option<Sharp>,
    start: i64,
    end: Option<i64>,
    declared: Option<Vec<String>>,
    weights: Vec<u64>,
    once: Option<String>,
    remembered: u64,
}

impl RuleSpec {
    /// The rule that is described.
    pub fn rule(mut self) -> PyResult<Rule> {
        let RuleSpec { cap, groups, alone, .. } = self;
        let mean = |bounder| Ok(Rule::Mean(Mean { cap, groups, bounder }));
        match (self.kind.as_str(), self.sharp.take()) {
            ("mean", None) => mean(Bounder::OneByOne),
            ("mean-full", None) => mean(Bounder::Doubling),
            ("mean-sharp", Some((singles, alone, bits, inner, ends, first_level))) => {
                mean(Bounder::Sharp { singles, alone, bits, inner, ends, first_level })
            }
            ("unit", None) => Ok(Rule::Unit(Unit { cap, groups, alone })),
            ("event", None) => Ok(Rule::Event),
            ("two-sided" | "two-sided-event", None) => self.two_sided().map(Rule::TwoSided),
            (kind, _) => Err(PyValueError::new_err(format!("no rule is called {kind}, or not with these items"))),
        }
    }

    fn two_sided(self) -> PyResult<TwoSided> {
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
        Ok(TwoSided {
            cap: self.cap,
            start: self.start,
            end: self.end,
            declared,
            weights: self.weights,
            once,
            is_event: self.kind == "two-sided-event",
            remembered: self.remembered,
        })
    }
}
