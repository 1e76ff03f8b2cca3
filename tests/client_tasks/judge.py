#!/usr/bin/env python3
"""What a real client does all day, three times: in plain HTTP, with the Python and with the TypeScript client. Each task
needs at most the calls written in tasks.json, and all three find the same.

    judge.py COMMAND…      the command that runs the TypeScript tasks, a line of JSON each
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import client
import month
import plain

TASKS = json.loads((Path(__file__).parent / "tasks.json").read_text())
# Runs a task: its name, what is given, and what it held from the last time.
Way = Callable[..., dict[str, Any]]


def main() -> int:
    given, failures = what_is_given(), 0
    with TypeScript(sys.argv[1:]) as typescript:
        ways: dict[str, Way] = {
            "http": partial(run, plain), "python": partial(run, client), "typescript": typescript.run,
        }
        for name, task in TASKS.items():
            if name == "in_step_for_a_month":
                found, problems = month.lived(ways, given)
            else:
                found, problems = {way: ask(name, given) for way, ask in ways.items()}, []
            answers = {json.dumps(plain.plainly(one["answer"]), sort_keys=True) for one in found.values()}
            calls = {way: one["calls"] for way, one in found.items()}
            problems += [f"{way} needs {count} calls" for way, count in calls.items() if not 0 < count <= task["calls"]]
            if len(answers) > 1:
                problems.append("the answers differ: " + " | ".join(answer[:300] for answer in answers))
            if not all(one["answer"] for one in found.values()):
                problems.append("nothing was found")
            failures += bool(problems)
            print(f"{'FAILED' if problems else 'ok':7}{name:26}{calls} of {task['calls']}", *problems, sep="  ")
    return 1 if failures else 0


class TypeScript:
    """The program that runs the TypeScript tasks."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.communicate()

    def run(self, name: str, given: dict[str, Any], held: Any = None) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        known = {"held": held} if held else {}
        self.process.stdin.write(json.dumps({"name": name, "given": given, **known}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def what_is_given() -> dict[str, Any]:
    """The portfolio, the days and the names the tasks are about."""
    payers = plain.ask("/v1/stocks", pays_dividend="true", currency="USD", limit=100)["data"]
    today = date.fromisoformat(plain.ask("/v1/dividends/ex-dates")["meta"]["today"])
    symbols = [row["symbol"] for row in payers]
    return {
        "portfolio": {symbol: 10 + number for number, symbol in enumerate(symbols[:20])},
        "fifty": symbols[:50],
        "sector": payers[0]["sector"],
        "name": payers[0]["name"][:-2],
        "today": str(today),
        "in_two_weeks": str(today + timedelta(days=14)),
        "in_a_year": str(today + timedelta(days=365)),
        "two_years_ago": str(today - timedelta(days=730)),
        "ten_years_ago": str(today - timedelta(days=3652)),
    }


def run(way: Any, name: str, given: dict[str, Any], *held: Any) -> dict[str, Any]:
    """The answer of a task, and the calls it took by the account's own count."""
    before = calls_left()
    answer = getattr(way, name)(given, *held)
    return {"answer": answer, "calls": before - calls_left() - 1}


def calls_left() -> int:
    """What is left of the month, after this call."""
    key = {"Authorization": f"Bearer {plain.os.environ['DDS_API_KEY']}"}
    asked = urllib.request.Request(f"{plain.os.environ['DDS_API_URL']}/v1/sectors?limit=1", headers=key)
    with urllib.request.urlopen(asked) as response:
        return int(response.headers["X-Quota-Remaining"])


if __name__ == "__main__":
    sys.exit(main())
