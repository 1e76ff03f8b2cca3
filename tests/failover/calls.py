"""Steady calls through the balancer, and what came of each."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import NamedTuple

PATHS = ("/v1/stocks/{}/quote", "/v1/stocks/{}/metrics", "/v1/prices/{}?limit=5", "/v1/stocks?limit=3")
TIMEOUT = 12.0
PROBE_SECONDS = 0.1
"""Pause between two probes of an instance."""
REVOKED_SHARE = 20
"""One of so many calls presents a deleted key."""


class Outcome(NamedTuple):
    """Status, 0 without a response, and the instance that responded; empty if the balancer did."""

    status: int
    instance: str = ""


class Refusals:
    """Time from the first refused call of an instance until its /readyz reports it."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}
        self.not_ready: set[str] = set()
        self.delays: list[float] = []

    def record_call(self, outcome: Outcome) -> None:
        if outcome.status == 503 and outcome.instance and outcome.instance not in self.not_ready:
            self.since.setdefault(outcome.instance, time.monotonic())
        elif outcome.status == 200 and (since := self.since.pop(outcome.instance, None)):
            # The instance serves again, and its /readyz was true meanwhile.
            self.delays.append(time.monotonic() - since)

    def record_probe(self, instance: str, is_ready: bool) -> None:
        if is_ready:
            self.not_ready.discard(instance)
            return
        self.not_ready.add(instance)
        if since := self.since.pop(instance, None):
            self.delays.append(time.monotonic() - since)

    def longest(self) -> float:
        """Longest time, open ones included."""
        now = time.monotonic()
        return max([0.0, *self.delays, *(now - since for since in self.since.values())])


class Calls:
    """Callers at a fixed rate in a thread of their own. They also probe every instance."""

    def __init__(self, port: int, instances: dict[str, int], keys: list[str], symbols: list[str], rate: int) -> None:
        self.port, self.instances, self.keys, self.symbols, self.rate = port, instances, keys, symbols, rate
        self.completed = 0
        self.statuses: Counter[int] = Counter()
        self.admitted: Counter[str] = Counter()
        # Calls of a key that may have been charged without a 200.
        self.uncertain: Counter[str] = Counter()
        self.refusals = Refusals()
        # Deleted keys. The load presents them in turn.
        self.revoked: list[str] = []
        self.checked_revoked = 0
        # Times of the 200s, and outcomes that the contract does not allow.
        self.good: list[float] = []
        self.wrong: list[str] = []
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
        probes = [asyncio.create_task(self._probe(name, port)) for name, port in self.instances.items()]
        begun, number, running = time.monotonic(), 0, set[asyncio.Task[None]]()
        while not self.stopping:
            number += 1
            await asyncio.sleep(max(0.0, begun + number / self.rate - time.monotonic()))
            revoked = number % REVOKED_SHARE == 0 and bool(self.revoked)
            task = asyncio.create_task(self._call_revoked(number) if revoked else self._call(number))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.wait(running, timeout=TIMEOUT + 1)
        await asyncio.gather(*probes)

    async def _call(self, number: int) -> None:
        key = self.keys[number % len(self.keys)]
        path = PATHS[number % len(PATHS)].format(self.symbols[number % len(self.symbols)])
        outcome = await self.ask(path, key)
        self.completed += 1
        self.statuses[outcome.status] += 1
        self.refusals.record_call(outcome)
        if outcome.status == 200:
            self.good.append(time.monotonic())
            self.admitted[key] += 1
        elif outcome.status in (0, 502, 504) or (outcome.status == 503 and outcome.instance):
            self.uncertain[key] += 1
        elif outcome.status not in (429, 503):
            self.wrong.append(f"{outcome.status} {path}")

    async def _call_revoked(self, number: int) -> None:
        key = self.revoked[number // REVOKED_SHARE % len(self.revoked)]
        outcome = await self.ask("/v1/stocks?limit=1", key)
        self.completed += 1
        self.checked_revoked += outcome.status == 401
        if outcome.status not in (0, 401, 502, 503, 504):
            self.wrong.append(f"a deleted key was answered with {outcome.status}")

    async def _probe(self, instance: str, port: int) -> None:
        while not self.stopping:
            outcome = await self.ask("/readyz", "", port=port, timeout=1.0)
            self.refusals.record_probe(instance, outcome.status == 200)
            await asyncio.sleep(PROBE_SECONDS)

    async def ask(self, path: str, key: str, *, port: int = 0, timeout: float = TIMEOUT) -> Outcome:
        """Asks the balancer, or an instance by its port. The balancer itself answers 502, 503 or 504 without an instance."""
        try:
            return await asyncio.wait_for(self._ask(path, key, port or self.port), timeout)
        except (OSError, asyncio.TimeoutError, ValueError, IndexError):
            return Outcome(0)

    async def _ask(self, path: str, key: str, port: int) -> Outcome:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: drill\r\nConnection: close\r\n"
            writer.write((head + (f"X-API-Key: {key}\r\n" if key else "") + "\r\n").encode())
            answer = await reader.read()
            lines = answer.split(b"\r\n\r\n", 1)[0].decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:])
            return Outcome(int(lines[0].split(" ", 2)[1]), headers.get("x-instance", ""))
        finally:
            writer.close()
