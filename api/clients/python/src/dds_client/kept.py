"""Answers kept for conditional requests: a call whose answer has not changed costs no transfer."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

LARGEST = 1024 * 1024
"""Bytes of the largest answer that is kept."""


class Kept:
    """The newest answers by address, each with its ETag; the least recently used goes first."""

    def __init__(self, answers: int) -> None:
        self._most = answers
        self._answers: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._lock = Lock()

    def find(self, url: str) -> tuple[str, bytes] | None:
        """ETag and body of an earlier answer."""
        with self._lock:
            if url in self._answers:
                self._answers.move_to_end(url)
            return self._answers.get(url)

    def keep(self, url: str, etag: str | None, body: bytes) -> None:
        """Keeps an answer that has an ETag and is not too large."""
        if etag is None or len(body) > LARGEST:
            return
        with self._lock:
            self._answers[url] = (etag, body)
            self._answers.move_to_end(url)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
