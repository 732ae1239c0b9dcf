//! Records to accounts and queues: in one go or one by one the same, and what is left to the twin leaves no trace.

use arbitrary::Arbitrary;

use super::made;
use crate::clock::Clock;
use crate::groups::Groups;
use crate::json::Paths;
use crate::lane::{Lane, LeftOut, Metric, Plan, Value};
use crate::lines::cut;
use crate::messages::{take, Part, TooLarge};
use crate::queue::Queue;
use crate::rules::{Bounder, Home, Mean, Once, Overall, Rule, State};
use crate::store::Stores;

const PARTS: u64 = 8;
const SECOND: i64 = 1_000_000;

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Setting {
    rule: u8,
    cap: u8,
    groups: u8,
    by_group: bool,
    has_value: bool,
    by_stamp: bool,
    drops_late: bool,
    beats: bool,
    in_file: bool,
    lateness: u8, // seconds
    day: Option<u8>,
    home: bool,
}

#[derive(Arbitrary, Debug)]
struct Case<'a> {
    settings: [Setting; 2],
    count: bool,
    stamps: [i64; 2],
    raw: &'a [u8],
}

/// All that records change.
struct World {
    plan: Plan,
    stores: Vec<Vec<Stores>>,
    queues: Vec<Queue>,
    left_out: LeftOut,
    home: Home,
}

/// All that can be told of it.
#[derive(Debug, PartialEq)]
struct Told {
    latest: Vec<Option<i64>>,
    changed: Vec<Vec<(i64, usize, Vec<u8>, usize)>>,
    messages: Result<Vec<Vec<Part>>, TooLarge>,
    counts: Vec<u64>,
    refusals: Vec<(usize, usize, &'static str)>,
}

pub fn lane(raw: &[u8]) {
    let Some(case) = made::<Case>(raw) else { return };
    let settings = &case.settings[..1 + usize::from(case.count)];
    let lines = cut(case.raw).expect("short enough");
    let records: Vec<(Option<&[u8]>, i64)> = lines
        .places
        .iter()
        .enumerate()
        .map(|(number, &(begin, end))| {
            let stamp = case.stamps[number % 2];
            (Some(&case.raw[begin as usize..end as usize]), stamp)
        })
        .collect();
    let [mut whole, mut single] = [(); 2].map(|()| World::of(settings));
    // in one go, but for those that are the twin's, which are passed over
    let (mut next, mut left) = (0, vec![]);
    loop {
        next = whole.take(next, &records[next..]);
        if next == records.len() {
            break;
        }
        left.push(next);
        next += 1;
    }
    // one by one
    for (number, record) in records.iter().enumerate() {
        let is_taken = single.take(number, std::slice::from_ref(record)) > number;
        assert_eq!(is_taken, !left.contains(&number), "record {number}");
    }
    let told = whole.told();
    assert_eq!(told, single.told());
    // and what is left leaves no trace
    let mut others = World::of(settings);
    for number in (0..records.len()).filter(|number| !left.contains(number)) {
        assert_eq!(others.take(number, &records[number..=number]), number + 1);
    }
    assert_eq!(others.told(), told);
}

impl World {
    fn of(settings: &[Setting]) -> World {
        let mut paths = Paths::new();
        let clocks = settings.iter().map(|one| Clock {
            slot: (!one.by_stamp).then(|| paths.slot("t")),
            lateness: i64::from(one.lateness) * SECOND,
            max_ahead: 3600 * SECOND,
            drops_late: one.drops_late,
            beats: one.beats,
            in_file: one.in_file,
            latest: None,
        });
        let clocks = clocks.collect();
        let metrics = settings.iter().enumerate().map(|(clock, one)| Metric {
            clock,
            user: paths.slot("u"),
            group: one.by_group.then(|| paths.slot("g")),
            value: match one.has_value {
                true => Value::Clipped { slot: paths.slot("x"), low: -1.0, per_unit: 4.0, steps: 8 },
                false => Value::None,
            },
            rule: rule(one),
            is_active: true,
        });
        let metrics: Vec<Metric> = metrics.collect();
        let order = (0..metrics.len()).collect();
        World {
            plan: Plan { paths, clocks, metrics, order },
            stores: settings.iter().map(stores).collect(),
            queues: settings.iter().map(queue).collect(),
            left_out: LeftOut::default(),
            home: if settings[0].home { Home::Murmur2 { partition: 1, partitions: 2 } } else { Home::Everyone },
        }
    }

    fn take(&mut self, first: usize, records: &[(Option<&[u8]>, i64)]) -> usize {
        let World { plan, stores, queues, left_out, home } = self;
        let states = stores.iter_mut().zip(queues);
        let states = states.map(|(stores, queue)| State {
            stores: stores.iter_mut().collect(),
            queue,
            home: *home,
            name: vec![],
        });
        let mut lane = Lane { plan, states: states.collect(), left_out, name: vec![] };
        lane.take(first, records.iter().copied())
    }

    fn told(&mut self) -> Told {
        let kinds = |stores: &mut Stores| -> Vec<_> {
            (0..stores.widths.len()).map(|kind| stores.changed(kind, 50).expect("few samples")).collect()
        };
        Told {
            latest: self.plan.clocks.iter().map(|clock| clock.latest).collect(),
            changed: self.stores.iter_mut().flatten().flat_map(kinds).collect(),
            messages: take(&mut self.queues.iter_mut().collect::<Vec<_>>(), 1),
            counts: self.left_out.counts.to_vec(),
            refusals: self.left_out.refusals.clone(),
        }
    }
}

fn rule(one: &Setting) -> Rule {
    let (cap, groups) = (u64::from(one.cap), u64::from(one.groups));
    let mean = |bounder| Rule::Mean(Mean { cap, groups, bounder });
    match one.rule % 8 {
        0 => mean(Bounder::OneByOne),
        1 => mean(Bounder::Doubling),
        2 => mean(Bounder::Sharp {
            singles: 4,
            alone: 2,
            bits: 8,
            inner: vec![2, 5],
            ends: vec![(4, 0, 2), (6, 1, 2), (10, 2, 4)],
            first_level: 4,
        }),
        kind => Rule::Overall(overall(kind, cap, groups, one)),
    }
}

/// Limits under relation values for rules 3 to 5, under add-remove for the others; 5 and 7 have no accounts.
fn overall(kind: u8, cap: u64, groups: u64, one: &Setting) -> Overall {
    let is_present = kind > 5;
    Overall {
        samples: (kind % 2 == 0 || kind == 3).then_some(cap),
        keys: groups,
        leaves_out: kind == 3,
        alone: kind == 4,
        start: is_present.then_some(0),
        end: (is_present && one.by_stamp).then_some(100 * SECOND),
        declared: (is_present && one.drops_late).then(|| vec![b"a".to_vec(), b"b".to_vec()]),
        newcomers: vec![1; if is_present { usize::from(one.groups % 4) } else { 0 }],
        once: [None, Some(Once::Key), Some(Once::Step)][if is_present { usize::from(one.groups % 3) } else { 0 }],
    }
}

/// The stores that a rule asks for: of two kinds, and those of steps of one.
fn stores(one: &Setting) -> Vec<Stores> {
    let length = one.day.map(|days| (1 + i64::from(days)) * SECOND);
    let of_units = match one.rule % 8 {
        0..=2 => None, // a mean's accounts are for ever
        _ => length,
    };
    vec![Stores::new(of_units, vec![16, 8], true), Stores::new(Some(SECOND), vec![1], true)]
}

fn queue(one: &Setting) -> Queue {
    Queue::new(Groups::new("m", "m/1", 1), b"key", (!one.home).then_some(SECOND), one.has_value, PARTS)
}
