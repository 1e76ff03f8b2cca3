"""Calls of the API with the reader's credential."""

from __future__ import annotations

from typing import Any

from dds_client import AsyncClient, DdsError
from openbb_core.app.model.abstract.error import OpenBBError
from openbb_core.provider.utils.errors import EmptyDataError

PAGES = 100
"""Maximum number of pages of one list."""


async def rows(path: str, query: dict[str, Any], credentials: dict[str, str] | None) -> list[dict[str, Any]]:
    """All rows of a list, or the one row of a resource. The client leaves out parameters without a value."""
    query = dict(query)
    found: list[dict[str, Any]] = []
    try:
        async with AsyncClient((credentials or {}).get("dds_api_key")) as client:
            for _ in range(PAGES):
                answer = await client.get(path, query)
                data = answer["data"]
                found.extend(data if isinstance(data, list) else [data])
                cursor = answer["meta"].get("next_cursor")
                if not cursor:
                    break
                query["cursor"] = cursor
    except DdsError as error:
        raise OpenBBError(str(error)) from error
    if not found:
        raise EmptyDataError()
    return found
