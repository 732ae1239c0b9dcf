"""Mutants of what protects presence in the stream: clocks, transactions, beginnings, and what workers and runs show."""

from tests.mutants.mutant import Mutant

BYTES = "privacy/test_presence.py::"
BEATS = "stream/test_beats.py::"
RUNS = "cli/test_presence.py::"
OBSERVED = "agents/worker/test_conditions.py::"
ALONE = BYTES + "test_whatever_a_unit_sends_changes_no_byte"


def mutant(
    name: str, file: str, old: str, new: str, breach: str, *tests: str, quick: bool = False, otherwise: str = ""
) -> Mutant:
    return Mutant(
        name=name, family="presence", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick,
        otherwise=otherwise,
    )  # fmt: skip


CLOCKS = (
    mutant(
        "records move clocks of beats",
        "stream/event_time.py",
        "            if not self._beats:\n                self.latest = time\n",
        "            self.latest = time\n",
        "one record from the future folds or drops everybody's later records",
        ALONE + "[far ahead]",
        BEATS + "test_no_record_moves_a_clock_that_goes_by_beats",
        quick=True,
    ),
    mutant(
        "clock records move clocks of beats",
        "stream/event_time.py",
        "        if self._beats:\n            return\n",
        "        if False:\n            return\n",
        "a unit's client moves the clock with a record that may be of that unit alone",
        ALONE + "[a clock record]",
    ),
    mutant(
        "late by the record's own time",
        "stream/event_time.py",
        "        horizon = latest - self._lateness\n",
        "        horizon = time - self._lateness\n",
        "a record counts in a tick that is closed: a worker that ends tells that it came",
        ALONE + "[late]",
        otherwise="came for a tick that is closed",
    ),
    mutant(
        "an idle partition speaks",
        "stream/topic.py",
        "any(clock.cadences and not clock.beats for clock in self.clocks)",
        "any(clock.cadences for clock in self.clocks)",
        "that a partition has nothing more tells that somebody's last record was read",
        BEATS + "test_a_silent_partition_lets_no_clock_that_goes_by_beats_pass",
    ),
    mutant(
        "an idle partition lets clocks pass",
        "stream/clock.py",
        "if source.idle_wall is not None and not beats:",
        "if source.idle_wall is not None:",
        "ticks close by whether somebody's record kept a partition from being idle",
        BEATS + "test_a_silent_partition_lets_no_clock_that_goes_by_beats_pass",
    ),
    mutant(
        "contributions of a closed tick fold",
        "stream/release.py",
        "        if metric.section.protects_presence:\n            raise FailStop(",
        "        if metric.section.slot is not None:\n            raise FailStop(",
        "a bug of clocks moves samples to other ticks in silence",
        BEATS + "test_contributions_for_a_closed_tick_end_the_worker",
    ),
    mutant(
        "each metric takes beats of its own",
        "stream/bound.py",
        "most = ahead if event_clock.clock.beats else event_clock.clock.max_ahead",
        "most = event_clock.clock.max_ahead",
        "the order in which metrics close ticks depends on how many beats are read at once",
        BEATS + "test_a_beat_that_is_too_far_ahead_or_no_time_is_a_dead_letter",
    ),
)

BEGINNINGS = (
    mutant(
        "a metric begins where workers are",
        "stream/bound.py",
        '        if metric.label in mark["starts"] or section.start is None:\n',
        "        if True:\n",
        "which records count depends on how far load let a worker read",
        BYTES + "test_a_metric_that_is_added_begins_wherever_load_let_a_worker_read",
        BEATS + "test_a_metric_that_is_added_begins_at_the_first_beat_of_its_start",
        BEATS + "test_a_metric_that_is_added_after_its_start_is_refused",
    ),
    mutant(
        "a metric begins after its start",
        "stream/bound.py",
        'if (beat := mark.get("beat")) is not None and beat >= section.start:',
        'if (beat := mark.get("beat")) is not None and beat < 0:',
        "the first records that count are those after the beat that load let it see first",
        BEATS + "test_a_metric_that_is_added_after_its_start_is_refused",
    ),
    mutant(
        "a metric that is added begins with the first record of a partition that nobody has read",
        "stream/bound.py",
        "if metric.section.protects_presence} & self.plan.added\n",
        "if metric.section.protects_presence} & set()\n",
        "whether somebody's records were read by then decides which records of others count",
        BYTES + "test_a_metric_that_is_added_begins_wherever_load_let_a_worker_read",
        BEATS + "test_a_metric_that_is_added_begins_there_in_a_partition_of_which_nothing_was_read_too",
    ),
    mutant(
        "the ledger forgets which versions were added",
        "agents/audit/registration.py",
        "        added = topics[registration.metric, registration.version] in known\n",
        "        added = False\n",
        "a partition that nobody has read begins a metric elsewhere than one that somebody has",
        "agents/audit/test_owners.py::test_a_version_is_added_if_workers_had_its_topic_already",
    ),
    mutant(
        "silent ticks are not released",
        "stream/tick_queue.py",
        "        ticks = self._waiting.first(self._label), self._groups.due()\n",
        "        ticks = (self._waiting.first(self._label),)\n",
        "a release tells that somebody came",
        BYTES + "test_all_keys_are_released_at_every_step_from_the_start",
        quick=True,
    ),
    mutant(
        "the end of a file run is that of its records",
        "agents/cli/run.py",
        "section.end if section.protects_presence else",
        "section.end if False else",
        "the ledger tells when the last record was",
        RUNS + "test_a_run_tells_nothing_of_a_unit_that_is_there",
    ),
    mutant(
        "a file run ends with its last record",
        "stream/file_run.py",
        "        if self.plan.protects_presence:\n            self.release.finish(",
        "        if False:\n            self.release.finish(",
        "how many steps are released tells when the last record was",
        RUNS + "test_a_run_tells_nothing_of_a_unit_that_is_there",
    ),
)

TRANSACTIONS = (
    mutant(
        "messages in the transaction of a tick",
        "stream/pieces.py",
        "            self._seal()\n            self.is_closing = True\n",
        "            self.is_closing = True\n",
        "how long a transaction with releases stays open depends on how many events there were",
        ALONE + "[many]",
    ),
    mutant(
        "a tick's transaction ends when time is up",
        "stream/pieces.py",
        "        if not self._complete and not self.is_closing:\n",
        "        if not self._complete:\n",
        "where transactions end depends on load",
        BEATS + "test_transactions_of_a_tick_are_cut_by_what_is_released",
    ),
    mutant(
        "two ticks in one transaction",
        "stream/pieces.py",
        "if self._alone and (self._is_full() or not is_open):",
        "if self._alone and (self._is_full() or len(self.made.releases) > 2):",
        "how many ticks a transaction has depends on load",
        ALONE + "[many]",
    ),
    mutant(
        "a transaction is full by groups that are not released",
        "stream/pieces.py",
        "            return len(self.made.releases) >= RELEASES\n",
        "            return self.made.closed >= RELEASES\n",
        "where transactions end depends on how many keys there are that are not shown",
        BEATS + "test_groups_that_are_not_released_cut_no_releases",
    ),
    mutant(
        "metrics close their ticks in the order of names",
        "stream/release.py",
        "min(self._due, key=lambda label: (self._closings[label].rank, label))",
        "min(self._due)",
        "the order of releases depends on how many beats are read at once",
        BEATS + "test_ticks_of_several_metrics_are_closed_in_the_order_of_beats_however_many_come_at_once",
        ALONE + "[many]",
    ),
    mutant(
        "ticks wait for the beats of their own topic alone",
        "stream/clock.py",
        "        if own is None or not beats:\n",
        "        if True:\n",
        "the order of releases depends on how fast each topic is read",
        BYTES + "test_ticks_of_two_topics_have_the_order_of_beats_however_fast_each_is_read",
        BYTES + "test_a_topic_without_beats_holds_up_the_ticks_of_all_and_is_named",
    ),
    mutant(
        "beats are told with contributions, or at the topic's own steps",
        "stream/contributions.py",
        "            if clock.beats and self._plan.is_waited_for:",
        "            if False:",
        "whether ticks of other topics close tells that somebody contributed",
        BYTES + "test_a_beat_for_which_other_topics_wait_is_told_whoever_contributes",
    ),
    mutant(
        "a topic is added whose steps are over",
        "stream/topic.py",
        "        if (start := sections[label].start or 0) <= max(beats):\n",
        "        if (start := sections[label].start or 0) <= 0:\n",
        "after which release its first ones come depends on load",
        BYTES + "test_a_topic_that_is_added_begins_after_what_is_released",
    ),
    mutant(
        "releases bear the time of writing",
        "agents/worker/outbox.py",
        "        if self.protects_presence and released.releases:\n",
        "        if False:\n",
        "the timestamps of releases tell of load",
        ALONE + "[many]",
    ),
)

SHOWN = (
    mutant(
        "/metrics show the clock within a step",
        "stream/open_ticks.py",
        "        if clock.beats and step is not None:\n",
        "        if False:\n",
        "contributions bring a clock that is told at no other time: it tells that somebody came",
        BYTES + "test_a_clock_within_a_step_is_not_shown",
    ),
    mutant(
        "/metrics count events",
        "agents/worker/web.py",
        "        if not self._domain.discreet:\n            yield from self._counters(counts)\n",
        "        if True:\n            yield from self._counters(counts)\n",
        "a scrape tells how many events there are",
        ALONE + "[malformed]",
        quick=True,
    ),
    mutant(
        "gauges show how far behind a worker is",
        "agents/worker/gauges.py",
        "    if not readiness.domain.discreet:\n        yield from _behind(readiness)\n",
        "    if True:\n        yield from _behind(readiness)\n",
        "lags tell how many events there are",
        BYTES + "test_metrics_show_no_number_of_events",
    ),
    mutant(
        "/metrics show when contributions were sent",
        "agents/worker/gauges.py",
        "if stage != BOUND or not domain.discreet}",
        "if True}",
        "contributions are sent when events come",
        OBSERVED + "test_a_stage_brings_something_out_when_it_writes_its_output[True-stages1]",
    ),
    mutant(
        "any transaction counts as a release",
        "agents/worker/timings.py",
        "        if any(target == topic for target, _ in outbox.records):\n",
        "        if True:\n",
        "transactions without releases are of events",
        OBSERVED + "test_a_stage_brings_something_out_when_it_writes_its_output[True-stages1]",
    ),
    mutant(
        "durations of transactions are shown",
        "agents/worker/gauges.py",
        "        yield from _behind(readiness)\n        yield from _timings(readiness.host.timings)\n",
        "        yield from _behind(readiness)\n    yield from _timings(readiness.host.timings)\n",
        "how many transactions there are, and how long they take, tells how many events there are",
        BYTES + "test_metrics_show_no_number_of_events",
    ),
    mutant(
        "/readyz tells how far behind a partition is",
        "agents/worker/conditions.py",
        '({} if discreet else {"behind": count})',
        '{"behind": count}',
        "lags tell how many events there are",
        OBSERVED + "test_how_far_a_partition_is_behind_is_told_unless_presence_is_protected",
    ),
    mutant(
        "/health tells of messages that came twice",
        "agents/worker/web.py",
        '    if counts["repeated_messages"] and not domain.discreet:\n',
        '    if counts["repeated_messages"]:\n',
        "only what there is can come twice",
        BYTES + "test_messages_that_come_twice_show_nowhere",
    ),
    mutant(
        "/ready tells of messages that came twice",
        "agents/worker/readiness.py",
        "        if not self.domain.discreet:  # how",
        "        if True:  # how",
        "only what there is can come twice",
        BYTES + "test_messages_that_come_twice_show_nowhere",
    ),
    mutant(
        "errors with offsets",
        "agents/kafka/fail_stop.py",
        "return without_counts(said) if _discretion else said",
        "return said",
        "an offset tells how many events there are",
        BYTES + "test_what_ends_a_worker_has_no_count_in_its_message",
    ),
    mutant(
        "releases of beats that are ahead bear the time of writing",
        "agents/worker/outbox.py",
        "    return stamp if stamp <= now + AHEAD_MS else now\n",
        "    return min(stamp, now)\n",
        "the timestamps of releases tell of load",
        BYTES + "test_releases_bear_their_own_time_though_it_is_still_to_come",
    ),
    mutant(
        "beats are ahead by more than brokers take releases",
        "stream/bound.py",
        "ahead = min(BEAT_AHEAD, max(",
        "ahead = max(0, max(",
        "their releases cannot bear their time, and bear that of writing",
        BEATS + "test_a_beat_is_no_further_ahead_than_brokers_take_releases_of_its_time",
    ),
    mutant(
        "log lines tell how long a takeover took",
        "agents/kafka/fail_stop.py",
        "    return {} if _discretion else durations\n",
        "    return durations\n",
        "the longer, the more accounts there are",
        BYTES + "test_no_log_line_tells_how_long_something_took",
    ),
    mutant(
        "a file run counts events",
        "agents/cli/run.py",
        '                fields = {"releases": fields["releases"]}\n',
        "                pass\n",
        "its last line tells how many events there are",
        RUNS + "test_a_run_tells_nothing_of_a_unit_that_is_there",
    ),
    mutant(
        "a file run remarks on its input",
        "agents/cli/run.py",
        "        elif not session.config.is_discreet:\n            judge(",
        "        elif True:\n            judge(",
        "what is refused or said of an input tells of its records",
        RUNS + "test_no_input_is_refused_for_its_records",
    ),
)

MUTANTS = CLOCKS + BEGINNINGS + TRANSACTIONS + SHOWN
