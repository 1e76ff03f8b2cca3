"""The change stream: server-sent events, continued after every loss of the connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec

from . import models as m
from .errors import BrokenAnswer, Refused, refusal

Kind = Literal["events", "dividends", "splits", "factors", "statuses", "lists"]
Event = Literal[
    "declared", "raised", "cut", "special", "suspended", "resumed", "corrected", "cancelled", "split", "spin_off",
    "renamed", "delisted", "ex_date_soon",
]  # fmt: skip
Cause = Literal["data", "rule", "policy", "promotion"]
Row = m.DividendRow | m.SplitRow | m.SecurityEvents | m.SecurityFactors | m.SecurityStatus | m.SecurityLists
NoticeRow = m.DividendRow | m.SplitRow | m.SecurityEvent | m.SecurityStatus

PATH = "/v1/changes"
SILENCE = 45.0
"""Seconds without a heartbeat after which a connection counts as lost. The service sends one every 15 seconds."""

_ROWS: dict[str, type[Row]] = {
    "dividends": m.DividendRow,
    "splits": m.SplitRow,
    "events": m.SecurityEvents,
    "factors": m.SecurityFactors,
    "statuses": m.SecurityStatus,
    "lists": m.SecurityLists,
}
_NOTICED: dict[str, type[NoticeRow]] = {
    "dividends": m.DividendRow,
    "splits": m.SplitRow,
    "events": m.SecurityEvent,
    "statuses": m.SecurityStatus,
}
_STATUS = {"INVALID_API_KEY": 401, "FEATURE_NOT_AVAILABLE": 403, "QUOTA_EXCEEDED": 429}
_OBJECT = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


@dataclass(frozen=True)
class Change:
    """A row that was added, changed or removed."""

    action: Literal["upsert", "delete"]
    """`upsert` adds or replaces the row with this id; `delete` removes it."""
    kind: str
    symbol: str
    id: str
    """Unique within the kind. Events, factors, statuses and lists have one row a security, whose id is the symbol."""
    row: Row | None
    """The new row; of a removed dividend or split the last one, cancelled. A kind that this version does not know has
    None."""
    since: str
    """Where to continue after this change: `changes(since=…)`."""


@dataclass(frozen=True)
class Notice:
    """Something that happened to a security."""

    event: str
    symbol: str
    kind: str
    id: str | None
    """Id of the dividend or split; None for the kinds `events` and `statuses`."""
    date: date
    """Day of the event, for example the ex-date."""
    cause: str
    known_at: datetime
    is_backfill: bool
    before: NoticeRow | None
    after: NoticeRow | None
    since: str
    """Where to continue after this notice: `notices(since=…)`."""


class Progress:
    """What a stream has delivered, and what its next line means. It neither reads nor waits."""

    def __init__(self, since: str | datetime | None, **query: Any) -> None:
        instant = since.isoformat().replace("+00:00", "Z") if isinstance(since, datetime) else since
        self.query: dict[str, Any] = {"since": instant, **query}
        self.is_over = False
        self.attempt = 0
        """Connections since the last event."""
        self._last: str | None = None
        self._fields: dict[str, str] = {}

    def headers(self) -> dict[str, str]:
        """Headers of the next connection."""
        self._fields = {}
        headers = {"accept": "text/event-stream"}
        return headers | {"last-event-id": self._last} if self._last else headers

    def read(self, line: str) -> Change | Notice | None:
        """Reads a line. An event ends with an empty line. Raises what ends the stream for good."""
        if line:
            name, _, value = line.partition(":")
            if name:
                self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        self._last = fields.get("id", self._last)
        self.attempt = 0
        if "data" not in fields:
            return None
        data = _decode(fields["data"])
        if fields.get("event") in ("upsert", "delete"):
            return self._change(data)
        if fields.get("event") != "end":
            return self._notice(data)
        if data.get("code") == "CAUGHT_UP":
            self.is_over = True
        elif status := _STATUS.get(data.get("code", "")):
            raise refused(status, data)
        return None

    def _change(self, data: Mapping[str, Any]) -> Change:
        try:
            kind = _ROWS.get(data["kind"])
            row: Row | None = None
            if kind is not None and data["row"] is not None:
                row = msgspec.convert(data["row"], kind)
            return Change(data["change"], data["kind"], data["symbol"], data["id"], row, self._last or "")
        except (KeyError, msgspec.MsgspecError) as error:
            raise BrokenAnswer(f"an event is not what the document promises: {error}") from error

    def _notice(self, data: Mapping[str, Any]) -> Notice:
        try:
            known = _NOTICED.get(data["kind"])

            def convert(row: Any) -> NoticeRow | None:
                return msgspec.convert(row, known) if known is not None and row is not None else None

            fields = {name: data[name] for name in ("event", "symbol", "kind", "id", "cause", "is_backfill")}
            return Notice(
                **fields,
                date=date.fromisoformat(data["date"]),
                known_at=datetime.fromisoformat(data["known_at"]),
                before=convert(data["before"]),
                after=convert(data["after"]),
                since=self._last or "",
            )
        except (KeyError, ValueError, msgspec.MsgspecError) as error:
            raise BrokenAnswer(f"an event is not what the document promises: {error}") from error


def refused(status: int, data: Mapping[str, Any]) -> Refused:
    """The error for the end of a stream."""
    return refusal(status, msgspec.json.encode(data), {})


def _decode(text: str) -> dict[str, Any]:
    try:
        return _OBJECT.decode(text)
    except msgspec.MsgspecError as error:
        raise BrokenAnswer(f"an event is not JSON: {error}") from error
