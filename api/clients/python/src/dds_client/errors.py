"""What can go wrong: one class a `code` of the service, and two for what is no answer of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

_OBJECT = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


class DdsError(Exception):
    """Everything this client raises."""


class MissingKey(DdsError):
    """No key was given and the environment has none."""


class Unreachable(DdsError):
    """The service did not answer, however often it was asked."""


class BrokenAnswer(DdsError):
    """An answer broke off, or is not what the service's document promises. No row of it may be used."""


class Refused(DdsError):
    """The service refused. `code` is its word for programs, None where it has none (404) or did not answer itself."""

    def __init__(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.status = status
        self.body = body
        self.code: str | None = body.get("code")
        self.request_id = headers.get("x-request-id")
        self.retry_after = seconds(headers.get("retry-after"))
        """Seconds to wait before the next call; None when the service named none."""
        super().__init__(f"{status} {self.code or ''}: {body.get('error', 'no reason given')}".replace(" :", ":"))


class InvalidApiKey(Refused):
    """The key is missing, wrong or expired."""


class FeatureNotAvailable(Refused):
    """The account's tier does not include this; `body` has `current_tier`, `required_feature` and `upgrade_url`."""


class RateLimited(Refused):
    """More calls a minute than the account has, after as many tries as the retry policy allows."""


class QuotaExceeded(Refused):
    """The month's calls are used up; `body` has `usage`. It is never waited for."""


class TooManyStreams(Refused):
    """The account has as many open change streams as its plan allows, after as many tries as the retry policy allows."""


class InvalidParameter(Refused):
    """A parameter is wrong; `body` has `param`, `allowed` and all `errors`."""


class AmbiguousSymbol(InvalidParameter):
    """Several listings have the identifier; `body` has their symbols, markets and currencies as `candidates`."""


class InvalidCursor(Refused):
    """The cursor is damaged or belongs to another request."""


class NotFound(Refused):
    """There is no such stock, fund or sector."""


class MethodNotAllowed(Refused):
    """The service only reads."""


class HeadTooLarge(Refused):
    """The request is longer than the service reads; give fewer symbols a call."""


class VersionNotServed(Refused):
    """The service has no data as new as `min_version`."""


class Internal(Refused):
    """The service failed; `request_id` names the call to its operator."""


class ServiceUnavailable(Refused):
    """The service cannot answer now, after as many tries as the retry policy allows."""


# These answers may have no code: a proxy's page, or the short reply to a head that is too large.
_BY_STATUS: dict[int, type[Refused]] = {404: NotFound, 414: HeadTooLarge, 431: HeadTooLarge}
_BY_CODE: dict[str, type[Refused]] = {
    "INVALID_API_KEY": InvalidApiKey,
    "FEATURE_NOT_AVAILABLE": FeatureNotAvailable,
    "RATE_LIMITED": RateLimited,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "TOO_MANY_STREAMS": TooManyStreams,
    "INVALID_PARAMETER": InvalidParameter,
    "AMBIGUOUS_SYMBOL": AmbiguousSymbol,
    "INVALID_CURSOR": InvalidCursor,
    "METHOD_NOT_ALLOWED": MethodNotAllowed,
    "VERSION_NOT_SERVED": VersionNotServed,
    "INTERNAL": Internal,
    "SERVICE_UNAVAILABLE": ServiceUnavailable,
}


def refusal(status: int, text: bytes, headers: Mapping[str, str]) -> Refused:
    """The error for an answer that is no success."""
    try:
        body = _OBJECT.decode(text)
    except msgspec.MsgspecError:
        body = {}
    kind = _BY_STATUS.get(status) or _BY_CODE.get(body.get("code", ""), Refused)
    return kind(status, body, headers)


def seconds(text: str | None) -> int | None:
    """The value of Retry-After, which the service always gives in seconds."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
