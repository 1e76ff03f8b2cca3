"""How a call is written, and what a client must be able to do for the operations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

Answer = TypeVar("Answer")


class Asker(Protocol):
    """Asks and waits."""

    def _ask(
        self, path: str, query: Mapping[str, Any], kind: type[Answer], body: Mapping[str, Any] | None = None
    ) -> Answer: ...


class AsyncAsker(Protocol):
    """Asks and is awaited."""

    async def _ask(
        self, path: str, query: Mapping[str, Any], kind: type[Answer], body: Mapping[str, Any] | None = None
    ) -> Answer: ...


def path(template: str, **places: str) -> str:
    """The path of an operation, its places filled."""
    return template.format(**{name: quote(value, safe="") for name, value in places.items()})


def encode(query: Mapping[str, Any]) -> dict[str, str]:
    """The query as text. Parameters that are None are left out; a binary float is a TypeError, since it has no exact
    text."""
    return {name: _text(name, value) for name, value in query.items() if value is not None}


def _text(name: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | Decimal():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case list() | tuple() | set() | frozenset():
            return ",".join(_text(name, one) for one in value)
    raise TypeError(f"{name} is a {type(value).__name__}; give a Decimal, int, bool, date or text")
