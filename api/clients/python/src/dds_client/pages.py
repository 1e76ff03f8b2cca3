"""Walking a list to its end. A page that is not whole raises; a walk never ends early in silence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import BrokenAnswer
from .frame import Decimals, to_dataframe
from .request import AsyncAsker, Asker

if TYPE_CHECKING:
    import pandas

Page = TypeVar("Page")
Row = TypeVar("Row")


class Pages(Generic[Page, Row]):
    """The pages of a list, asked for as they are taken. Each iteration walks from the start."""

    def __init__(self, asker: Asker, path: str, query: Mapping[str, Any], kind: type[Page]) -> None:
        self._asker, self._path, self._query, self._kind = asker, path, query, kind

    def __iter__(self) -> Iterator[Page]:
        cursor = self._query.get("cursor")
        while True:
            page = self._asker._ask(self._path, {**self._query, "cursor": cursor}, self._kind)
            cursor = next_cursor(page, cursor)
            yield page
            if cursor is None:
                return

    def rows(self) -> Iterator[Row]:
        """The rows of all pages."""
        for page in self:
            yield from page.data  # type: ignore[attr-defined]

    def to_dataframe(self, decimals: Decimals = "decimal") -> pandas.DataFrame:
        """All rows in a data frame."""
        return to_dataframe(self.rows(), decimals)


class AsyncPages(Generic[Page, Row]):
    """The pages of a list, asked for as they are taken. Each iteration walks from the start."""

    def __init__(self, asker: AsyncAsker, path: str, query: Mapping[str, Any], kind: type[Page]) -> None:
        self._asker, self._path, self._query, self._kind = asker, path, query, kind

    async def __aiter__(self) -> AsyncIterator[Page]:
        cursor = self._query.get("cursor")
        while True:
            page = await self._asker._ask(self._path, {**self._query, "cursor": cursor}, self._kind)
            cursor = next_cursor(page, cursor)
            yield page
            if cursor is None:
                return

    async def rows(self) -> AsyncIterator[Row]:
        """The rows of all pages."""
        async for page in self:
            for row in page.data:  # type: ignore[attr-defined]
                yield row

    async def to_dataframe(self, decimals: Decimals = "decimal") -> pandas.DataFrame:
        """All rows in a data frame."""
        return to_dataframe([row async for row in self.rows()], decimals)


def next_cursor(page: Any, cursor: str | None) -> str | None:
    """Where the walk goes on after `page`, which `cursor` led to; None at the end.

    Raises BrokenAnswer for a page that has other rows than it says, or that leads nowhere.
    """
    meta = page.meta
    if meta.count != len(page.data):
        raise BrokenAnswer(f"a page of {len(page.data)} rows says it has {meta.count}")
    if meta.has_more and meta.next_cursor in (None, cursor):
        raise BrokenAnswer("a page says that more follow, and not where")
    following: str | None = meta.next_cursor
    return following if meta.has_more else None
