//! What an account costs as users become more, beside the machine's own price of one random read and write.
//!
//! `cargo run --release --no-default-features --example growth -- USERS...`; a line of JSON for each number of users.
//! `benchmarks/growth.py` runs it, each size in a process of its own, and prints the table.

#[allow(dead_code)]
#[path = "../src/deltas.rs"]
mod deltas;
#[allow(dead_code)]
#[path = "../src/entries.rs"]
mod entries;
#[allow(dead_code)]
#[path = "../src/store/mod.rs"]
mod store;

use std::hint::black_box;

use store::memory::Memory;
use store::Stores;

const EVENTS: usize = 4_000_000;
const ROUNDS: usize = 3;
const RECORD: usize = 32;
/// Numbers that look random: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * end as u128) >> 64) as usize
    }
}

/// Nanoseconds for each of the events, the least of some rounds.
fn least(mut round: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let began = processor_time();
        round();
        (processor_time() - began) / EVENTS as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Nanoseconds that this process has computed; what others do on this machine counts little.
fn processor_time() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells it");
    told.split(' ').next().and_then(|time| time.parse().ok()).expect("a number")
}

/// Bytes of memory that this process has now, and had at most.
fn memory() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok()
    };
    (of("VmRSS:").unwrap_or(0) * 1024, of("VmHWM:").unwrap_or(0) * 1024)
}

/// One random read and write in so many bytes: the next waits for the one before, or they overlap as the processor likes.
fn floors(bytes: usize) -> (f64, f64) {
    let lines = bytes / RECORD;
    let mut array = Memory::zeroed(lines * RECORD);
    (0..lines).for_each(|line| array[line * RECORD] = 1);
    let order: Vec<u32> = (0..EVENTS).scan(Random(7), |random, _| Some(random.below(lines) as u32)).collect();
    let overlapping = least(|| {
        for &line in &order {
            let at = line as usize * RECORD;
            array[at] = array[at].wrapping_add(1);
        }
    });
    (0..lines).for_each(|line| array[line * RECORD] = 0);
    black_box(&array);
    let alone = least(|| {
        let mut last = 0; // is always zero, which only the memory knows
        for &line in &order {
            let at = (line as usize + usize::from(last)) * RECORD;
            last = array[at];
            array[at + 1] = array[at + 1].wrapping_add(1);
        }
        black_box(last);
    });
    (alone, overlapping)
}

fn name_of(user: usize) -> String {
    format!("user-{user}")
}

fn measure(users: usize) {
    let before = memory().0;
    let mut stores = Stores::new(None, vec![16], true);
    let began = processor_time();
    for user in 0..users {
        let store = &mut stores.of(0)[0];
        let place = store.place(name_of(user).as_bytes());
        store.restore_at(place, 0);
    }
    let restore = (processor_time() - began) / users as f64;
    let (after, peak) = memory();
    let (mut names, mut ends, mut random) = (vec![], vec![0], Random(3));
    for _ in 0..EVENTS {
        names.extend_from_slice(name_of(random.below(users)).as_bytes());
        ends.push(names.len());
    }
    let name = |number: usize| &names[ends[number]..ends[number + 1]];
    let [store] = stores.of(0) else { unreachable!("one kind") };
    let account = least(|| {
        for number in 0..EVENTS {
            let place = store.find(name(number)).expect("it is there");
            store.put(place, store.number(place) + 1);
        }
    });
    drop(stores);
    let (alone, overlapping) = floors(after - before);
    println!(
        "{{\"users\": {users}, \"bytes\": {:.1}, \"peak\": {:.1}, \"restore\": {restore:.1}, \
         \"account\": {account:.1}, \"floor\": {alone:.1}, \"overlapping\": {overlapping:.1}}}",
        (after - before) as f64 / users as f64,
        (peak - before) as f64 / users as f64,
    );
}

fn main() {
    std::env::args().skip(1).for_each(|users| measure(users.parse().expect("a number of users")));
}
