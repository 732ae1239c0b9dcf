//! How Python tells the kernel of a metric and its rule.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::python::{Queue, Stores};
use crate::rules::{Bounder, Mean, Once, Rule, TwoSided, Unit};

/// S, E, bits of a value, inner boundaries of buckets, (end, number, weight) of blocks, and their first level.
type Sharp = (u64, u64, u32, Vec<u64>, Vec<(u64, u32, u64)>, u32);

/// The keys of a metric as Python says them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Spec {
    pub clock: usize,
    pub user: String,
    pub group: Option<String>,
    pub value: Option<(String, f64, f64, u64)>, // path, low end, steps per unit, steps
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
    /// The rule itself.
    pub fn rule(self) -> PyResult<Rule> {
        let RuleSpec { cap, groups, alone, .. } = self;
        let bounder = match (self.kind.as_str(), self.sharp) {
            ("mean-sharp", Some((singles, alone, bits, inner, ends, first_level))) => {
                Bounder::Sharp { singles, alone, bits, inner, ends, first_level }
            }
            ("mean-full", None) => Bounder::Doubling,
            _ => Bounder::OneByOne,
        };
        Ok(match self.kind.as_str() {
            "mean" | "mean-sharp" | "mean-full" => Rule::Mean(Mean { cap, groups, bounder }),
            "unit" => Rule::Unit(Unit { cap, groups, alone }),
            "event" => Rule::Event,
            kind @ ("two-sided" | "two-sided-event") => {
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
                Rule::TwoSided(TwoSided {
                    cap,
                    start: self.start,
                    end: self.end,
                    declared,
                    weights: self.weights,
                    once,
                    is_event: kind == "two-sided-event",
                    remembered: self.remembered,
                })
            }
            kind => return Err(PyValueError::new_err(format!("no rule is called {kind}"))),
        })
    }
}
