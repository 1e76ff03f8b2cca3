"""The drill: faults, one after another, under load; then what must hold. See `run`."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults import FAULTS, OUTAGE, PAIRS, choose, inflict, limit_of
from nodes import until
from service import RATE, Service

READINESS_SECONDS = 2.0
"""Longest time from the first refused call of an instance until its /readyz is false."""


class Drill:
    """Rounds of faults, and their results."""

    def __init__(self, work: Path) -> None:
        self.service = Service(work)
        self.crashes, self.revocations, self.failures = 0, 0, 0
        self.notes: list[str] = []

    def round(self, names: list[str], outage: float, limit: float) -> None:
        self.service.wait_until_whole()
        calls = self.service.calls
        self.crashes += any(FAULTS[name].has_crash for name in names)
        self.revoke_key()
        before, completed, wrong, began = calls.statuses.copy(), calls.completed, len(calls.wrong), time.monotonic()
        inflict(self.service, names, outage)
        self.service.load_day()
        until("calls are answered again", 120, lambda: calls.good[-1] > time.monotonic() - 0.5)
        seconds = time.monotonic() - began
        gap, statuses = calls.longest_gap(began, time.monotonic()), calls.statuses - before
        rate, load = (calls.completed - completed) / seconds, os.getloadavg()[0]
        self.service.wait_until_whole()
        passed = gap <= limit and len(calls.wrong) == wrong
        self.failures += not passed
        columns = [
            " + ".join(names), f"{outage:.0f}", f"{gap:.1f}", f"{limit:g}", f"{rate:.0f}", f"{load:.1f}",
            str(dict(sorted(statuses.items()))), "passed" if passed else "FAILED",
        ]  # fmt: skip
        print("|", " | ".join(columns), "|", *calls.wrong[wrong:][:3], flush=True)

    def revoke_key(self) -> None:
        """Deletes a key that every instance has just accepted. The fault follows at once."""
        email = f"revoked-{self.revocations}@example.com"
        self.revocations += 1
        key = self.service.create_key(email, "professional")
        for _ in range(6):
            self.service.ask("/v1/stocks?limit=1", key)
        self.service.revoke_key(email)
        self.service.calls.revoked.append(key)

    def hold(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.failures += 1
            print(f"DOES NOT HOLD: {otherwise}", flush=True)

    def judge(self) -> None:
        service, calls = self.service, self.service.calls
        calls.stop()
        seconds = time.monotonic() - service.began
        service.wait_until_whole()
        until("the log is applied", 180, lambda: json.loads(service.run("projector", "status", "--json"))["lag_events"] == 0)
        self.judge_charges(seconds)
        self.judge_tables()
        delay = calls.refusals.longest()
        self.hold(delay <= READINESS_SECONDS, f"/readyz was true for {delay:.1f} s after a refused call")
        print(
            f"{calls.completed} calls in {seconds:.0f} s, {self.crashes} crashes, repairs: {service.cluster.repairs + service.accounts.repairs}: {dict(sorted(calls.statuses.items()))}\n"
            f"{calls.checked_revoked} calls with {len(calls.revoked)} deleted keys refused; /readyz false after at most {delay:.2f} s",
            flush=True,
        )

    def judge_charges(self, seconds: float) -> None:
        """Admitted calls are charged calls. A crash loses less than a second of counts; a call without a 200 may have been charged."""
        service, calls = self.service, self.service.calls
        rows = service.sql("select a.email, l.used from accounts.accounts a join accounts.limiter l on l.account_id = a.id").split()
        used = dict(row.split("|") for row in rows)
        lost = self.crashes * RATE / len(service.emails)
        for key, email in service.emails.items():
            charged, admitted, uncertain = int(used[email]), calls.admitted[key], calls.uncertain[key]
            self.hold(
                admitted - lost <= charged <= admitted + uncertain,
                f"{email}: {admitted} admitted, {charged} charged, {uncertain} uncertain, {lost:.0f} may be lost",
            )
        # A burst of 60 and 30 a minute. A crash restores less than a second of charges, and at most one burst.
        allowed = 60 + seconds / 60 * 30 + self.crashes * 30
        admitted = calls.admitted[service.limited]
        self.hold(admitted <= allowed, f"{admitted} calls above the limit of {allowed:.0f}")

    def judge_tables(self) -> None:
        """Each loaded day is served once, and the tables are a fold of the log."""
        service, days = self.service, self.service.days()
        self.hold(len(days) == len(set(days)), "a day is served twice")
        self.hold(len(days) == service.rows, f"{len(days)} of {service.rows} loaded days are served")
        generation = json.loads(service.run("projector", "rebuild", "--from", "log", "--json", limit=600))["generation"]
        compared = json.loads(service.run("projector", "diff", "1", str(generation), "--json", limit=600))
        self.hold(compared["identical"], f"the tables are not the fold of the log: {compared['summary']}")


@contextmanager
def drill() -> Iterator[Drill]:
    work = Path(tempfile.mkdtemp(prefix="failover-"))
    work.chmod(0o755)
    running = Drill(work)
    try:
        yield running
    finally:
        running.service.stop()
        print(f"logs are in {work}", flush=True)
        shutil.rmtree(work / "market", ignore_errors=True)


def rounds(wanted: list[str], seed: int, count: int) -> Iterator[tuple[list[str], float]]:
    """The wanted faults, else each fault, the pairs, and random ones."""
    if wanted:
        yield from ((name.split("+"), OUTAGE) for name in wanted)
        return
    yield from (([name], OUTAGE) for name in FAULTS)
    yield from ((list(pair), OUTAGE) for pair in PAIRS)
    chooser = random.Random(seed)
    yield from (choose(chooser) for _ in range(count))


def main(wanted: list[str]) -> int:
    seed, count = int(os.environ.get("SEED", "1")), int(os.environ.get("ROUNDS", "20"))
    with drill() as running:
        running.service.start()
        print("| fault | lasts s | seconds without a 200 | limit | calls/s | load average | statuses | |\n" + "|---" * 8 + "|", flush=True)
        for names, outage in rounds(wanted, seed, count):
            running.round(names, outage, limit_of(names))
        running.judge()
    print(f"seed {seed}: {'FAILED' if running.failures else 'passed'}")
    return int(running.failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
