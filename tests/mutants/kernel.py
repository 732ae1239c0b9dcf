"""Mutants of the kernel: lines of Rust that do something else than the twin. Each is built, which takes a while."""

from tests.mutants.mutant import Mutant

READER = "stream/kernel/test_reader.py::test_both_lanes_send_the_same"
STORES = "stream/kernel/test_stores.py::"
OVERFLOWS = STORES + "test_a_number_beyond_its_width_overflows_in_both"
ORDER = STORES + "test_names_of_any_length_keep_numbers_and_order"
LOGS = STORES + "test_a_log_is_restored_to_the_same_numbers_and_order"
CUTS = "stream/kernel/test_queues.py::test_messages_are_cut_in_the_same_places"
EVENTS = "stream/kernel/test_lines.py::test_events_and_their_digest_are_the_same"
UNUSUAL = "stream/kernel/test_reader.py::test_both_lanes_send_the_same_of_every_unusual_record"
MANY = "stream/kernel/test_reader.py::test_both_lanes_send_the_same_of_users_with_many_samples"
ROWS = "agents/audit/replay/test_kernel_lane.py::"
BROKEN = "stream/kernel/test_batches.py::test_what_is_broken_ends_as_with_aiokafka"
HOSTILE = "stream/kernel/test_hostile.py::test_both_lanes_send_the_same_of_every_hostile_record"
BATCHES = "stream/kernel/test_batches.py::test_records_are_those_that_aiokafka_reads"


def mutant(file: str, name: str, old: str, new: str, breach: str, *tests: str) -> Mutant:
    """One of a file of the kernel; a test without a slash is a configuration of both lanes."""
    where = tuple(test if "/" in test else f"{READER}[{test}]" for test in tests)
    source = f"kernel/src/{file}.rs"
    return Mutant(name=f"kernel: {name}", family="kernel", file=source, old=old, new=new, breach=breach, tests=where)


MUTANTS = (
    mutant("rules/mean", "one more than the cap", "accounts.number(place) & COUNT_MASK >= u128::from(self.cap)",
           "accounts.number(place) & COUNT_MASK > u128::from(self.cap)", "a user counts once too often",
           f"{MANY}[groups]"),
    mutant("rules/mean", "one group more", "if count >= u128::from(self.groups)", "if count > u128::from(self.groups)",
           "a user is in one group too many", "groups"),
    mutant("rules/unit", "one group of a unit more", "if account / ONE_MEMBER >= u128::from(self.groups)",
           "if account / ONE_MEMBER > u128::from(self.groups)", "a unit is in one group too many", "sums"),
    mutant("rules/unit", "one sample of a unit more", "if account & COUNT_MASK >= u128::from(self.cap)",
           "if account & COUNT_MASK > u128::from(self.cap)", "a unit counts once too often", "sums of a day"),
    mutant("rules/blocks", "the weight of a block", "let weight = 1 << level.saturating_sub(1);",
           "let weight = 1 << level;", "a block says twice its samples", "full"),
    mutant("rules/blocks", "fewer samples alone", "if count <= *alone", "if count < *alone",
           "a sample that goes out alone waits", f"{MANY}[sharp with blocks]"),
    mutant("rules/blocks", "the neighbouring bucket", "|&boundary| boundary <= value", "|&boundary| boundary < value",
           "a sample on a boundary is clipped by another range", "sharp"),
    mutant("rules/blocks", "the level of a sample", "64 - (count - 1).leading_zeros()", "64 - count.leading_zeros()",
           "samples of a user have noise of another level", "sharp"),
    mutant("rules/two_sided", "after the end", "|end| sample.effective >= end", "|end| sample.effective > end",
           "a sample at the end counts", "declared keys"),
    mutant("rules/mod", "declared keys told apart", "Why::OverCap | Why::GroupsLeftOut | Why::Undeclared",
           "Why::OverCap | Why::GroupsLeftOut", "a key that nobody declared becomes a dead letter", "declared keys"),
    mutant("rules/two_sided", "once in each step, of each user", "if seen.find(member).is_some()",
           "if seen.find(user).is_some()", "a unit counts twice in a step", "users of each step"),
    mutant("partitioning", "another hash", "hash ^ hash >> 15", "hash ^ hash >> 14",
           "a user of another partition has a second account", "naive"),
    mutant("clock", "late as it was", "Some(Times { own, effective, latest: self.latest })",
           "Some(Times { own, effective: own, latest: self.latest })",
           "a sample comes to a tick that is over", "naive"),
    mutant("clock", "a clock that goes by events", "if self.beats { self.latest } else { Some(own) }",
           "{ Some(own) }", "an event moves a clock that protects presence", "add-remove"),
    mutant("json", "what follows a record", "(scan.at == raw.len()).then_some(())",
           "(scan.at <= raw.len()).then_some(())", "what is no JSON counts", UNUSUAL),
    mutant("json", "control characters", "0..=0x1f => return None", "0..=0x08 => return None",
           "what is no JSON counts", UNUSUAL),
    mutant("json", "zeros in front", "b'0' => {}", "b'0' => while let Some(b'0'..=b'9') = self.peek() { self.at += 1 }",
           "what is no JSON counts", UNUSUAL),
    mutant("json", "what is no UTF-8", "if !raw.is_ascii() && std::str::from_utf8(raw).is_err()", "if raw.is_empty()",
           "what is no JSON counts", UNUSUAL),
    mutant("numbers", "no sign", "Some(if negative { -number } else { number })",
           "Some(if negative { number } else { number })", "a value is another", "naive"),
    mutant("numbers", "the first digits of an exponent", "text.len() > LONGEST", "text.len() > 1 << 30",
           "another value counts than the twin's", f"{HOSTILE}[naive]"),
    mutant("numbers", "ten times too large", "whole as f64 / POWERS[decimals]", "whole as f64 / POWERS[decimals / 2]",
           "a value is another", UNUSUAL),
    mutant("times", "zones the other way", "if *sign == b'+'", "if *sign == b'-'",
           "a sample has another time", UNUSUAL),
    mutant("lane", "minus zero", """text.len() <= 18 && text != b"-0\"""", "text.len() <= 18",
           "a user has two names, and two accounts", UNUSUAL),
    mutant("queue", "the tick before", "|last| last.start == start", "|last| last.start <= start",
           "a sample comes to a tick that is over", "naive"),
    mutant("queue", "another pseudonym", "Pseudonyms::new(key)", "Pseudonyms::new(&key[1..])",
           "a user has another pseudonym in each lane, and so two caps", "full"),
    mutant("messages", "longer messages", "else { 400_000 };", "else { 500_000 };",
           "a message is cut elsewhere, and the release reads it twice", CUTS),
    mutant("store/records", "numbers that are cut", "if number > self.mask {",
           "if number > self.mask && self.width > 99 {",
           "an account that overflows begins anew", OVERFLOWS),
    mutant("store/records", "written once", "self.at_mut(index)[0] &= !CHANGED;", "self.at_mut(index)[0] |= CHANGED;",
           "an account is written once, and a restart forgets what came since", "naive"),
    mutant("store/mod", "the order of tombstones", "for_each(Store::reverse)", "for_each(|_| ())",
           "a restored account is dropped in another order", ORDER),
    mutant("store/mod", "a period too long", "> i128::from(promise)", ">= i128::from(promise)",
           "the accounts of a period stay when it is over", ORDER),
    mutant("store/table", "numbers of others", "u64::from(last - number + 1)", "u64::from(number + 1)",
           "a user has the account of another after a restart", ORDER),
    mutant("store/table", "the slot of before", "self.grow();\n            self.settle(slot);",
           "self.grow();\n            self.set(free, slot);",
           "a user whose account made a table grow begins anew", LOGS),
    mutant("deltas", "whoever came next", "next.filter(|&place| store.has(place, name))",
           "next.filter(|&place| store.len() > place as usize)",
           "a user has the account of another after a restart", LOGS),
    mutant("deltas", "seats that nobody has", "kept += u32::from(place != GONE);", "kept += 1;",
           "a record counts as needed for names that another one has, and that one is deleted", LOGS),
    mutant("batches", "times of others", "header.first_timestamp.checked_add(later)?",
           "header.first_timestamp.checked_sub(later)?", "a record has another time", BATCHES),
    mutant("batches", "any checksum", "crc32c::crc32c(checked) == u32::from_be_bytes(checksum)",
           "crc32c::crc32c(checked) == u32::from_be_bytes(checksum) || checksum[3] > 0",
           "what a broken disk made counts", BROKEN),
    mutant("lane", "what is read last", "        self.count(&mut found);\n        next\n", "        next\n",
           "the last records of a batch do not count", "naive"),
    mutant("lane", "half of what was read", "found.samples.truncate(before);", "",
           "a record that is left to the twin counts twice", "several metrics"),
    mutant("lines", "blank lines among events", "cut.has_blanks = true;", "cut.has_blanks = false;",
           "the digest of a file's events covers lines that are none", EVENTS),
    mutant("lane", "late lines", "times.own != times.effective", "times.own > times.effective",
           "a file in no order is published from", "stream/kernel/test_lines.py::test_a_survey_is_the_same"),
    mutant("rows", "any writing of a number", "(scan.at > begin && !has_zero)", "(scan.at > begin)",
           "an audit finds a difference where there is none",
           ROWS + "test_most_rows_are_taken"),
    mutant("rows", "the latest time of rows", "earliest = earliest.min(effective);", "earliest = effective;",
           "an audit overlooks rows that came after their tick", ROWS + "test_rows_are_taken_as_they_were_written"),
)  # fmt: skip
