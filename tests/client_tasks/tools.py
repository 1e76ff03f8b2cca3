#!/usr/bin/env python3
"""What a language model's host does with the tools at /mcp, with the protocol's own Python client: each question in so many
calls of tools, counted like calls of the API, with the answer that plain HTTP gives."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from judge import calls_left, what_is_given
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from plain import ask

# A tool's answer, and what is the most it may be.
ANSWER_BYTES = 32 * 1024


class Tools:
    """The tools, whose answers are the JSON of their text."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, name: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(name, arguments)
        [content] = result.content
        assert len(content.text) <= ANSWER_BYTES, f"{name}: {len(content.text)} bytes"
        answer = json.loads(content.text, parse_float=str)
        return answer | {"is_error": bool(result.is_error)}


async def next_payments(tools: Tools, given: Any) -> Any:
    rows = await tools.call("dividend_calendar", by="payment_date", symbols=list(given["portfolio"]),
                            end_date=given["in_a_year"], include_projected=True, limit=200)
    return [[row["symbol"], row["payment_date"]] for row in rows["data"]]


def next_payments_asked(given: Any) -> Any:
    rows = ask("/v1/dividends/payment-dates", symbols=",".join(given["portfolio"]),
               end_date=given["in_a_year"], include_projected="true", limit=200)
    return [[row["symbol"], row["payment_date"]] for row in rows["data"]]


async def price_by_name(tools: Tools, given: Any) -> Any:
    found = await tools.call("search", q=given["name"], limit=1)
    compared = await tools.call("compare", symbols=[found["data"][0]["symbol"]], sections=["quote"])
    return str(compared["data"][0]["quote"]["price"])


def price_by_name_asked(given: Any) -> Any:
    symbol = ask("/v1/search", q=given["name"], limit=1)["data"][0]["symbol"]
    return ask(f"/v1/stocks/{symbol}/quote")["data"]["price"]


async def why_this_yield(tools: Tools, given: Any) -> Any:
    told = await tools.call("security", symbol="SPY", view="metrics", explain=True, fields=["dividend_yield"])
    figures = told["data"]["explanation"]["metrics"]
    return [[one["rule"], one["formula"]] for one in figures if one["metric"] == "dividend_yield"]


def why_this_yield_asked(given: Any) -> Any:
    figures = ask("/v1/stocks/SPY/metrics", explain="true")["data"]["explanation"]["metrics"]
    return [[one["rule"], one["formula"]] for one in figures if one["metric"] == "dividend_yield"]


async def best_of_a_sector(tools: Tools, given: Any) -> Any:
    rows = await tools.call("screener", sector=given["sector"], sort=["dividend_yield.desc"], limit=5)
    return [[row["symbol"], str(row["dividend_yield"])] for row in rows["data"]]


def best_of_a_sector_asked(given: Any) -> Any:
    rows = ask("/v1/screener", sector=given["sector"], sort="dividend_yield.desc", limit=5)["data"]
    return [[row["symbol"], row["dividend_yield"]] for row in rows]


async def ten_years_of_ten(tools: Tools, given: Any) -> Any:
    rows, cursor = [], {}
    while True:
        page = await tools.call("dividend_history", symbols=given["fifty"][:10], limit=200,
                                start_date=given["ten_years_ago"], **cursor)
        rows += [[row["symbol"], row["ex_date"]] for row in page["data"]]
        if not page["meta"]["has_more"]:
            return rows
        cursor = {"cursor": page["meta"]["next_cursor"]}


def ten_years_of_ten_asked(given: Any) -> Any:
    rows = ask("/v1/dividends/history", symbols=",".join(given["fifty"][:10]), limit=1000,
               start_date=given["ten_years_ago"])["data"]
    return [[row["symbol"], row["ex_date"]] for row in rows]


async def news_of_one(tools: Tools, given: Any) -> Any:
    rows = await tools.call("dividend_history", symbols=given["fifty"][:1], limit=100, updated_since=given["beginning"])
    return [[row["symbol"], row["ex_date"], row["status"]] for row in rows["data"]]


def news_of_one_asked(given: Any) -> Any:
    rows = ask("/v1/dividends/history", symbols=given["fifty"][0], limit=100, updated_since=given["beginning"])["data"]
    return [[row["symbol"], row["ex_date"], row["status"]] for row in rows]


async def a_symbol_that_is_none(tools: Tools, given: Any) -> Any:
    told = await tools.call("security", symbol="NOPE")
    assert told["is_error"] and "search" in told["what_to_do"], told
    return told["error"]


def a_symbol_that_is_none_asked(given: Any) -> Any:
    return "No stock with symbol NOPE"


Asked = Callable[[Any], Any]
QUESTIONS: list[tuple[Callable[[Tools, Any], Awaitable[Any]], Asked, int]] = [
    (next_payments, next_payments_asked, 1),
    (price_by_name, price_by_name_asked, 2),
    (why_this_yield, why_this_yield_asked, 1),
    (best_of_a_sector, best_of_a_sector_asked, 1),
    (ten_years_of_ten, ten_years_of_ten_asked, 6),
    (news_of_one, news_of_one_asked, 1),
    (a_symbol_that_is_none, a_symbol_that_is_none_asked, 1),
]


async def main() -> int:
    given, failures = what_is_given(), 0
    journal, _ = ask("/v1/dividends/history", symbols=given["fifty"][0], limit=1)["meta"]["sync_from"].split(".")
    given["beginning"] = f"{journal}.0"
    key = {"Authorization": f"Bearer {os.environ['DDS_API_KEY']}"}
    async with httpx2.AsyncClient(headers=key, timeout=30) as http:
        transport = streamable_http_client(f"{os.environ['DDS_API_URL']}/mcp", http_client=http)
        async with Client(transport) as client:
            listed = (await client.list_tools()).tools
            assert 1 <= len(listed) <= 10, listed
            for question, asked, most in QUESTIONS:
                before = calls_left()
                answer = await question(Tools(client), given)
                calls = before - calls_left() - 1
                problems = [f"needs {calls} calls"] if not 0 < calls <= most else []
                if not answer or answer != asked(given):
                    problems.append(f"{str(answer)[:300]} is not {str(asked(given))[:300]}")
                failures += bool(problems)
                print(f"{'FAILED' if problems else 'ok':7}{question.__name__:26}{calls} of {most}", *problems, sep="  ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
