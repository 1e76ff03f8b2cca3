"""OpenBB provider of the dividend data service."""

from __future__ import annotations

from openbb_core.provider.abstract.provider import Provider

from .fetchers import FETCHERS

dds_provider = Provider(
    name="dds",
    repr_name="Dividend Data Service",
    description="Dividends, splits, prices, ETF holdings and dividend metrics of the dividend data service.",
    credentials=["api_key"],
    instructions="Create a key in the dashboard of the service. DDS_API_URL is the address of the service.",
    fetcher_dict=FETCHERS,
)
