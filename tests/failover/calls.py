"""Steady calls through the balancer, and what came of each."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

PATHS = ("/v1/stocks/{}/quote", "/v1/stocks/{}/metrics", "/v1/prices/{}?limit=5", "/v1/stocks?limit=3")
TIMEOUT = 12.0


class Calls:
    """Callers at a fixed rate in a thread of their own."""

    def __init__(self, host: str, port: int, keys: list[str], symbols: list[str], rate: int) -> None:
        self.host, self.port, self.keys, self.symbols, self.rate = host, port, keys, symbols, rate
        self.statuses: Counter[int] = Counter()
        self.admitted: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        # Times of the 200s, and statuses that the contract does not allow.
        self.good: list[float] = []
        self.wrong: list[str] = []
        self.revoked: list[str] = []
        self.stopping = False
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.stopping = True
        self.thread.join()

    def longest_gap(self, since: float, to: float) -> float:
        """Longest time without a 200."""
        times = [since, *(at for at in self.good if since <= at <= to), to]
        return max(later - sooner for sooner, later in zip(times, times[1:]))

    async def _run(self) -> None:
        begun, number, running = time.monotonic(), 0, set[asyncio.Task[None]]()
        while not self.stopping:
            number += 1
            await asyncio.sleep(max(0.0, begun + number / self.rate - time.monotonic()))
            task = asyncio.create_task(self._call(number))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.wait(running, timeout=TIMEOUT + 1)

    async def _call(self, number: int) -> None:
        key = self.keys[number % len(self.keys)]
        path = PATHS[number % len(PATHS)].format(self.symbols[number % len(self.symbols)])
        self.attempts[key] += 1
        status = await self.ask(path, key)
        self.statuses[status] += 1
        if status == 200:
            self.good.append(time.monotonic())
            self.admitted[key] += 1
        elif status not in (0, 429, 502, 503, 504):
            self.wrong.append(f"{status} {path}")

    async def ask(self, path: str, key: str) -> int:
        """The status; 0 without an answer. The balancer itself answers 502, 503 or 504 without an instance."""
        try:
            return await asyncio.wait_for(self._ask(path, key), TIMEOUT)
        except (OSError, asyncio.TimeoutError, ValueError, IndexError):
            return 0

    async def _ask(self, path: str, key: str) -> int:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: drill\r\nConnection: close\r\nX-API-Key: {key}\r\n\r\n".encode())
            answer = await reader.read()
            return int(answer.split(b" ", 2)[1])
        finally:
            writer.close()
