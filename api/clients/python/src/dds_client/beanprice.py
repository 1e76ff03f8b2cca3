"""Price source for beanprice, named in a ledger as `price: "USD:dds_client.beanprice/KO"`. Needs `beanprice`."""

from __future__ import annotations

import datetime as dt
from typing import Any

from beanprice import source  # type: ignore[import-untyped]

from .client import Client
from .errors import NotFound
from .models import PriceRow


class Source(source.Source):  # type: ignore[misc]
    """Closing prices as traded. `DDS_API_URL` and `DDS_API_KEY` are the address and the key."""

    def get_latest_price(self, ticker: str) -> Any:
        return _newest_price(ticker, None)

    def get_historical_price(self, ticker: str, time: dt.datetime) -> Any:
        return _newest_price(ticker, time.date())

    def get_prices_series(self, ticker: str, time_begin: dt.datetime, time_end: dt.datetime) -> list[Any]:
        with Client() as client:
            pages = client.prices_by_symbol_pages(
                ticker, start_date=time_begin.date(), end_date=time_end.date(), sort="date.asc", limit=5000
            )
            return [_price(row) for row in pages.rows()]


def _newest_price(ticker: str, end_date: dt.date | None) -> Any:
    """The close of the newest session until a day; None for an unknown symbol, and without a session."""
    with Client() as client:
        try:
            rows = client.prices_by_symbol(ticker, end_date=end_date, limit=1).data
        except NotFound:
            return None
    return _price(rows[0]) if rows else None


def _price(row: PriceRow) -> Any:
    # beanprice takes the date of a price in the local time zone.
    noon = dt.datetime.combine(row.date, dt.time(12)).astimezone()
    return source.SourcePrice(row.raw_close, noon, row.currency)
