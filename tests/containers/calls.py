"""Calls to two API instances as a proxy makes them: to one, and to the other where no connection is had."""

import argparse
import collections
import http.client
import itertools
import json
import sys
import threading
import time
from pathlib import Path

INSTANCES = [8080, 8081]
# Between two calls of a key, which may make 300 a minute for long and 600 at once.
PAUSE = 0.1


def call(ports, path, key):
    """Status and body of the first instance that takes the connection; a call that was sent is not sent again."""
    for port in ports:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.connect()
        except OSError:
            continue
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, OSError) as error:
            return type(error).__name__, b""
        finally:
            connection.close()
    return "no connection", b""


def first(key, instances):
    """The first symbol, once there is one."""
    for _ in range(120):
        status, body = call(instances, "/v1/stocks?limit=1", key)
        if status == 200 and json.loads(body)["data"]:
            return json.loads(body)["data"][0]["symbol"]
        time.sleep(1)
    return sys.exit(f"nothing is served: {status} {body[:200]}")


def calling(key, symbol, until, took, outcomes, instances):
    """Calls one instance after the other until a file is there."""
    paths = itertools.cycle(f"/v1/{path}" for path in [f"stocks/{symbol}/quote", f"stocks/{symbol}/dividends", f"prices/{symbol}?limit=500"])
    for ports, path in zip(itertools.cycle([instances, instances[::-1]]), paths):
        begun = time.monotonic()
        outcomes.append(call(ports, path, key)[0])
        took.append(time.monotonic() - begun)
        if until.exists():
            return
        time.sleep(PAUSE)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--keys", required=True, help="each calls beside the others")
    arguments.add_argument("--first", action="store_true", help="print the first symbol once there is one")
    arguments.add_argument("--symbol")
    arguments.add_argument("--until", type=Path, help="call until this file is there")
    arguments.add_argument("--ports", nargs="+", type=int, default=INSTANCES, help="ports of the instances, or of their balancer")
    given = arguments.parse_args()
    keys = given.keys.split()
    if given.first:
        return print(first(keys[0], given.ports))
    took, outcomes = [], []
    callers = [
        threading.Thread(target=calling, args=(key, given.symbol, given.until, took, outcomes, given.ports)) for key in keys
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    failed = collections.Counter(outcome for outcome in outcomes if outcome != 200)
    causes = "".join(f", {count} × {outcome}" for outcome, count in failed.items())
    print(f"{len(outcomes)} calls, {failed.total()} failed{causes}; the slowest took {max(took) * 1000:.0f} ms")
    return sys.exit(1 if failed else 0)


main()
