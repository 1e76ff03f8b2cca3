"""A month of news, a session at a time, and copies that are kept in step by asking only for what changed."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import plain

DAYS = 30
# The month's splits, by its session.
SPLITS = {10: (1, 2)}
PATIENCE_SECONDS = 60
TRIES = 3


def lived(ways: dict[str, Callable[..., dict[str, Any]]], given: Any) -> tuple[dict[str, Any], list[str]]:
    """What each way holds after the month, with the calls it took, and what is wrong with it."""
    found = {way: {"answer": None, "calls": 0} for way in ways}

    def step() -> None:
        for way, ask in ways.items():
            done = ask("in_step", given, found[way]["answer"])
            found[way] = {"answer": done["answer"], "calls": found[way]["calls"] + done["calls"]}

    step()
    before = dict(found["http"]["answer"][0])
    for day, rows in news(given):
        load(day, rows)
        step()
    downloaded = plain.in_step(given, None)
    for _ in range(TRIES):
        if all(one["answer"][1] == downloaded[1] for one in found.values()):
            break
        downloaded = plain.in_step(given, None)
        step()
    return found, [*differences(found, downloaded), *uneventful(before, downloaded[0])]


def differences(found: dict[str, Any], downloaded: Any) -> Iterator[str]:
    for way, one in found.items():
        held, there = plain.plainly(one["answer"]), plain.plainly(downloaded)
        if held[1] != there[1]:
            yield f"{way} stands at {held[1]}, a download at {there[1]}"
        elif held[0] != there[0]:
            wrong = [key for key in held[0].keys() | there[0].keys() if held[0].get(key) != there[0].get(key)]
            yield f"{way} holds other rows than a download has: {sorted(wrong)[:5]}"


def uneventful(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """What did not happen in the month, so that the copies prove nothing."""
    if not before.keys() - after.keys():
        yield "no row vanished"
    if not after.keys() - before.keys():
        yield "no row came"
    if not any(before[key] != after[key] for key in before.keys() & after.keys()):
        yield "no row changed"


def news(given: Any) -> Iterator[tuple[date, list[dict[str, Any]]]]:
    """The rows that a feed brings, by session: bars, dividends declared, corrected and withdrawn, and a split."""
    fifty = given["fifty"]
    quotes = plain.ask("/v1/bulk/quotes", symbols=",".join(fifty))["data"]
    prices = {quote["symbol"]: plain.Decimal(quote["price"]) for quote in quotes}
    past = plain.walk("/v1/dividends/history", symbols=",".join(fifty), start_date=given["ten_years_ago"], limit=1000)
    first = date.fromisoformat(given["today"])
    days = (first + timedelta(days=number) for number in range(1, DAYS + 1))
    for number, day in enumerate(day for day in days if day.weekday() < 5):
        rows = [declared(fifty, number, day, "0.25", 1)]
        if number > 0:
            rows.append(declared(fifty, number - 1, day - timedelta(days=1), "0.30", 2))
        if number > 1 and number % 3 == 0:
            rows.append(declared(fifty, number - 2, day - timedelta(days=2), "0.30", 3) | {"action": "retract"})
        withdrawn = past[number * 7]
        named = {name: withdrawn[name] for name in ("symbol", "ex_date", "amount", "currency", "type")}
        rows.append(named | {"kind": "dividend", "action": "retract", "revision": 1})
        if number in SPLITS:
            old, new = SPLITS[number]
            prices[fifty[0]] *= plain.Decimal(old) / new
            rows.append({"kind": "split", "symbol": fifty[0], "ex_date": str(day), "from": str(old), "to": str(new)})
        bars = [{"kind": "price", "symbol": symbol, "date": str(day), "close": str(price)} for symbol, price in prices.items()]
        yield day, rows + bars


def declared(fifty: list[str], number: int, day: date, amount: str, revision: int) -> dict[str, Any]:
    """The special dividend that a session's company declares."""
    return {
        "kind": "dividend", "symbol": fifty[number], "id": f"month-{number}", "type": "special", "amount": amount,
        "declaration_date": str(day), "ex_date": str(day + timedelta(days=10)), "revision": revision,
    }


def load(day: date, rows: list[dict[str, Any]]) -> None:
    """Loads a session's rows, and waits until they are served."""
    before = served()
    command = [os.environ["INGEST"], "load", "-", "--name", f"{day}.ndjson", "--source", "generated", "--today", str(day)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    subprocess.run(command, input=text, text=True, stdout=subprocess.DEVNULL, check=True)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while served() == before:
        assert time.monotonic() < deadline, f"the rows of {day} are not served"
        time.sleep(0.1)


def served() -> str:
    with urllib.request.urlopen(f"{os.environ['DDS_API_URL']}/v1/health") as response:
        return json.load(response)["data"]["components"]["projection"]["data_version"]
