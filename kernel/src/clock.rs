//! An event clock of one source partition; the twin is `shoal/stream/event_time.py`.

/// The clock's configuration, and the latest event time so far. Times are in microseconds.
pub struct Clock {
    pub slot: Option<usize>, // of the field that has the time; None: the record's timestamp is its time
    pub lateness: i64,
    pub max_ahead: i64,
    pub drops_late: bool,
    pub beats: bool,   // only beats move it, which are the twin's; no event does
    pub in_file: bool, // records are lines of a file, which move the clock without a timestamp
    pub latest: Option<i64>,
}

/// A record's times.
#[derive(Clone, Copy)]
pub struct Times {
    pub own: i64,
    pub effective: i64,
    pub latest: Option<i64>, // the clock's latest time after this record
}

/// The twin refuses times from here on. It also refuses very early ones, but these have no plain form.
const LATEST: i64 = 250_246_627_200_000_000;

impl Clock {
    /// The times of a record whose event time is `own` and whose timestamp is `stamp`, in milliseconds.
    ///
    /// `None` leaves the record to the twin: it is too far ahead, or it is late and late records are dropped, or the
    /// horizon is no time.
    #[inline(always)]
    pub fn times(&self, own: i64, stamp: i64) -> Option<Times> {
        let furthest = stamp.saturating_mul(1000).saturating_add(self.max_ahead);
        if own >= LATEST || (stamp >= 0 && own > furthest) {
            return None;
        }
        if self.latest.is_none_or(|latest| own > latest) {
            let moves = !self.beats && (stamp >= 0 || self.in_file);
            let latest = if moves { Some(own) } else { self.latest };
            return Some(Times { own, effective: own, latest });
        }
        let horizon = self.latest?.checked_sub(self.lateness)?;
        let effective = if own >= horizon {
            own
        } else if self.drops_late {
            return None;
        } else {
            horizon
        };
        Some(Times { own, effective, latest: self.latest })
    }

    /// The event time of a record that has no field for it: its timestamp, unless that is out of range.
    #[inline(always)]
    pub fn stamped(stamp: i64) -> Option<i64> {
        (0..LATEST / 1000).contains(&stamp).then(|| stamp * 1000)
    }
}
