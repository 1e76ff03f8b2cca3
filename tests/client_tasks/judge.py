#!/usr/bin/env python3
"""What a real client does all day, three times: in plain HTTP, with the Python and with the TypeScript client. Each task
needs at most the calls written in tasks.json, and all three find the same.

    judge.py COMMAND…      the command that runs the TypeScript tasks, to which what is given is added as JSON
"""

import json
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import client
import plain
import urllib.request

TASKS = json.loads((Path(__file__).parent / "tasks.json").read_text())


def main() -> int:
    given = what_is_given()
    typescript = json.loads(subprocess.run([*sys.argv[1:], json.dumps(given)], stdout=subprocess.PIPE, check=True).stdout)
    failures = 0
    for name, task in TASKS.items():
        found = {"http": run(plain, name, given), "python": run(client, name, given), "typescript": typescript[name]}
        answers = {json.dumps(plainly(one["answer"]), sort_keys=True) for one in found.values()}
        calls = {way: one["calls"] for way, one in found.items()}
        problems = [f"{way} needs {count} calls" for way, count in calls.items() if not 0 < count <= task["calls"]]
        if len(answers) > 1:
            problems.append("the answers differ: " + " | ".join(answer[:300] for answer in answers))
        if not all(one["answer"] for one in found.values()):
            problems.append("nothing was found")
        failures += bool(problems)
        print(f"{'FAILED' if problems else 'ok':7}{name:26}{calls} of {task['calls']}", *problems, sep="  ")
    return 1 if failures else 0


def what_is_given() -> dict[str, Any]:
    """The portfolio, the days and the names the tasks are about."""
    payers = plain.ask("/v1/stocks", has_dividends="true", currency="USD", limit=100)["data"]
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


def run(way: Any, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The answer of a task, and the calls it took by the account's own count."""
    before = calls_left()
    answer = getattr(way, name)(given)
    return {"answer": answer, "calls": before - calls_left() - 1}


def calls_left() -> int:
    """What is left of the month, after this call."""
    key = {"Authorization": f"Bearer {plain.os.environ['DDS_API_KEY']}"}
    asked = urllib.request.Request(f"{plain.os.environ['DDS_API_URL']}/v1/sectors?limit=1", headers=key)
    with urllib.request.urlopen(asked) as response:
        return int(response.headers["X-Quota-Remaining"])


def plainly(value: Any) -> Any:
    """The same with one spelling of decimals and days."""
    match value:
        case Decimal():
            return format(value.normalize(), "f")
        case date():
            return str(value)
        case dict():
            return {name: plainly(one) for name, one in value.items()}
        case list() | tuple():
            return [plainly(one) for one in value]
    return value


if __name__ == "__main__":
    sys.exit(main())
