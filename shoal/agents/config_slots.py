"""What docs/configuration.md says of places and slots; see `config_reference.py`."""

SLOTS = """\
## Places and slots

What a person did in a place is protected. That they were there, and when, is not: who contributes when, and in which
cell, is public under `relation = "values"`.

```toml
[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
statistic = "slot-mean"
range = [0, 65]
slot = "1h"
cell = { h3 = 8, lat = "lat", lon = "lon" }
max_cells = 4
max_contributions = 64
epsilon = 1.0
```

Every cell in which somebody was is released once, at the end of the slot. A cell is a hexagon of the H3 grid, `cell`;
or what a `group` field says; or without both there is one for all. In releases it is the `group`.
"""

SLOTS_TAIL = """\
* **`statistic`**: `"slot-mean"`; `"slot-mean-variance"`, whose `value` is `{"mean", "variance"}`, and so are
  `noise_sd`, `low` and `high`; `"slot-distribution"`, whose `value` is `{"cdf", "histogram", "quantiles"}`: shares at
  the right ends of `bins` equal parts of the range, shares in them, and `quantiles` by name.
* **`unit`**: `"user-slot"`, a person in one slot. Or a longer one, `"user-day"` or `"user"`: then a unit counts in
  its first `max_slots` slots, and each has `epsilon / max_slots`. What comes later is left out and counted.
* **`max_cells`**: in how many cells a unit counts in a slot. They share what the slot has of epsilon. With
  `across_cells = "split"` these are the first ones, and each cell has an equal share. With `"chop-user"`, the
  default, release leaves people out of those cells that lose least by it, and then each cell has its share of the
  *realised* number of cells: the most that one of its users is in. `"clip-user"` is another name of it. Each release
  says how many samples were `dropped`, and by how much the worst error of the slot has changed (`degradation`).
* **`max_contributions`** counts a unit's samples in a cell.
* **`algorithm`**: `"best"` foretells the error of each from public counts, and takes the least; `"baseline"` adds
  noise to the sum of all; `"array-averaging"` to the mean of arrays that users are packed into; `"levy"`,
  `"fixed-quantile"` and `"epsilon-quantile"` spend a part of epsilon to find out where to clip arrays; `"few-users"`
  is for a handful of users who are alike (`sigma`), needs `delta`, lets those with enough samples take part, and may
  say "no release": `"value": null`, final for its slot. Mean with variance, and distributions, have `"best"` and
  `"baseline"`.
* **`contribution_cap`**: how many samples of a unit count within a cell, a number, `"median"` of what users have, or
  `"optimal"`, the one with the least worst error. `"baseline"` takes all unless it is a number.
* **`prior = "few-users"`**, of a `slot-mean`: where no useful range is known and `range` is very wide. Half of
  epsilon, and `delta`, find a centre; means of users are clipped around it.
* **`min_users`** is a courtesy to the people in a cell and no part of the guarantee: how many there are is public.
* An event that comes after its slot is over does not count, under `late = "fold"` too, unless its unit is longer.
* Each release says besides: `mechanism`, `cell_epsilon`, `users` and `samples` that count, `dropped`, and `error`,
  the worst expected error over all possible values, where there is a bound.
"""
