"""Mutants of the bytes: each moves one of those that the golden corpus stores, and no guarantee.

All other tests compare a version with itself, and most of these mutants move both sides alike.
"""

from tests.mutants.mutant import Mutant

GOLDEN = "golden/test_golden.py::"
BYTES = GOLDEN + "test_bytes_are_as_stored"
LINES = GOLDEN + "test_lines_are_as_stored"
PARAMETERS = GOLDEN + "test_parameters_are_as_stored"
COMMANDS = GOLDEN + "test_commands_print_what_is_stored"
STATES = GOLDEN + "test_what_follows_a_state_of_the_past_is_as_stored"

NOISE = (
    Mutant(
        name="a subkey by another name",
        family="golden",
        file="mechanisms/continual_mean/levels.py",
        old='derive(self.key, self.group, "tree", "mean", ',
        new='derive(self.key, self.group, "tree", "means", ',
        breach="after an upgrade a metric goes on with other noise: releases made again are not those published",
        tests=(BYTES + "[naive-file-releases]", LINES + "[naive-file-releases]"),
    ),
    Mutant(
        name="the grid rounds down",
        family="golden",
        file="mechanisms/grid.py",
        old="return int(y + 0.5)",
        new="return int(y)",
        breach="after an upgrade samples count as other grid indices",
        tests=(BYTES + "[naive-messages]",),
    ),
    Mutant(
        name="a decayed sum by another name in the digest",
        family="golden",
        file="mechanisms/sums/window.py",
        old='f"WindowSum(length=',
        new='f"WindowSum(span=',
        breach="the parameters have another digest: every ledger refuses the metric, and its key is another one",
        tests=(PARAMETERS + "[window]",),
        quick=True,
    ),
    Mutant(
        name="one more key in the parameters",
        family="golden",
        file="stream/parameters.py",
        old='"revision": REVISION,',
        new='"revision": REVISION, "new": 1,',
        breach="all metrics have another digest: every ledger refuses them, and their keys are other ones",
        tests=(PARAMETERS + "[sharp]",),
    ),
)

RECORDS = (
    Mutant(
        name="two fields of a release in another order",
        family="golden",
        file="stream/group.py",
        old='            "group": group,\n            "seq": seq,\n',
        new='            "seq": seq,\n            "group": group,\n',
        breach="every release has other bytes than the one that is published",
        tests=(LINES + "[hexagons-file-releases]",),
    ),
    Mutant(
        name="the end of a tick a microsecond later",
        family="golden",
        file="stream/tick_queue.py",
        old="end = (tick + 1) * self._every",
        new="end = (tick + 1) * self._every + 1",
        breach="releases say that they are of another time",
        tests=(BYTES + "[in-order-releases]",),
    ),
    Mutant(
        name="the chain of a partition the other way round",
        family="golden",
        file="stream/release.py",
        old="hashlib.sha256(self.published_chain + release)",
        new="hashlib.sha256(release + self.published_chain)",
        breach="headers do not follow those that are in the topic, and an audit finds them broken",
        tests=(BYTES + "[sharp-with-groups-releases]",),
    ),
    Mutant(
        name="the chain of a group the other way round",
        family="golden",
        file="models/digests.py",
        old="return sha256(previous + release).digest()",
        new="return sha256(release + previous).digest()",
        breach="the chain in the audit log does not go on from its last link",
        tests=(BYTES + "[full-with-groups-release-changelog]",),
    ),
    Mutant(
        name="two fields of an activation in another order",
        family="golden",
        file="models/records.py",
        old='"prior": prior, "epsilon": epsilon,',
        new='"epsilon": epsilon, "prior": prior,',
        breach="every activation has other bytes than the one that is published",
        tests=(BYTES + "[full-activations]", BYTES + "[full-file-activations]"),
    ),
    Mutant(
        name="another reason in dead letters",
        family="golden",
        file="stream/event_time.py",
        old='raise Refused("late")',
        new='raise Refused("too-late")',
        breach="whoever reads dead letters by their reasons misses these",
        tests=(BYTES + "[late-events-dropped-dead-letters]",),
    ),
)

STREAM = (
    Mutant(
        name="a message cut one row later",
        family="golden",
        file="stream/contributions.py",
        old="most = MESSAGE_BYTES // each",
        new="most = MESSAGE_BYTES // each + 1",
        breach="a transaction made again has other messages than those that are in the topic",
        tests=(BYTES + "[long-messages-messages]",),
    ),
    Mutant(
        name="a late event a microsecond later",
        family="golden",
        file="stream/event_time.py",
        old="        return horizon\n",
        new="        return horizon + 1\n",
        breach="after an upgrade late events count at other times, some of them in another tick",
        tests=(BYTES + "[full-messages]",),
    ),
    Mutant(
        name="refused samples counted twice",
        family="golden",
        file="stream/bound.py",
        old="self.counters[reason] += 1",
        new="self.counters[reason] += 2",
        breach="metrics and the summary of a run tell of samples that were none",
        tests=(GOLDEN + "test_counters_are_as_stored[wishful]",),
    ),
    Mutant(
        name="contributions under another key",
        family="golden",
        file="stream/contributions.py",
        old='''key = f"{self._metric.label}|{group or ''}"''',
        new='''key = f"{self._metric.label}||{group or ''}"''',
        breach="what waits in the topic at an upgrade is of other groups than what comes after it",
        tests=(LINES + "[full-messages]",),
    ),
    Mutant(
        name="rows of a tick in the order of their arrival",
        family="golden",
        file="stream/tick_queue.py",
        old="sorted(rows, key=TIME if alone else CANONICAL)",
        new="list(rows)",
        breach="activations and state follow the order in which partitions were read, which no two runs share",
        tests=(BYTES + "[three-coordinates-activations]",),
    ),
)

STATE = (
    Mutant(
        name="accounts under another key",
        family="golden",
        file="mechanisms/continual_mean/accounts.py",
        old='RecordKind(site.tag(b"a"), rule.account_bytes)',
        new='RecordKind(site.tag(b"A"), rule.account_bytes)',
        breach="after an upgrade all users start again at count 0",
        tests=(BYTES + "[single-tree-bound-changelog]", BYTES + "[single-tree-bound-state]"),
        quick=True,
    ),
    Mutant(
        name="groups of users under another key",
        family="golden",
        file="mechanisms/continual_mean/accounts.py",
        old='RecordKind(site.tag(b"g"), GROUPS_BYTES)',
        new='RecordKind(site.tag(b"G"), GROUPS_BYTES)',
        breach="after an upgrade users may be in as many groups again",
        tests=(STATES + "[sharp-with-groups-952ad58]",),
        otherwise="users would start again at count 0",
    ),
    Mutant(
        name="waiting contributions under another key",
        family="golden",
        file="stream/tick_queue.py",
        old='RUN, CHUNK, ROW = b"r", b"p", b"w"',
        new='RUN, CHUNK, ROW = b"r", b"q", b"w"',
        breach="after an upgrade what waited for its tick is lost, or taken for something else",
        tests=(BYTES + "[naive-release-changelog]",),
    ),
    Mutant(
        name="runs of rows that outlive their tick",
        family="golden",
        file="stream/tick_queue.py",
        old="pile.names = _joined(pile.names, [name])",
        new="pile.names = _joined(pile.names, [])",
        breach="what a successor took over is counted once more by the next one",
        tests=("stream/test_tick_queue.py::test_rows_wait_in_the_runs_that_they_came_in",),
        quick=True,
    ),
    Mutant(
        name="JSON cut at what a text has",
        family="golden",
        file="models/json_bytes.py",
        old="if len(cut) != len(lists):",
        new="if not lists:",
        breach="a group whose name looks like a seam moves what other groups' records in the changelog say",
        tests=("models/test_json_bytes.py::test_json_of_many_lists_is_that_of_each",),
    ),
    Mutant(
        name="a message's cells that are there already",
        family="golden",
        file="stream/tick_queue.py",
        old="if self._held is None and not self._flat and len(set(cells)) == len(cells):",
        new="if self._held is None and len(set(cells)) == len(cells):",
        breach="sums of a message before are forgotten",
        tests=("stream/test_tick_queue.py::test_partials_add_up_to_their_exact_sums",),
    ),
    Mutant(
        name="sums of another prefix's nodes",
        family="golden",
        file="mechanisms/counters/binary.py",
        old="sums = self._sums[: t.bit_count() - len(drawn)]",
        new="sums = self._sums[: (t & self._at).bit_count()]",
        breach="a release has noise of nodes that hold other elements, and after a restart that of its own",
        tests=("mechanisms/counters/test_counters.py::TestCounters::test_noise_is_a_function_of_key_and_t[binary-12]",),
    ),
    Mutant(
        name="a replay that calls nothing confirmed",
        family="golden",
        file="agents/audit/replay/matching.py",
        old="self.confirmed += not problems",
        new="self.confirmed += bool(problems)",
        breach="an audit's report of a sound log says that it is not",
        tests=(GOLDEN + "test_a_replay_says_what_is_stored[full]",),
    ),
)

ANSWERS = (
    Mutant(
        name="a key of a plan by another name",
        family="golden",
        file="mechanisms/continual_mean/plan.py",
        old='"half_the_error": {',
        new='"half_error": {',
        breach="programs that read a plan's JSON end with an error",
        tests=(COMMANDS + "[shop-plan]", COMMANDS + "[shop-plan-from-events]"),
    ),
    Mutant(
        name="a key of the budget by another name",
        family="golden",
        file="agents/cli/commands/budget.py",
        old='"left": _amounts',
        new='"remaining": _amounts',
        breach="programs that read the budget's JSON end with an error",
        tests=(COMMANDS + "[places-budget]",),
    ),
)

MUTANTS = (*NOISE, *RECORDS, *STREAM, *STATE, *ANSWERS)
