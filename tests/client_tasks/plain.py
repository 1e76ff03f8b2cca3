"""The tasks in plain HTTP: a path and a query in, JSON out."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from datetime import date
from decimal import Decimal
from typing import Any


def ask(path: str, /, headers: dict[str, str] | None = None, **query: Any) -> Any:
    """The answer with decimals as text; None for 304."""
    url = f"{os.environ['DDS_API_URL']}{path}?{urllib.parse.urlencode({**query, 'decimals': 'string'})}"
    key = {"Authorization": f"Bearer {os.environ['DDS_API_KEY']}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=key | (headers or {}))) as response:
            return json.load(response) | {"etag": response.headers["ETag"]}
    except urllib.error.HTTPError as error:
        if error.code == 304:
            return None
        raise


def walk(path: str, **query: Any) -> list[Any]:
    """The rows of all pages."""
    return with_position(path, **query)[0]


def with_position(path: str, **query: Any) -> tuple[list[Any], str | None]:
    """The rows of all pages, and where a copy of them stands."""
    rows, cursor = [], {}
    while True:
        page = ask(path, **query, **cursor)
        rows += page["data"]
        if not page["meta"]["has_more"]:
            return rows, page["meta"].get("sync_from")
        cursor = {"cursor": page["meta"]["next_cursor"]}


def plainly(value: Any) -> Any:
    """The same with one spelling of decimals and days."""
    match value:
        case Decimal():
            return format(value.normalize(), "f")
        case date():
            return str(value)
        case dict():
            return {name: plainly(one) for name, one in value.items()}
        case list() | tuple():
            return [plainly(one) for one in value]
    return value


def portfolio_value(given: Any) -> Any:
    quotes = ask("/v1/bulk/quotes", symbols=",".join(given["portfolio"]))["data"]
    values = {quote["symbol"]: Decimal(quote["price"]) * given["portfolio"][quote["symbol"]] for quote in quotes}
    return [values, sum(values.values())]


def next_payments(given: Any) -> Any:
    rows = payments(given)
    return {row["symbol"]: [row["payment_date"], row["amount"]] for row in reversed(rows)}


def income_of_twelve_months(given: Any) -> Any:
    months: dict[str, dict[str, Decimal]] = {}
    for row in payments(given):
        month = months.setdefault(row["event_date"][:7], {"declared": Decimal(0), "estimated": Decimal(0)})
        month[row["amount_status"]] += Decimal(row["amount"] or 0) * given["portfolio"][row["symbol"]]
    return months


def payments(given: Any) -> list[Any]:
    span = {"start_date": given["today"], "end_date": given["in_a_year"]}
    return ask(
        "/v1/dividends/payment-dates",
        symbols=",".join(given["portfolio"]), include_projected="true", limit=500, **span,
    )["data"]


def ex_dates_of_two_weeks(given: Any) -> Any:
    rows = ask("/v1/dividends/ex-dates", start_date=given["today"], end_date=given["in_two_weeks"], limit=500)["data"]
    return [[row["symbol"], row["ex_date"], row["amount"]] for row in rows]


def ten_years_for_fifty(given: Any) -> Any:
    rows = walk("/v1/dividends/history", symbols=",".join(given["fifty"]), start_date=given["ten_years_ago"], limit=1000)
    return [[row["symbol"], row["ex_date"], row["adjusted_amount"]] for row in rows]


def bulk_of_fifty(given: Any) -> Any:
    data = ask("/v1/bulk/dividends", symbols=",".join(given["fifty"]), per_symbol=20)["data"]
    return {one["symbol"]: [row["amount"] for row in one["dividends"]] for one in data}


def screener_walked(given: Any) -> Any:
    walked = walk("/v1/screener", min_yield=2, limit=5)
    assert walked == ask("/v1/screener", min_yield=2, limit=1000)["data"]
    return [row["symbol"] for row in walked]


def best_of_a_sector(given: Any) -> Any:
    rows = ask("/v1/screener", sector=given["sector"], sort="dividend_yield.desc", limit=5)["data"]
    return [[row["symbol"], row["dividend_yield"]] for row in rows]


def steady_growers(given: Any) -> Any:
    rows = ask("/v1/screener", min_streak=5, max_payout_ratio=80, limit=1000)["data"]
    return [[row["symbol"], row["increase_streak_years"], row["payout_ratio"]] for row in rows]


def dividend_kings(given: Any) -> Any:
    return [row["symbol"] for row in ask("/v1/screener/dividend-kings", limit=500)["data"]]


def market_of_today(given: Any) -> Any:
    return [[row["symbol"], row["close"], row["volume"]] for row in ask("/v1/bulk/prices", limit=10000)["data"]]


def chart_of_ten_years(given: Any) -> Any:
    rows = ask("/v1/prices/SPY", range="10y", adjustment="all", sort="date.asc", limit=5000)["data"]
    return [[row["date"], row["close"]] for row in rows]


def return_of_a_year(given: Any) -> Any:
    return ask("/v1/prices/SPY", range="1y", limit=1)["meta"]["total_return"]


def four_side_by_side(given: Any) -> Any:
    answer = ask("/v1/compare", symbols=",".join(given["fifty"][:4]))
    rows = [[one["symbol"], one["quote"]["price"], one["metrics"]["dividend_yield"]] for one in answer["data"]]
    return [rows, answer["meta"]["best"]]


def found_by_name(given: Any) -> Any:
    found = ask("/v1/search", q=given["name"], limit=1)["data"][0]
    return ask(f"/v1/stocks/{found['symbol']}/quote")["data"]["price"]


def look_through(given: Any) -> Any:
    rows = ask("/v1/etfs/SPY/holdings", limit=500)["data"]
    return [[row["symbol"], row["weight"], row["yield_contribution"]] for row in rows]


def figure_explained(given: Any) -> Any:
    explained = ask("/v1/stocks/SPY/metrics", explain="true")["data"]["explanation"]["metrics"]
    return [[one["rule"], one["formula"]] for one in explained if one["metric"] == "dividend_yield"]


def sectors_at_a_glance(given: Any) -> Any:
    return {row["sector"]: row["median_yield"] for row in ask("/v1/sectors")["data"]}


def typing_error_found(given: Any) -> Any:
    answer = ask("/v1/stocks", symbols="SPY,SPYY,NOPE", limit=100)
    assert [row["symbol"] for row in answer["data"]] == ["SPY"]
    return [warning["code"] for warning in answer["meta"]["warnings"]]


def yield_as_known_then(given: Any) -> Any:
    return ask("/v1/stocks/SPY/metrics", as_of=given["two_years_ago"])["data"]["dividend_yield"]


def cuts_in_the_portfolio(given: Any) -> Any:
    rows = ask("/v1/bulk/metrics", symbols=",".join(given["portfolio"]))["data"]
    return {row["symbol"]: row["last_cut_date"] for row in rows}


def unchanged_since(given: Any) -> Any:
    first = ask("/v1/stocks/SPY")
    assert ask("/v1/stocks/SPY", headers={"If-None-Match": first["etag"]}) is None
    return first["data"]["price"]


def in_step(given: Any, held: Any) -> Any:
    """The rows of fifty symbols by id and where they stand: downloaded once, and from then on what changed."""
    rows, since = held or ({}, None)
    known = {"updated_since": since} if since else {}
    changed, since = with_position("/v1/dividends/history", symbols=",".join(given["fifty"]), limit=1000, **known)
    for row in changed:
        if row["status"] == "cancelled":
            rows.pop(row["id"], None)
        else:
            rows[row["id"]] = [row["symbol"], row["ex_date"], row["amount"], row["adjusted_amount"], row["status"]]
    return rows, since
