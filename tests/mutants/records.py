"""Mutants of what must not be forgotten: accounts, the one stream of a key, the ledger and the audit."""

from tests.mutants.mutant import Mutant

STATE = "privacy/test_state.py::"
RELEASE = "stream/test_release.py::"
LEDGER = "agents/test_ledger.py::"
AUDIT = "agents/test_audit_log.py::"
VERIFY = "agents/test_verify.py::"
NOTHING_FOUND = "not enough values to unpack"  # where a test names the one finding

KEPT = (
    Mutant(
        name="counts start again after a restart",
        family="state",
        file="stream/bound.py",
        old='home[key[len(tag) :]] = from_bytes(value, "big")',
        new="home[key[len(tag) :]] = 0",
        breach="a user has the cap once more after every crash",
        tests=(STATE + "test_counts_and_groups_survive_any_restart_and_are_nobody_elses",),
    ),
    Mutant(
        name="lost accounts go unnoticed",
        family="state",
        file="stream/bound.py",
        old="if due is not None and found != due:",
        new="if due is not None and found > due:",
        breach="users whose accounts a changelog lost start again at count 0",
        tests=(STATE + "test_a_changelog_that_lost_a_user_is_refused",),
    ),
    Mutant(
        name="a lost message goes unnoticed",
        family="state",
        file="stream/release.py",
        old="if message.number != source.number + 1:",
        new="if message.number < source.number + 1:",
        breach="releases go on over another stream than the one that the key has met",
        tests=(RELEASE + "test_a_lost_message_is_the_end",),
    ),
    Mutant(
        name="a second stream under the key",
        family="state",
        file="stream/release.py",
        old="if stored is not None and stored != release:",
        new="if stored is None and stored == release:",
        breach="the same noise over two inputs shows their exact difference",
        tests=(RELEASE + "test_up_to_what_is_published_a_release_may_only_be_recomputed",),
        quick=True,
    ),
    Mutant(
        name="pseudonym repeated",
        family="state",
        file="mechanisms/keyed.py",
        old="digest.update(user)",
        new="digest.update(user[:1])",
        breach="two users pass for one: one of them is counted with the other's blocks",
        tests=("privacy/test_one_stream.py::test_pseudonyms_differ_between_metrics_and_say_nothing_without_the_key",),
    ),
)

CHARGES = (
    Mutant(
        name="charge not added",
        family="ledger",
        file="agents/budget.py",
        old="left -= charge",
        new="left -= 0",
        breach="each of several new metrics has the whole rest of the budget",
        tests=(LEDGER + "test_metrics_that_come_together_share_what_is_left[sqlite]",),
    ),
    Mutant(
        name="retired versions are refunded",
        family="ledger",
        file="agents/budget.py",
        old="charges = [Charge(*row) for row in connection.execute(wanted.order_by(*place))]",
        new="charges = [Charge(*row) for row in connection.execute(wanted.order_by(*place)) if row.state == 'active']",
        breach="what was published stays known, and its charge does not",
        tests=(LEDGER + "test_a_budget_is_not_exceeded_over_all_apps_and_retired_versions[sqlite]",),
        quick=True,
    ),
    Mutant(
        name="budget not enforced",
        family="ledger",
        file="agents/budget.py",
        old="if charge > left:",
        new="if charge > configured:",
        breach="the charges of one person exceed the budget",
        tests=(LEDGER + "test_a_budget_is_not_exceeded_over_all_apps_and_retired_versions[sqlite]",),
        quick=True,
    ),
    Mutant(
        name="budget raised by a configuration",
        family="ledger",
        file="agents/budget.py",
        old="if configured > stored:",
        new="if configured < 0:",
        breach="the budget grows without an explicit, logged act",
        tests=(LEDGER + "test_the_first_configuration_sets_the_budget_and_none_raises_it[sqlite]",),
    ),
    Mutant(
        name="parameters may drift",
        family="ledger",
        file="agents/registration.py",
        old="if row.parameters != registration.parameters or row.digest != registration.digest:",
        new="if row.metric != registration.metric:",
        breach="another mechanism runs under a charge that was made for the first",
        tests=(LEDGER + "test_changed_parameters_need_a_new_version[sqlite]",),
    ),
    Mutant(
        name="two apps share a key",
        family="ledger",
        file="agents/registration.py",
        old="if same and row.digest == registration.digest and row.key_fingerprint == request.key_fingerprint:",
        new="if same and row.digest != registration.digest and row.key_fingerprint == request.key_fingerprint:",
        breach="the same noise on two streams shows their difference",
        tests=(LEDGER + "test_two_apps_do_not_share_the_noise_of_a_key[sqlite]",),
    ),
    Mutant(
        name="a retired version returns",
        family="ledger",
        file="agents/registration.py",
        old="if row.state == RETIRED:\n        raise",
        new="if row.state == RETIRED and request.file_run:\n        raise",
        breach="its key meets a second stream",
        tests=(LEDGER + "test_changed_parameters_need_a_new_version[sqlite]",),
    ),
    Mutant(
        name="a value may be public elsewhere",
        family="ledger",
        file="agents/registration.py",
        old='if f"{value}.".startswith(f"{path}.") or f"{path}.".startswith(f"{value}."):',
        new="if value == path:",
        breach="the value of one metric is the user, time or group of another, and goes out as it is",
        tests=(LEDGER + "test_a_field_is_value_or_pattern_over_all_apps_of_a_log",),
    ),
)

LOGS = (
    Mutant(
        name="equivocation overwritten",
        family="audit",
        file="agents/audit_log.py",
        old="if known[seq] != body:",
        new="if known[seq] == b'':",
        breach="two values under one id, hence two streams under one key, and no one is told",
        tests=(AUDIT + "test_two_values_for_one_id_are_refused_and_hold_up_no_other_group[sqlite-True]",),
        quick=True,
    ),
    Mutant(
        name="chain not checked",
        family="audit",
        file="agents/verify.py",
        old="elif row.previous_hash != digest:",
        new="elif row.previous_hash == b'':",
        breach="a release rewritten with its own digest goes unnoticed",
        tests=(VERIFY + "test_a_changed_value_with_its_digest_breaks_the_chain[sqlite]",),
        otherwise=NOTHING_FOUND,
        quick=True,
    ),
    Mutant(
        name="digests not checked",
        family="audit",
        file="agents/verify.py",
        old="if chain(row.previous_hash, row.body.encode()) != row.hash:",
        new="if row.hash == b'':",
        breach="a changed release goes unnoticed",
        tests=(VERIFY + "test_a_changed_value_is_found[sqlite]",),
        otherwise=NOTHING_FOUND,
    ),
    Mutant(
        name="charges above the budget go unnoticed",
        family="audit",
        file="agents/verify.py",
        old="if charged > limit:",
        new="if charged < 0:",
        breach="a ledger that was changed by hand passes for one that adds up",
        tests=(VERIFY + "test_a_ledger_that_does_not_add_up_is_found",),
        otherwise=NOTHING_FOUND,
    ),
    Mutant(
        name="a chain of single links",
        family="audit",
        file="models/chain.py",
        old="return sha256(previous + release).digest()",
        new="return sha256(release).digest()",
        breach="a release may be taken out or moved without a trace",
        tests=("models/test_log_values.py::test_a_chain_depends_on_every_release_and_on_their_order",),
    ),
)

MUTANTS = (*KEPT, *CHARGES, *LOGS)
