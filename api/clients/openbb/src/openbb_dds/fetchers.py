"""Fetchers by OpenBB model. A row keeps the API's fields and has the model's names in addition."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote

from openbb_core.provider.abstract.fetcher import Fetcher
from openbb_core.provider.standard_models.calendar_dividend import CalendarDividendData, CalendarDividendQueryParams
from openbb_core.provider.standard_models.calendar_splits import CalendarSplitsData, CalendarSplitsQueryParams
from openbb_core.provider.standard_models.equity_historical import EquityHistoricalData, EquityHistoricalQueryParams
from openbb_core.provider.standard_models.equity_screener import EquityScreenerData, EquityScreenerQueryParams
from openbb_core.provider.standard_models.equity_search import EquitySearchData, EquitySearchQueryParams
from openbb_core.provider.standard_models.etf_equity_exposure import (
    EtfEquityExposureData,
    EtfEquityExposureQueryParams,
)
from openbb_core.provider.standard_models.etf_holdings import EtfHoldingsData, EtfHoldingsQueryParams
from openbb_core.provider.standard_models.historical_dividends import (
    HistoricalDividendsData,
    HistoricalDividendsQueryParams,
)
from openbb_core.provider.standard_models.historical_splits import HistoricalSplitsData, HistoricalSplitsQueryParams
from openbb_core.provider.standard_models.key_metrics import KeyMetricsData, KeyMetricsQueryParams
from pydantic import Field

from .call import rows

Rows = list[dict[str, Any]]
Credentials = dict[str, str] | None


class PricesQuery(EquityHistoricalQueryParams):
    """Query of prices."""

    interval: Literal["daily", "weekly", "monthly", "quarterly", "yearly"] = Field(
        default="daily", description="Interval of a price point."
    )
    adjustment: Literal["raw", "split", "all"] = Field(
        default="split", description="Adjustment of the prices: none, splits, or splits and dividends."
    )


CURRENCY = Field(
    default=None,
    description="ISO 4217 currency. Each amount then has `converted`: the amount in it, with the exchange rate.",
)


class DividendsQuery(HistoricalDividendsQueryParams):
    """Query of a symbol's dividends."""

    currency: str | None = CURRENCY


class CalendarQuery(CalendarDividendQueryParams):
    """Query of the calendar."""

    currency: str | None = CURRENCY
    include_projected: bool = Field(
        default=False, description="Includes dividends that are expected but not declared."
    )


class ScreenerQuery(EquityScreenerQueryParams):
    """Query of the screener."""

    min_yield: Decimal | None = Field(default=None, description="Minimum headline dividend yield, percent.")
    max_payout_ratio: Decimal | None = Field(default=None, description="Maximum payout ratio, percent.")
    min_growth_5y: Decimal | None = Field(default=None, description="Minimum dividend growth a year over 5 years.")
    min_streak: int | None = Field(default=None, description="Minimum consecutive years of increases.")
    sector: str | None = Field(default=None, description="Sectors by name or slug, comma-separated.")


class DividendsFetcher(Fetcher[DividendsQuery, list[HistoricalDividendsData]]):
    """Dividends of a symbol."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> DividendsQuery:
        return DividendsQuery(**params)

    @staticmethod
    async def aextract_data(query: DividendsQuery, credentials: Credentials, **_: Any) -> Rows:
        asked = {"symbols": query.symbol, "start_date": query.start_date, "end_date": query.end_date, "limit": 1000}
        asked["currency"] = query.currency
        return await rows("/v1/dividends/history", asked, credentials)

    @staticmethod
    def transform_data(query: DividendsQuery, data: Rows, **_: Any) -> list[HistoricalDividendsData]:
        return [HistoricalDividendsData(**row, ex_dividend_date=row["ex_date"]) for row in data]


def split_names(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a split by OpenBB's names."""
    return {"date": row["ex_date"], "numerator": row["to_shares"], "denominator": row["from_shares"]}


class SplitsFetcher(Fetcher[HistoricalSplitsQueryParams, list[HistoricalSplitsData]]):
    """Splits of a symbol."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> HistoricalSplitsQueryParams:
        return HistoricalSplitsQueryParams(**params)

    @staticmethod
    async def aextract_data(query: HistoricalSplitsQueryParams, credentials: Credentials, **_: Any) -> Rows:
        return await rows(f"/v1/stocks/{quote(query.symbol, safe='')}/splits", {"limit": 200}, credentials)

    @staticmethod
    def transform_data(query: HistoricalSplitsQueryParams, data: Rows, **_: Any) -> list[HistoricalSplitsData]:
        return [HistoricalSplitsData(**row, **split_names(row), split_ratio=row["text"]) for row in data]


class SplitCalendarFetcher(Fetcher[CalendarSplitsQueryParams, list[CalendarSplitsData]]):
    """Splits of the market."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> CalendarSplitsQueryParams:
        return CalendarSplitsQueryParams(**params)

    @staticmethod
    async def aextract_data(query: CalendarSplitsQueryParams, credentials: Credentials, **_: Any) -> Rows:
        asked = {"start_date": query.start_date, "end_date": query.end_date, "limit": 500}
        return await rows("/v1/splits/calendar", asked, credentials)

    @staticmethod
    def transform_data(query: CalendarSplitsQueryParams, data: Rows, **_: Any) -> list[CalendarSplitsData]:
        return [CalendarSplitsData(**row, **split_names(row)) for row in data]


class PricesFetcher(Fetcher[PricesQuery, list[EquityHistoricalData]]):
    """Prices of a symbol, oldest first."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> PricesQuery:
        return PricesQuery(**params)

    @staticmethod
    async def aextract_data(query: PricesQuery, credentials: Credentials, **_: Any) -> Rows:
        asked = {
            "start_date": query.start_date,
            "end_date": query.end_date,
            "interval": query.interval,
            "adjustment": query.adjustment,
            "sort": "date.asc",
            "limit": 5000,
        }
        return await rows(f"/v1/prices/{quote(query.symbol, safe='')}", asked, credentials)

    @staticmethod
    def transform_data(query: PricesQuery, data: Rows, **_: Any) -> list[EquityHistoricalData]:
        whole = (row for row in data if all(row.get(name) is not None for name in ("open", "high", "low", "close")))
        return [EquityHistoricalData(**row) for row in whole]


class CalendarFetcher(Fetcher[CalendarQuery, list[CalendarDividendData]]):
    """Ex-dates of the market."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> CalendarQuery:
        return CalendarQuery(**params)

    @staticmethod
    async def aextract_data(query: CalendarQuery, credentials: Credentials, **_: Any) -> Rows:
        asked: dict[str, Any] = {"start_date": query.start_date, "end_date": query.end_date, "limit": 500}
        asked["include_projected"] = True if query.include_projected else None
        asked["currency"] = query.currency
        return await rows("/v1/dividends/ex-dates", asked, credentials)

    @staticmethod
    def transform_data(query: CalendarQuery, data: Rows, **_: Any) -> list[CalendarDividendData]:
        return [CalendarDividendData(**row, ex_dividend_date=row["ex_date"]) for row in data]


class ScreenerFetcher(Fetcher[ScreenerQuery, list[EquityScreenerData]]):
    """Securities by their figures."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> ScreenerQuery:
        return ScreenerQuery(**params)

    @staticmethod
    async def aextract_data(query: ScreenerQuery, credentials: Credentials, **_: Any) -> Rows:
        return await rows("/v1/screener", query.model_dump() | {"limit": 1000}, credentials)

    @staticmethod
    def transform_data(query: ScreenerQuery, data: Rows, **_: Any) -> list[EquityScreenerData]:
        return [EquityScreenerData(**row) for row in data]


class SearchFetcher(Fetcher[EquitySearchQueryParams, list[EquitySearchData]]):
    """Securities by symbol or name."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> EquitySearchQueryParams:
        return EquitySearchQueryParams(**params)

    @staticmethod
    async def aextract_data(query: EquitySearchQueryParams, credentials: Credentials, **_: Any) -> Rows:
        return await rows("/v1/search", {"q": query.query, "limit": 100}, credentials)

    @staticmethod
    def transform_data(query: EquitySearchQueryParams, data: Rows, **_: Any) -> list[EquitySearchData]:
        kinds = ("symbol", "symbol_prefix", "former_symbol")
        return [EquitySearchData(**row) for row in data if not query.is_symbol or row["match"] in kinds]


class HoldingsFetcher(Fetcher[EtfHoldingsQueryParams, list[EtfHoldingsData]]):
    """Holdings of a fund, the largest first."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> EtfHoldingsQueryParams:
        return EtfHoldingsQueryParams(**params)

    @staticmethod
    async def aextract_data(query: EtfHoldingsQueryParams, credentials: Credentials, **_: Any) -> Rows:
        return await rows(f"/v1/etfs/{quote(query.symbol, safe='')}/holdings", {}, credentials)

    @staticmethod
    def transform_data(query: EtfHoldingsQueryParams, data: Rows, **_: Any) -> list[EtfHoldingsData]:
        return [EtfHoldingsData(**row) for row in data]


class ExposureFetcher(Fetcher[EtfEquityExposureQueryParams, list[EtfEquityExposureData]]):
    """Funds that hold a security, the largest weight first. OpenBB's weight is a fraction."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> EtfEquityExposureQueryParams:
        return EtfEquityExposureQueryParams(**params)

    @staticmethod
    async def aextract_data(query: EtfEquityExposureQueryParams, credentials: Credentials, **_: Any) -> Rows:
        return await rows(f"/v1/stocks/{quote(query.symbol, safe='')}/etf-holders", {}, credentials)

    @staticmethod
    def transform_data(query: EtfEquityExposureQueryParams, data: Rows, **_: Any) -> list[EtfEquityExposureData]:
        return [
            EtfEquityExposureData(**{**row, "equity_symbol": row["symbol"], "weight": row["weight"] / 100}) for row in data
        ]


class MetricsFetcher(Fetcher[KeyMetricsQueryParams, list[KeyMetricsData]]):
    """Dividend metrics of a symbol."""

    @staticmethod
    def transform_query(params: dict[str, Any]) -> KeyMetricsQueryParams:
        return KeyMetricsQueryParams(**params)

    @staticmethod
    async def aextract_data(query: KeyMetricsQueryParams, credentials: Credentials, **_: Any) -> Rows:
        return await rows(f"/v1/stocks/{quote(query.symbol, safe='')}/metrics", {}, credentials)

    @staticmethod
    def transform_data(query: KeyMetricsQueryParams, data: Rows, **_: Any) -> list[KeyMetricsData]:
        return [KeyMetricsData(**row, period_ending=date.fromisoformat(row["as_of"])) for row in data]


FETCHERS: dict[str, type[Fetcher]] = {
    "HistoricalDividends": DividendsFetcher,
    "HistoricalSplits": SplitsFetcher,
    "EquityHistorical": PricesFetcher,
    "EtfHistorical": PricesFetcher,
    "CalendarDividend": CalendarFetcher,
    "CalendarSplits": SplitCalendarFetcher,
    "EquityScreener": ScreenerFetcher,
    "EquitySearch": SearchFetcher,
    "EtfHoldings": HoldingsFetcher,
    "EtfEquityExposure": ExposureFetcher,
    "KeyMetrics": MetricsFetcher,
}
