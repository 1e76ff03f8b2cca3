"""When to ask again, and after how long. Pure: it neither waits nor asks."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import QuotaExceeded, Refused

AGAIN = (429, 503)
"""Statuses that say: not now."""


@dataclass(frozen=True)
class Retry:
    """How patient a client is. Only calls that got no answer, 429 and 503 are tried again."""

    attempts: int = 8
    """Tries of one call at most, the first included."""
    base: float = 0.25
    """Seconds up to which the first pause is drawn; each further one is drawn from twice as many."""
    longest: float = 60.0
    """Seconds a pause lasts at most. A service that asks for more is not waited for."""

    def pause(self, attempt: int, refused: Refused | None) -> float | None:
        """Seconds to wait after the `attempt`th try (from 1), or None when there is no further one.

        `refused` is the service's answer, None when there was none.
        """
        if attempt >= self.attempts:
            return None
        jitter = random.uniform(0, min(self.longest, self.base * 2 ** (attempt - 1)))
        if refused is None:
            return jitter
        if refused.status not in AGAIN or isinstance(refused, QuotaExceeded):
            return None
        asked = refused.retry_after
        if asked is None:
            return jitter
        # Never sooner than asked; a little later, so that clients who were refused together do not return together.
        return None if asked > self.longest else asked + min(jitter, 1.0)
