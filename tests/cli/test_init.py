"""`shoal init`: questions at the terminal, or options of a script; one file that is never half written; what next."""

import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.agents.init.dialogue import Left
from shoal.models.config.file import load
from shoal.models.errors import ConfigError, InputError

TABLE = "customer,at,kind,amount\n" + "".join(
    f"{n % 60},2024-01-{1 + n // 100:02d}T10:00:00Z,{'ab'[n % 2]},{n % 37}.5\n" for n in range(300)
)
SAID = ("--yes", "--relation", "values", "--range", "0 200", "--users", "60")
HIDDEN = ("--yes", "--relation", "add-remove", "--range", "0 200", "--groups", "a,b", "--start", "2024-01-01")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text(TABLE)
    return tmp_path


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=typed, catch_exceptions=True)


def lines(*typed: str) -> str:
    return "".join(f"{line}\n" for line in typed)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_options_make_a_configuration_a_key_a_plan_a_check_and_say_what_next(folder: Path) -> None:
    done = run("init", "--sample", "visits.csv", *SAID)
    assert done.exit_code == 0, done.exception
    section = load(Path("shoal.toml")).metric[0]
    assert (section.user, section.value, section.time, section.group) == ("customer", "amount", "at", "kind")
    assert (section.statistic, section.topic, section.name) == ("mean", "visits", "amount")
    assert names(folder) == ["shoal.key", "shoal.toml", "visits.csv"]
    assert Path("shoal.key").stat().st_mode & 0o077 == 0
    assert "recommended: " in done.stdout
    assert "would be charged epsilon 1" in done.stdout
    shown = done.stdout.partition("next:\n")[2].splitlines()
    assert shown[0] == "  shoal run shoal.toml --input visits.csv --output releases.jsonl"
    assert shown[1] == "  shoal tail --input releases.jsonl"
    # and what comes next works
    done = run("run", "shoal.toml", "--input", "visits.csv", "--output", "releases.jsonl")
    assert (done.exit_code, done.stderr) == (0, "300 events, 6 releases\n")


def test_a_schema_beside_the_configuration_is_named_in_its_first_line_and_changes_nothing_else(folder: Path) -> None:
    assert run("init", "bare.toml", "--sample", "visits.csv", *SAID).exit_code == 0
    Path("shoal.schema.json").write_text(run("schema", "configuration").stdout)
    assert run("init", "with.toml", "--sample", "visits.csv", *SAID).exit_code == 0
    first, _, rest = Path("with.toml").read_text().partition("\n\n")
    assert first == "#:schema ./shoal.schema.json"
    assert rest == Path("bare.toml").read_text().replace("bare.", "with.")
    assert load(Path("with.toml")).metric[0].user == "customer"


def test_a_conversation_takes_defaults_corrects_mistakes_and_changes_answers(folder: Path) -> None:
    typed = lines(
        "visits.csv", "maybe", "1", "", "lots", "0 200", "kinds", "", "none", "", "all", "", "1", "60", "", "",
        "epsilon", "0.5", "no such", "name", "Money", "money", "yes", "n",
    )  # fmt: skip
    done = run("init", "own.toml", typed=typed)
    assert done.exit_code == 0, (done.exception, done.stderr)
    config = load(Path("own.toml"))
    section = config.metric[0]
    assert (section.name, section.statistic, float(section.epsilon), section.group) == ("money", "mean", 0.5, None)
    assert config.privacy.key_file == folder / "own.key"
    for words in (
        "names and forms of the fields of its records were looked at, and nothing else",
        "write mean or sum or count", "the sample has no field 'kinds'", "write two numbers",
        "could come to think it at most 15.5 % likely", "Prediction: with 60 people: noise of about",
        "There is no such answer", "write small letters", "No program can take it from the data",
    ):  # fmt: skip
        assert words in done.stderr.replace("\n", " "), words
    assert not Path("own.key").exists()
    assert "shoal key new own.key\n  shoal check own.toml\n  shoal run own.toml" in done.stdout


def test_a_statistic_that_has_two_relations_asks_for_one_after_another_that_has_not(folder: Path) -> None:
    # when a count, which is of relation add-remove alone, is changed to a mean
    typed = lines(
        "visits.csv", "count", "", "none", "", "", "", "2024-01-01", "2024-02-01", "60", "", "",
        "statistic", "mean", "", "0 200", "values", "yes", "n",
    )  # fmt: skip
    done = run("init", typed=typed)
    # then it is asked whether it is a secret who is there
    assert done.exit_code == 0, (done.exception, done.stderr)
    assert done.stderr.count("Is it a secret who is in your data?") == 1
    assert load(Path("shoal.toml")).metrics[0].hides.relation == "values"


def test_nothing_that_is_said_or_written_has_a_value_of_the_sample(folder: Path) -> None:
    Path("visits.csv").write_text(TABLE.replace("a,", "zebra,").replace(".5\n", ".875\n"))
    done = run("init", "--sample", "visits.csv", *SAID)
    for value in ("zebra", ".875", "2024-01", "300"):
        assert value not in done.output.replace("0.300", "")
        assert value not in Path("shoal.toml").read_text()


def test_what_must_be_stated_is_named_where_it_is_missing(folder: Path) -> None:
    for given, missing in [
        (("--yes",), "--range"),
        (("--yes", "--range", "0 200"), "--relation"),
        (("--yes", "--range", "0 200", "--relation", "add-remove"), "--groups"),
        (HIDDEN, "--end"),
        ((*SAID, "--time", "kind"), "--time"),
        ((*SAID, "--groups", "a"), "--groups"),
    ]:
        done = run("init", "--sample", "visits.csv", *given)
        assert done.exit_code == 2
        assert missing in done.stderr
        assert not Path("shoal.toml").exists()
    assert run("init", *SAID).exit_code == 2  # without a sample the fields have to be named


def test_no_field_that_can_be_a_user_or_a_time_is_asked_for(folder: Path) -> None:
    Path("other.jsonl").write_text('{"x": 1.5, "y": "a", "tags": [1], "a.b": 2}\n')
    done = run("init", "--sample", "other.jsonl", *SAID)
    assert "--user is missing" in done.stderr.replace("Invalid value for --user: is", "--user is")
    assert "its name has a dot" in done.stderr
    done = run("init", "--sample", "other.jsonl", *SAID, "--user", "y")
    assert "--time" in done.stderr


def test_nothing_is_overwritten_and_no_place_is_guessed(folder: Path) -> None:
    Path("shoal.toml").write_text("mine")
    Path("dangling.toml").symlink_to("elsewhere.toml")
    for place in ("shoal.toml", "dangling.toml"):
        done = run("init", place, "--sample", "visits.csv", *SAID)
        assert isinstance(done.exception, InputError)
        assert "is not overwritten" in str(done.exception)
    assert Path("shoal.toml").read_text() == "mine"
    done = run("init", "none/shoal.toml", "--sample", "visits.csv", *SAID)
    assert "there is no folder none" in str(done.exception)


def test_a_key_that_is_there_is_kept(folder: Path) -> None:
    assert run("key", "new", "shoal.key").exit_code == 0
    before = Path("shoal.key").read_bytes()
    done = run("init", "--sample", "visits.csv", *SAID)
    assert "is there already" in done.stderr
    assert Path("shoal.key").read_bytes() == before


def test_whoever_leaves_or_stops_answering_has_written_nothing(folder: Path) -> None:
    done = run("init", "--sample", "visits.csv", typed="1\n")
    assert isinstance(done.exception, InputError)
    done = run("init", "--sample", "visits.csv", *SAID[1:], typed=lines(*[""] * 10, "no"))
    assert isinstance(done.exception, Left)
    done = run("init", "--sample", "visits.csv", typed=lines("x", "x", "x", "x"))
    assert isinstance(done.exception, Left)
    assert names(folder) == ["visits.csv"]


def test_answers_that_do_not_go_together_are_changed_or_refused(folder: Path) -> None:
    done = run("init", "--sample", "visits.csv", *HIDDEN, "--end", "2024-02-01", "--every", "7d")
    assert isinstance(done.exception, ConfigError)
    assert "not a multiple of slot" in str(done.exception)
    typed = lines(*[""] * 9, "what", "every", "1d", "yes")
    done = run(
        "init", "--sample", "visits.csv", *HIDDEN[1:], "--end", "2024-02-01", "--every", "7d", "--no-key", typed=typed
    )
    assert done.exit_code == 0, (done.exception, done.stderr)
    assert load(Path("shoal.toml")).metric[0].slot == 86_400_000_000


def test_relation_add_remove_says_which_input_it_takes_and_where_there_is_none(folder: Path) -> None:
    done = run("init", "--sample", "visits.csv", *HIDDEN, "--end", "2024-02-01", "--no-key")
    assert "JSON lines alone" in done.stdout
    done = run("init", "live.toml", "--sample", "visits.csv", *HIDDEN, "--end", "never", "--delta", "1e-6")
    assert done.exit_code == 2  # delta is for groups that are found
    done = run("init", "live.toml", "--sample", "visits.csv", *HIDDEN, "--end", "never")
    assert done.exit_code == 0, done.exception
    assert "start a worker" in done.stdout


def test_control_c_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # when Ctrl-C is pressed while the third question waits for its answer
    typed = iter(["1", "amount"])

    def answer() -> str:
        for text in typed:
            return text
        signal.raise_signal(signal.SIGINT)
        return "customer"

    monkeypatch.setattr("builtins.input", answer)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may have it ignored
    try:
        done = run("init", "--sample", "visits.csv")
    finally:
        signal.signal(signal.SIGINT, before)
    # then nothing is left of it
    assert done.exit_code == 130
    assert done.stderr.endswith("range: \nshoal: stopped; nothing was written\n")
    assert names(folder) == ["visits.csv"]
