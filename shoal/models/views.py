"""What the views of the audit log are, for those who read it in SQL: in the database, on the page, and in tests.

The steps in shoal/migrations/versions/ make the views; this is the one place that says what each column means. In
PostgreSQL the texts are comments on views and columns (`upgrade` of shoal/agents/audit/migration.py sets them). To
change one there is to add a step.
"""

VERSION = {
    "app": "the app whose metric it is",
    "metric": "the metric's name",
    "version": "the version of the metric's parameters",
}
GROUP = "its group or cell; NULL for a metric without groups. A backslash in a name is doubled"
SEQ = "the number of the release in its group, from 1"
STATE = "of the version: active, ended or retired"
RELATION = "what of them it hides: values, or add-remove (that somebody is there, too)"
AMOUNT = "a number; the table metric_version has it as exact text"

RELEASES = VERSION | {
    "group_name": GROUP,
    "seq": SEQ,
    "until": "the end of its tick, step or slot: ISO 8601 text in UTC, which sorts as time does",
    "value": "the statistic, with noise; NULL where there is no release, or where the value is not one number",
    "noise_sd": "the standard deviation of the noise; NULL as the value is",
    "low": "lower end of the noise interval, which holds 95 % of the noise",
    "high": "upper end of the noise interval",
    "samples": "how many samples the value rests on, exact; NULL with relation add-remove, and where they decay",
    "noise_exceeds_range": "true where the noise of a mean exceeds the width of its range: its value says nothing. "
    "NULL for other statistics",
    "unit": "whom the metric's epsilon protects",
    "state": STATE,
    "id": "names the release for ever: metric, version, group, seq",
    "body": "the release's bytes, as text: JSON",
    "count": "with relation add-remove, of a mean or distribution: how many samples it rests on, with noise",
    "count_sd": "the standard deviation of that noise",
    "relation": RELATION,
}
ESTIMATES = VERSION | {
    "group_name": GROUP,
    "seq": SEQ,
    "since": "the beginning of what the number is about: of its slot, or of its window of time, as the column "
    "until; NULL where that is the beginning of the stream, or where samples count less and less",
    "until": "its end: that of the tick, step or slot. ISO 8601 text in UTC, which sorts as time does",
    "statistic": "which statistic it is, as the configuration says: mean, sum, count, ...",
    "part": "which number of the release it is: value; mean or variance of a variance; quantile, histogram or cdf "
    "of a distribution",
    "field": "the field of the event that it is about, or the predicate; NULL for a count of events or users",
    "quantile": "of a quantile: which one, 0.5 is the median",
    "bin": "of histogram and cdf: the number of the bin, from 1",
    "bin_low": "the lower end of that bin",
    "bin_high": "the upper end of that bin; cdf is the share of values up to here",
    "value": "the number, with noise; NULL where there is no release",
    "noise_sd": "the standard deviation of its noise; NULL for a quantile, and where there is no release",
    "low": "lower end of its noise interval, which holds 95 % of the noise",
    "high": "upper end of its noise interval",
    "samples": "how many samples it rests on, exact, or their weights; NULL with relation add-remove",
    "count": "with relation add-remove, of a mean or distribution: how many samples it rests on, with noise",
    "count_sd": "the standard deviation of that noise",
    "unit": "whom the metric's epsilon protects",
    "relation": RELATION,
    "epsilon": "the privacy loss of one unit, over all releases and groups of the metric",
    "delta": "its delta; 0 is pure differential privacy",
    "state": STATE,
    "id": "the release that it is of",
}
BUDGET = {
    "ledger_unit": "whom the budget protects",
    "ledger_relation": RELATION,
    "budget_epsilon": "the budget of one such unit, over all metrics of all apps",
    "budget_delta": "its delta",
    "charged_epsilon": "how much of it is charged: the sum over all versions, retired ones too",
    "charged_delta": "the sum of their deltas",
    "left_epsilon": "what is left; 0 where less than a part in 10^12 is",
    "left_delta": "what is left of delta, likewise",
} | VERSION | {
    "topic": "the topic of its events",
    "statistic": "which statistic it is",
    "state": "active; ended, after a file; or retired: it publishes no more, and its charge stays",
    "unit": "whom the metric's own epsilon protects",
    "relation": RELATION,
    "epsilon": f"the metric's epsilon for its own unit: {AMOUNT}",
    "delta": f"its delta: {AMOUNT}",
    "charge_epsilon": f"what the ledger is charged for it, once and for good: {AMOUNT}",
    "charge_delta": f"the delta that is charged: {AMOUNT}",
    "registered": "when it was registered, and charged: ISO 8601 text in UTC",
}  # fmt: skip

# By name: what a row is, and the columns in their order.
VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "releases": ("a row for each release, with the fields of its JSON", RELEASES),
    "estimates": ("a row for each number of each release: of coordinates, quantiles and bins, too", ESTIMATES),
    "budget": ("a row for each metric version: what it is charged, beside the budget as a whole", BUDGET),
}
