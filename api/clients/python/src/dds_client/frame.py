"""Rows as a pandas data frame. Needs the `dataframe` extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    import pandas

Decimals = Literal["decimal", "string", "float64"]
"""What decimal columns hold: exact `Decimal` objects, exact text, or the nearest binary floats."""


DAYS = ("date", "event_date", "ex_date")
"""Fields that index a data frame: the first that its rows have."""


class ListAnswer(Struct, frozen=True):
    """An answer whose `data` is a list of rows."""

    def to_dataframe(self, decimals: Decimals = "decimal") -> pandas.DataFrame:
        """The rows of this answer in a data frame."""
        return to_dataframe(self.data, decimals)  # type: ignore[attr-defined]


def to_dataframe(rows: Iterable[Any], decimals: Decimals = "decimal") -> pandas.DataFrame:
    """A data frame of rows, one column a field; the fields of an object inside a row are `object.field`.

    Rows with a day are indexed by it: prices by `date`, calendars by `event_date`, dividends and splits by `ex_date`. Days are
    `datetime64`, lists stay lists, unknown is null.
    """
    import pandas

    records = [dict(_cells(row)) for row in rows]
    frame = pandas.DataFrame(records, dtype=object)
    for name in frame.columns:
        known = [value for value in frame[name] if value is not None]
        if any(isinstance(value, Decimal) for value in known):
            frame[name] = _decimals(frame[name], decimals)
        elif known and all(isinstance(value, date) for value in known):
            frame[name] = pandas.to_datetime(frame[name], utc=isinstance(known[0], datetime))
        elif not any(isinstance(value, (list, dict)) for value in known):
            frame[name] = frame[name].convert_dtypes()
    day = next((name for name in DAYS if name in frame.columns), None)
    return frame.set_index(day) if day else frame


def _cells(row: Struct, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if isinstance(value, Struct):
            yield from _cells(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _decimals(column: pandas.Series[Any], decimals: Decimals) -> pandas.Series[Any]:
    if decimals == "float64":
        return column.astype("float64")
    if decimals == "string":
        return column.map(lambda value: None if value is None else str(value)).astype("string")
    return column
