"""Calls to two API instances as a proxy makes them: to one, and to the other where no connection is had."""

import argparse
import http.client
import itertools
import json
import sys
import time
from pathlib import Path

INSTANCES = [8080, 8081]


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
        except (http.client.RemoteDisconnected, ConnectionResetError):
            # Docker's own proxy takes connections for an instance that is not there yet.
            continue
        finally:
            connection.close()
    return 0, b""


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--key", required=True)
    arguments.add_argument("--first", action="store_true", help="print the first symbol once there is one")
    arguments.add_argument("--symbol")
    arguments.add_argument("--until", type=Path, help="call until this file is there")
    given = arguments.parse_args()
    if given.first:
        for _ in range(120):
            status, body = call(INSTANCES, "/v1/stocks?limit=1", given.key)
            if status == 200 and json.loads(body)["data"]:
                return print(json.loads(body)["data"][0]["symbol"])
            time.sleep(1)
        sys.exit(f"nothing is served: {status} {body[:200]}")
    failed, calls, slowest = 0, 0, 0.0
    for ports in itertools.cycle([INSTANCES, INSTANCES[::-1]]):
        begun = time.monotonic()
        status, _ = call(ports, f"/v1/stocks/{given.symbol}/quote", given.key)
        slowest = max(slowest, time.monotonic() - begun)
        calls, failed = calls + 1, failed + (status != 200)
        if given.until.exists():
            break
        time.sleep(0.01)
    print(f"{calls} calls, {failed} failed, the slowest took {slowest * 1000:.0f} ms")
    return sys.exit(1 if failed else 0)


main()
