"""The recipes of docs/recipes.md against a running stack with the demo market. Settings are read from the page: addresses,
JSON paths, columns, formulas, programs and commands. Where a program's parser is a package, that parser reads the answer."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import runpy
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import feedparser
import jsonpath
import pytest
from dds_client import Client
from ical.calendar_stream import IcsCalendarStream

PAGE = (Path(__file__).resolve().parents[2] / "docs/recipes.md").read_text()
KEY = os.environ["DDS_API_KEY"]
PROGRAMS = Path(sys.executable).parent
# Fields of an account transaction in a CSV import of Portfolio Performance.
ACCOUNT_TRANSACTION_FIELDS = {
    "Date", "Time", "ISIN", "Ticker Symbol", "WKN", "Value", "Transaction Currency", "Type", "Security Name", "Shares", "Note",
    "Taxes", "Cash Account", "Offset Account", "Securities Account",
}  # fmt: skip


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S)
    assert found, f"no section {title}"
    return found[1]


def table(title: str, heading: str) -> dict[str, list[str]]:
    """Rows of the table whose first column has this heading, by the text of their first cell, without code marks."""
    lines = section(title).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *others = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        rows[first] = others
    return rows


def block(title: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", section(title), flags=re.M | re.S)
    assert found, f"{title} has no {language}"
    return found[1]


def fetch(address: str, media_type: str, **places: str) -> str:
    """Body of an address of the page, with the running stack, the key and the program's placeholders put in."""
    address = address.replace("https://data.example.com", os.environ["DDS_API_URL"]).replace("YOUR-KEY", KEY)
    for name, value in places.items():
        address = address.replace(f"{{{name}}}", value)
    assert "{" not in address, address
    with urlopen(address, timeout=30) as response:
        assert response.headers.get_content_type() == media_type, address
        return response.read().decode()


def fetch_json(address: str, **places: str) -> Any:
    return json.loads(fetch(address, "application/json", **places), parse_float=Decimal)


@pytest.fixture
def client() -> Any:
    with Client() as client:
        yield client


@pytest.mark.parametrize("symbol", [{"TICKER": "KO"}, {"ISIN": "US1912161007"}])
def test_portfolio_performance_prices(client: Client, symbol: dict[str, str]) -> None:
    settings = {name: values[0] for name, values in table("Portfolio Performance", "setting").items()}
    # The page says that both placeholders work.
    address = settings["Feed URL"].replace("{TICKER}", "{" + next(iter(symbol)) + "}")
    answer = fetch_json(address, **symbol)
    # Two lists of the same length. Each date is ISO 8601, and each close is a number above 0.
    dates, closes = (jsonpath.findall(settings[f"Path to {name}"], answer) for name in ("Date", "Close"))
    rows = list(client.prices_by_symbol_pages("KO", limit=5000).rows())[:5000]
    assert len(rows) > 1000
    assert list(zip(map(date.fromisoformat, dates), closes, strict=True)) == [(row.date, row.close) for row in rows]


def test_portfolio_performance_dividends(tmp_path: Path) -> None:
    command = block("Portfolio Performance", "sh")
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=tmp_path, check=True)
    fields = table("Portfolio Performance", "column")
    assert {field for [field] in fields.values()} < ACCOUNT_TRANSACTION_FIELDS
    with (tmp_path / "received.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == set(fields)
    with Client(os.environ["KEY_FREE"]) as client:
        bought = re.search(r"nKO,(\S+),(\d+)\\n", command)
        assert bought
        transactions = [{"symbol": "KO", "date": bought[1], "quantity": bought[2]}]
        expected = client.portfolio_dividends(transactions, tax="US:15,*:0", end_date=date.today()).data
    assert len(rows) == len(expected) >= 3
    for row, payment in zip(rows, expected, strict=True):
        assert date.fromisoformat(row["payment_date"]) == payment.payment_date
        assert Decimal(row["net"]) + Decimal(row["tax"]) == payment.gross > Decimal(row["net"]) > 0
        assert (row["symbol"], Decimal(row["quantity"]), row["currency"]) == ("KO", payment.quantity, "USD")


def test_wealthfolio(client: Client) -> None:
    settings = table("Wealthfolio", "setting")
    days = {"FROM": "2026-01-01", "TO": date.today().isoformat()}
    rows = list(client.prices_by_symbol_pages("KO", start_date=days["FROM"], limit=5000).rows())
    quote = client.stocks_by_symbol_quote("KO").data
    expected = ([(quote.price, quote.price_date)], [(row.close, row.date) for row in rows])
    for number, wanted in enumerate(expected):
        setting = {name: values[number] for name, values in settings.items()}
        assert setting["Source type"] == "JSON"
        answer = fetch_json(setting["URL template"], SYMBOL="KO", **(days if number else {}))
        paths = (setting[name] for name in ("Price", "As of", "Currency"))
        prices, dates, currencies = (jsonpath.findall(path, answer) for path in paths)
        parsed = (datetime.strptime(day, setting["Date format"]).date() for day in dates)
        assert list(zip(prices, parsed, strict=True)) == wanted
        assert set(currencies) == {"USD"}
    # The page's advice for a first day before the plan's history.
    whole = settings["URL template"][1].replace("start_date={FROM}&end_date={TO}", "range=max")
    assert len(fetch_json(whole, SYMBOL="KO")["data"]) > len(rows)


def test_ghostfolio(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_block("Ghostfolio", tmp_path)
    activities = json.loads((tmp_path / "ghostfolio.json").read_text())["activities"]
    received = client.portfolio_dividends(result["transactions"], end_date=date.today()).data
    paid = [payment for payment in received if payment.status == "paid"]
    assert len(activities) == len(paid) >= 10
    for activity, payment in zip(activities, paid, strict=True):
        # The rules of CreateOrderDto: types, an ISO 8601 instant, and numbers from 0 on.
        assert {name: type(value) for name, value in activity.items()} == {
            "currency": str, "dataSource": str, "date": str, "fee": int, "quantity": float, "symbol": str, "type": str,
            "unitPrice": float,
        }  # fmt: skip
        assert datetime.fromisoformat(activity["date"]).date() == payment.payment_date
        assert (activity["type"], activity["dataSource"], activity["fee"]) == ("DIVIDEND", "YAHOO", 0)
        assert abs(Decimal(activity["quantity"]) * Decimal(activity["unitPrice"]) - payment.gross) < Decimal("1e-9")


def run_block(title: str, folder: Path) -> dict[str, Any]:
    """Runs the Python of a recipe. Returns its variables."""
    program = folder / "recipe.py"
    program.write_text(block(title, "python"))
    return runpy.run_path(str(program))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_beancount(client: Client, tmp_path: Path, zone: str) -> None:
    (tmp_path / "ledger.beancount").write_text(block("Beancount", "beancount"))
    commands = [line for line in block("Beancount", "sh").splitlines() if line.startswith("bean-price ")]
    day = re.search(r"--date (\S+)", commands[1])
    assert day
    newest = client.prices_by_symbol("KO", limit=1).data[0]
    past = client.prices_by_symbol("KO", end_date=day[1], limit=1).data[0]
    path = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "TZ": zone, "HOME": str(tmp_path)}
    for command, row in zip(commands, [newest, past], strict=True):
        command = command.replace("bean-price", "bean-price --no-cache", 1)
        done = subprocess.run(
            command.split(), cwd=tmp_path, env=os.environ | path, check=True, capture_output=True, text=True
        )
        words = done.stdout.split()
        assert words[:2] + words[3:] == [row.date.isoformat(), "price", str(row.raw_close), "USD"], done


def test_beancount_series_and_unknown_symbol(client: Client) -> None:
    from dds_client.beanprice import Source

    first, last = (datetime(2026, month, 1).astimezone() for month in (3, 6))
    rows = client.prices_by_symbol("KO", start_date=first.date(), end_date=last.date(), sort="date.asc", limit=100).data
    series = Source().get_prices_series("KO", first, last)
    assert [(price.time.date(), price.price, price.quote_currency) for price in series] == [
        (row.date, row.raw_close, "USD") for row in rows
    ]
    assert Source().get_latest_price("NOPE") is None


def test_home_assistant(client: Client) -> None:
    calendars = table("Home Assistant", "Calendar Name")
    text = fetch(calendars["Dividend income"][0], "text/calendar")
    events = IcsCalendarStream.calendar_from_ics(text).events
    payments = client.get("/v1/portfolio/income", {"holdings": "KO:120,PEP:40"})["data"]["payments"]
    days = [row[name] for row in payments for name in ("ex_date", "payment_date") if row[name]]
    assert sorted(event.dtstart.isoformat() for event in events) == sorted(days)
    text = fetch(calendars["Ex-dates"][0], "text/calendar")
    events = IcsCalendarStream.calendar_from_ics(text).events
    assert len(events) > 8 and all(re.search("KO|PEP", event.summary) for event in events)


def test_spreadsheets(client: Client) -> None:
    formulas = {name: row[0] for name, row in (table("Google Sheets", "cell") | table("Excel", "cell")).items()}
    addresses = {name: re.findall('"(https:[^"]+)"', formula)[0] for name, formula in formulas.items()}
    metrics = client.get("/v1/stocks/KO/metrics")["data"]
    number = str(metrics["dividend_yield"])
    assert fetch(addresses["one value"], "text/plain") == fetch(addresses["one number"], "text/plain") == number
    day = addresses["a value of a past day"].partition("as_of=")[2]
    past = client.get("/v1/stocks/KO/metrics", {"as_of": day})["data"]["dividend_yield"]
    assert fetch(addresses["a value of a past day"], "text/plain") == str(past) != number
    assert fetch(addresses["one text"], "text/plain") == client.stocks_by_symbol_quote("KO").data.name
    history = {"symbols": "KO,PEP", "limit": 1000}
    expected = client.get("/v1/dividends/history", history)["data"]
    rows = list(csv.DictReader(io.StringIO(fetch(addresses["a table"], "text/csv"))))
    assert list(rows[0]) == ["symbol", "ex_date", "payment_date", "amount", "currency"]
    assert [(row["ex_date"], row["amount"]) for row in rows] == [(row["ex_date"], str(row["amount"])) for row in expected]
    from_web = re.search(r"`(https:\S+)`", section("Excel").partition("*From Web*")[2])
    assert from_web
    assert len(list(csv.DictReader(io.StringIO(fetch(from_web[1], "text/csv"))))) == len(expected) > 50


def test_notebook(tmp_path: Path) -> None:
    result = run_block("Notebook", tmp_path)
    frame, by_year, totals = result["frame"], result["by_year"], result["received"].meta.totals
    assert len(frame) == len(result["received"].data) > 10
    assert abs(by_year["gross"].sum() - float(totals.currencies[0].gross)) < 1e-6
    assert totals.symbols[0].yield_on_cost > 0


def test_screen_with_duckdb(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    publish = block("Screen with DuckDB", "sh").split()
    subprocess.run([os.environ["PROJECTOR"], *publish[1:]], check=True, capture_output=True)
    found = run_block("Screen with DuckDB", tmp_path)["screen"].fetchall()
    limits = {"min_yield": 1, "max_payout_ratio": 80, "min_growth_5y": 2, "sort": "dividend_yield.desc", "limit": 100}
    listed = client.get("/v1/screener", limits)["data"]
    assert [row[0] for row in found if row[0] in {row["symbol"] for row in listed}] == [row["symbol"] for row in listed]
    assert len(listed) > 2 and found[0][1].normalize() == listed[0]["dividend_yield"].normalize()


def test_feed_readers() -> None:
    address = table("Feed readers", "reader")["any"][0]
    feed = feedparser.parse(fetch(address, "application/atom+xml"))
    assert not feed.bozo and feed.version == "atom10", feed.get("bozo_exception")
    assert len({entry.id for entry in feed.entries}) == len(feed.entries) > 0
    assert all(re.search("KO|PEP", entry.title) and entry.updated_parsed for entry in feed.entries)
