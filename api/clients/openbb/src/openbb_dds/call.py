"""Calls of the API with the reader's credential."""

from __future__ import annotations

from typing import Any

from dds_client import AsyncClient, DdsError
from dds_client.errors import FeatureNotAvailable, InvalidApiKey, MissingKey, NotFound
from openbb_core.app.model.abstract.error import OpenBBError
from openbb_core.provider.utils.errors import EmptyDataError, UnauthorizedError

PAGES = 100
"""Maximum number of pages of one list."""


async def rows(path: str, query: dict[str, Any], credentials: dict[str, str] | None) -> list[dict[str, Any]]:
    """All rows of a list, or the one row of a resource. The client leaves out parameters without a value.

    Raises EmptyDataError for an unknown symbol and for a list without rows, UnauthorizedError for a key that is missing,
    invalid or of a plan without the data, and OpenBBError otherwise.
    """
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
    except NotFound as error:
        raise EmptyDataError(str(error)) from error
    except (MissingKey, InvalidApiKey, FeatureNotAvailable) as error:
        raise UnauthorizedError(str(error)) from error
    except DdsError as error:
        raise OpenBBError(str(error)) from error
    if not found:
        raise EmptyDataError()
    return found
