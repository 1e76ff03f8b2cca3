"""The newest data version of the answers so far. A later call asks for data that is not older."""

from __future__ import annotations

import re
from threading import Lock

_TAG = re.compile(r'W/"(g\d+\.\d+\.(\d+))-')


class Newest:
    """The newest data version, read from entity tags. The service's replicas differ in how new their data is."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._position = -1
        self._lock = Lock()

    def version(self) -> str | None:
        """The value of If-Min-Version; None before the first answer."""
        return self._version

    def see(self, etag: str | None) -> None:
        """Reads the version in the entity tag of an answer."""
        found = _TAG.match(etag or "")
        with self._lock:
            if found and int(found[2]) > self._position:
                self._version, self._position = found[1], int(found[2])

    def forget(self) -> bool:
        """Forgets the version, which the service lost. False if there was none."""
        with self._lock:
            known, self._version, self._position = self._version is not None, None, -1
            return known
