"""Releases as tables of Arrow, polars and pandas, each an extra, imported when it is used."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from shoal.agents.reading.table import COLUMNS, NUMBER, TEXT, TIME, WHOLE, columns_of
from shoal.models.extras import require
from shoal.models.releases.record import Release

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

AT_ONCE = 5_000  # releases of one row group


def arrow_table(releases: Iterable[Release]) -> "pyarrow.Table":
    """The table in Arrow; times have microseconds and are UTC."""
    require("to_arrow", "arrow")
    import pyarrow

    return pyarrow.Table.from_pydict(columns_of(releases), schema=_schema())


def polars_frame(releases: Iterable[Release]) -> "polars.DataFrame":
    """A row for each number of the releases, as a polars DataFrame; times have microseconds and are UTC."""
    require("to_polars", "polars")
    import polars

    kinds: dict[str, Any] = {
        TEXT: polars.String, WHOLE: polars.Int64, NUMBER: polars.Float64, TIME: polars.Datetime("us", "UTC"),
    }  # fmt: skip
    return polars.DataFrame(columns_of(releases), schema={name: kinds[kind] for name, kind in COLUMNS.items()})


def pandas_frame(releases: Iterable[Release]) -> "pandas.DataFrame":
    """The table in pandas; a whole number that may be missing is an Int64."""
    require("to_pandas", "pandas")
    import pandas

    kinds = {TEXT: "str", WHOLE: "Int64", NUMBER: "float64", TIME: "datetime64[us, UTC]"}
    columns = columns_of(releases)
    return pandas.DataFrame(
        {name: pandas.Series(columns[name], dtype=kinds[kind]) for name, kind in COLUMNS.items()}
    )  # fmt: skip


def write_parquet(releases: Iterator[Release], file: BinaryIO) -> None:
    """Write the table as Parquet, some thousand releases at a time."""
    require("--format parquet", "arrow")
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(file, _schema(), compression="zstd") as writer:
        while some := list(islice(releases, AT_ONCE)):
            writer.write_table(arrow_table(some))


def _schema() -> "pyarrow.Schema":
    import pyarrow

    kinds = {
        TEXT: pyarrow.string(), WHOLE: pyarrow.int64(), NUMBER: pyarrow.float64(), TIME: pyarrow.timestamp("us", "UTC"),
    }  # fmt: skip
    return pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
