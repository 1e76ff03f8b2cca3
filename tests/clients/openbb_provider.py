"""The OpenBB provider against a running stack: every model has the API's rows."""

from __future__ import annotations

import asyncio
import os
from datetime import date, timedelta
from typing import Any

from dds_client import Client
from openbb_core.provider.query_executor import QueryExecutor
from openbb_core.provider.registry import RegistryLoader
from openbb_core.provider.utils.errors import EmptyDataError, UnauthorizedError
from pydantic import SecretStr

KEY = os.environ["DDS_API_KEY"]


def fetch(model: str, key: str = KEY, **query: Any) -> list[Any]:
    """Rows of a model, fetched as OpenBB does it: through the registry, by the name of the provider."""
    executor = QueryExecutor(RegistryLoader.from_extensions())
    return asyncio.run(executor.execute("dds", model, query, {"dds_api_key": SecretStr(key)}))


def main() -> None:
    with Client(KEY) as client:
        payers = client.get("/v1/stocks", {"min_yield": 1, "type": "stock", "limit": 1, "sort": "market_cap.desc"})
        symbol = payers["data"][0]["symbol"]
        fund = client.get("/v1/etfs", {"limit": 1})["data"][0]["symbol"]
        since = date(2015, 1, 1)

        rows = client.get("/v1/dividends/history", {"symbols": symbol, "start_date": since, "limit": 1000})["data"]
        found = fetch("HistoricalDividends", symbol=symbol, start_date=since)
        assert [(one.ex_dividend_date.isoformat(), one.amount) for one in found] == [
            (row["ex_date"], float(row["amount"])) for row in rows
        ], found[:3]

        fund_of_dollars = next(
            row["symbol"] for row in client.get("/v1/stocks", {"currency": "GBP"})["data"] if row["dividend_currency"] == "USD"
        )
        found = fetch("HistoricalDividends", symbol=fund_of_dollars, start_date=since, currency="GBP")
        assert all(one.currency == "USD" and one.converted["currency"] == "GBP" for one in found), found[:3]

        rows = client.get(f"/v1/prices/{symbol}", {"start_date": since, "sort": "date.asc", "limit": 5000})["data"]
        found = fetch("EquityHistorical", symbol=symbol, start_date=since)
        assert [(one.date.isoformat(), one.close) for one in found] == [(row["date"], float(row["close"])) for row in rows]

        rows = client.get("/v1/dividends/ex-dates", {"limit": 500})["data"]
        assert [one.symbol for one in fetch("CalendarDividend")] == [row["symbol"] for row in rows]

        rows = client.get("/v1/screener", {"min_yield": 3, "limit": 1000})["data"]
        assert [one.symbol for one in fetch("EquityScreener", min_yield=3)] == [row["symbol"] for row in rows]

        assert symbol in [one.symbol for one in fetch("EquitySearch", query=symbol, is_symbol=True)]

        rows = client.get(f"/v1/etfs/{fund}/holdings")["data"]
        assert [one.name for one in fetch("EtfHoldings", symbol=fund)] == [row["name"] for row in rows]

        held = next(row["symbol"] for row in client.get(f"/v1/etfs/{fund}/holdings")["data"] if row["symbol"])
        rows = client.get(f"/v1/stocks/{held}/etf-holders")["data"]
        found = fetch("EtfEquityExposure", symbol=held)
        assert [(one.etf_symbol, one.weight) for one in found] == [
            (row["etf_symbol"], float(row["weight"] / 100)) for row in rows
        ], found[:3]

        row = client.get(f"/v1/stocks/{symbol}/metrics")["data"]
        metrics = fetch("KeyMetrics", symbol=symbol)[0]
        assert metrics.dividend_yield == row["dividend_yield"] and metrics.symbol == symbol

        split = next(one for one in client.get("/v1/stocks", {"limit": 200})["data"] if splits(client, one["symbol"]))
        rows = splits(client, split["symbol"])
        found = fetch("HistoricalSplits", symbol=split["symbol"])
        assert [(one.date.isoformat(), one.split_ratio) for one in found] == [(row["ex_date"], row["text"]) for row in rows]

        first = date.fromisoformat(rows[0]["ex_date"])
        month = {"start_date": first, "end_date": first + timedelta(days=30)}
        rows = client.get("/v1/splits/calendar", {**month, "limit": 500})["data"]
        found = fetch("CalendarSplits", **month)
        assert [(one.symbol, one.date.isoformat(), one.numerator) for one in found] == [
            (row["symbol"], row["ex_date"], float(row["to_shares"])) for row in rows
        ], found

    refused = (("dds_live_wrong", symbol, UnauthorizedError), (KEY, "NOPE", EmptyDataError))
    for key, query, kind in refused:
        try:
            fetch("KeyMetrics", key=key, symbol=query)
        except kind as error:
            print(f"refused: {error}")
        else:
            raise AssertionError(f"{query} was answered")
    print("the OpenBB provider has the API's rows")


def splits(client: Client, symbol: str) -> list[dict[str, Any]]:
    return client.get(f"/v1/stocks/{symbol}/splits", {"limit": 200})["data"]


if __name__ == "__main__":
    main()
