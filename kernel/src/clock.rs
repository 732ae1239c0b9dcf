//! An event clock of one source partition; the twin is `shoal/stream/event_time.py`.

/// The clock's configuration and how far it has got.
pub struct Clock {
    pub slot: Option<usize>, // of the time's field; None: the record's own time
    pub lateness: i64,
    pub max_ahead: i64,
    pub drops_late: bool,
    pub beats: bool, // no record moves it
    pub latest: Option<i64>,
}

/// A record's times.
#[derive(Clone, Copy)]
pub struct Times {
    pub own: i64,
    pub effective: i64,
    pub latest: Option<i64>, // what the clock shows after the record
}

const LATEST: i64 = 250_246_627_200_000_000; // times from here on the twin refuses; the earliest has no plain form

impl Clock {
    /// `None` leaves the record to the twin: it is too far ahead, or late where late records are dropped.
    #[inline(always)]
    pub fn times(&self, own: i64, stamp: i64) -> Option<Times> {
        if own >= LATEST {
            return None;
        }
        let is_ahead = self.latest.is_none_or(|latest| own > latest);
        if is_ahead {
            let jumps = self.latest.is_none_or(|latest| own - latest > self.max_ahead);
            if jumps && stamp >= 0 && i128::from(own) - i128::from(stamp) * 1000 > i128::from(self.max_ahead) {
                return None;
            }
            let latest = if self.beats { self.latest } else { Some(own) };
            return Some(Times { own, effective: own, latest });
        }
        let horizon = self.latest? - self.lateness;
        let effective = if own >= horizon {
            own
        } else if self.drops_late {
            return None;
        } else {
            horizon
        };
        Some(Times { own, effective, latest: self.latest })
    }

    /// The time of a record that has no field for it.
    #[inline(always)]
    pub fn stamped(stamp: i64) -> Option<i64> {
        (0..LATEST / 1000).contains(&stamp).then(|| stamp * 1000)
    }
}
