"""iCalendar files of a running stack, read by two independent parsers: `icalendar` and `vobject`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import icalendar
import vobject
from dds_client import Client

KEY = os.environ["DDS_API_KEY"]


@dataclass(frozen=True, order=True)
class Event:
    uid: str
    day: date
    summary: str
    status: str
    sequence: int


def by_icalendar(text: str) -> list[Event]:
    calendar = icalendar.Calendar.from_ical(text)
    assert not calendar.errors, calendar.errors
    events = []
    for event in calendar.walk("VEVENT"):
        assert not event.errors, event.errors
        assert (event["DTEND"].dt - event["DTSTART"].dt).days == 1
        events.append(
            Event(str(event["UID"]), event["DTSTART"].dt, str(event["SUMMARY"]), str(event["STATUS"]), int(event["SEQUENCE"]))
        )
    return sorted(events)


def by_vobject(text: str) -> list[Event]:
    calendar = vobject.readOne(text)
    calendar.validate(raiseException=True)
    return sorted(
        Event(e.uid.value, e.dtstart.value, e.summary.value, e.status.value, int(e.sequence.value)) for e in calendar.vevent_list
    )


def read(address: str) -> list[Event]:
    """Events of an address, equal in both parsers."""
    response = fetch(address)
    events = by_icalendar(response)
    assert events == by_vobject(response), address
    assert len({event.uid for event in events}) == len(events), address
    return events


def fetch(address: str) -> str:
    with urlopen(os.environ["DDS_API_URL"] + address, timeout=30) as response:
        assert response.headers.get_content_type() == "text/calendar", address
        return response.read().decode()


def days(rows: list[dict[str, Any]]) -> list[date]:
    fields = [row[field] for row in rows for field in ("ex_date", "payment_date") if row[field]]
    return sorted(map(date.fromisoformat, fields))


def main() -> None:
    with Client(KEY) as client:
        payers = client.get("/v1/stocks", {"min_yield": 1, "limit": 3, "sort": "market_cap.desc"})["data"]
        symbols = ",".join(row["symbol"] for row in payers)
        holdings = ",".join(f"{row['symbol']}:10.5" for row in payers)

        events = read(f"/feed/{KEY}/calendar.ics?symbols={quote(symbols)}")
        since = min(event.day for event in events)
        parameters = {"symbols": symbols, "status": "declared,paid,cancelled", "include_projected": True, "limit": 1000}
        rows = client.get("/v1/dividends/history", {**parameters, "start_date": since})["data"]
        assert sorted(event.day for event in events) == days(rows), (len(events), len(rows))

        payments = client.get("/v1/portfolio/income", {"holdings": holdings})["data"]["payments"]
        events = read(f"/feed/{KEY}/income.ics?holdings={quote(holdings)}")
        assert sorted(event.day for event in events) == days(payments), (len(events), len(payments))
        assert {event.status for event in events} == {"CONFIRMED", "TENTATIVE"}
    print("both parsers read the calendars alike, and they have the API's days")


if __name__ == "__main__":
    main()
