"""The drill: faults, one after another, under load; then what must hold. See `run`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from calls import Calls
from nodes import TTL, Cluster, Node, psql, sh, until

PROGRAMS = Path(os.environ["PROGRAMS"]).resolve()
RATE = int(os.environ.get("RATE", "200"))
OUTAGE = 45
"""Seconds for which a node hangs or is gone: long enough for a failover."""
HOSTS = "10.77.0.11:5432,10.77.0.12:5432,10.77.0.13:5432"
DATABASE, BALANCER, BALANCED_DATABASE = "dividends", 8190, 6432
PORTS = (8181, 8182, 8183)

HAPROXY = f"""
global
  stats socket {{work}}/haproxy.sock mode 600 level admin
defaults
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  option redispatch
listen primary
  mode tcp
  bind 127.0.0.1:{BALANCED_DATABASE}
  option httpchk GET /primary
  default-server port 8008 check inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
  server node1 10.77.0.11:5432
  server node2 10.77.0.12:5432
  server node3 10.77.0.13:5432
listen api
  mode http
  bind 127.0.0.1:{BALANCER}
  retries 2
  retry-on conn-failure empty-response
  option httpchk GET /readyz
  default-server check inter 500ms fall 2 rise 1
{{api}}
"""


def url(role: str, *, attributes: str = "read-write") -> str:
    return f"postgres://{role}@{HOSTS}/{DATABASE}?target_session_attrs={attributes}"


class Drill:
    """The cluster, the service on it, and the calls."""

    def __init__(self, work: Path) -> None:
        self.work, self.cluster = work, Cluster(work)
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.rows, self.crashes, self.results, self.failed = 0, 0, [], False
        self.revoked: list[str] = []
        self.environment = {
            **os.environ, "DATABASE_URL": url("postgres"), "PROJECTOR_DATABASE_URL": url("dds_projector"),
            "API_DATABASE_URL": url("dds_api"), "NATS_URL": "nats://10.77.0.11:4222,nats://10.77.0.12:4222,nats://10.77.0.13:4222",
            "NATS_REPLICAS": "3", "DASHBOARD": "off", "CURSOR_SECRET": "0" * 64, "API_DRAIN_DELAY": "3s",
            "ADDRESS_CALLS_PER_MINUTE": "1000000", "ADDRESS_CALLS_BURST": "1000000",
        }  # fmt: skip

    def run(self, *command: str, limit: float = 240) -> str:
        done = subprocess.run([str(PROGRAMS / command[0]), *command[1:]], env=self.environment, capture_output=True, text=True, timeout=limit)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start_program(self, name: str, *command: str, **extra: str) -> None:
        log = (self.work / f"{name}.log").open("ab")
        self.programs[name] = subprocess.Popen(command, env={**self.environment, **extra}, stdout=log, stderr=log)

    def start_api(self, index: int) -> None:
        port = PORTS[index]
        # One reads from standbys, one reaches its database through the balancer.
        extra = [{}, {"DATABASE_READ_URLS": url("dds_api", attributes="read-only")},
                 {"API_DATABASE_URL": f"postgres://dds_api@127.0.0.1:{BALANCED_DATABASE}/{DATABASE}"}][index]  # fmt: skip
        self.start_program(f"api{index}", str(PROGRAMS / "api"), "serve", "--listen", f"127.0.0.1:{port}", **extra)
        until(f"api{index} is ready", 60, lambda: sh("curl", "-sf", "-m", "2", f"http://127.0.0.1:{port}/readyz"))

    def stop_program(self, name: str) -> None:
        self.programs[name].terminate()
        self.programs[name].wait(60)

    def load(self) -> None:
        """One more day of prices, under whatever is wrong now."""
        day = (time.strptime("2020-01-01", "%Y-%m-%d").tm_yday + self.rows) - 1
        date = time.strftime("%Y-%m-%d", time.gmtime(1577836800 + day * 86400))
        feed = self.work / f"prices-{self.rows}.csv"
        feed.write_text(f"symbol,date,close\nDRILL,{date},{10 + self.rows}\n")
        self.rows += 1
        until("the log takes a load", 180, lambda: self.run("ingest", "load", str(feed), "--source", "drill") or True)

    def start(self) -> None:
        self.cluster.start()
        sh("createdb", "-h", self.cluster.primary().address, "-U", "postgres", DATABASE)
        self.run("projector", "migrate")
        sh("chmod", "755", str(self.work))
        self.run("ingest", "generate", "--symbols", "30", "--years", "2", "--seed", "7", "--out", str(self.work / "market"))
        market = ("ingest", "load", str(self.work / "market"), "--source", "generated")
        until("the log takes the market", 120, lambda: self.run(*market) or True)
        for number in (1, 2):
            self.start_program(f"projector{number}", str(PROGRAMS / "projector"), "run")
        self.sql("update accounts.tiers set rate_per_minute = 600000, burst = 600000, monthly_quota = 100000000 where tier = 'professional'")
        self.keys = [self.create_key(f"load-{number}@example.com", "professional") for number in range(7)]
        self.limited = self.create_key("limited@example.com", "starter")
        servers = "\n".join(f"  server api{index} 127.0.0.1:{port}" for index, port in enumerate(PORTS))
        (self.work / "haproxy.cfg").write_text(HAPROXY.format(work=self.work, api=servers))
        self.start_program("haproxy", "haproxy", "-db", "-f", str(self.work / "haproxy.cfg"))
        self.load()
        for index in range(len(PORTS)):
            self.start_api(index)
        symbols = self.sql("select symbol from read_g1.stocks order by symbol limit 20").split()
        self.calls = Calls("127.0.0.1", BALANCER, [*self.keys, self.limited], symbols, RATE)
        self.calls.start()
        self.began = time.monotonic()
        until("calls are answered", 60, lambda: len(self.calls.good) > RATE)

    def create_key(self, email: str, tier: str) -> str:
        self.run("api", "account", "create", email, "--tier", tier)
        return json.loads(self.run("api", "key", "create", email, "--name", "drill", "--json"))["secret"]

    def sql(self, query: str) -> str:
        return psql(self.cluster.primary().address, DATABASE, query)

    def stop(self) -> None:
        for program in self.programs.values():
            program.kill()
        self.cluster.stop()

    # What goes wrong. Each returns after it is healed.

    def switchover(self) -> None:
        first, second = self.cluster.primary(), self.cluster.standbys()[0]
        synchronous = psql(first.address, "postgres", "select application_name from pg_stat_replication where sync_state = 'sync'").strip()
        chosen = synchronous or second.name
        sh("patronictl", "-c", str(first.work / "patroni.yml"), "switchover", "--master", first.name, "--candidate", chosen, "--force")

    def kill_postmaster(self) -> None:
        self.crashes += 1
        self.cluster.primary().signal(signal.SIGKILL, "postgres")
        time.sleep(OUTAGE / 2)

    def gone(self, node: Node) -> None:
        node.kill("patroni", "postgres", "etcd", "nats")
        time.sleep(OUTAGE)
        for name in ("etcd", "nats", "patroni"):
            node.start(name)

    def kill_primary_node(self) -> None:
        self.crashes += 1
        self.gone(self.cluster.primary())

    def kill_standby_node(self) -> None:
        self.gone(self.cluster.standbys()[0])

    def hang(self, node: Node, *names: str) -> None:
        node.signal(signal.SIGSTOP, *names)
        time.sleep(OUTAGE)
        node.signal(signal.SIGCONT, *names)

    def hang_primary(self) -> None:
        self.crashes += 1
        self.hang(self.cluster.primary(), "patroni", "postgres")

    def hang_standby(self) -> None:
        self.hang(self.cluster.standbys()[0], "patroni", "postgres")

    def vanish_primary(self) -> None:
        self.crashes += 1
        node = self.cluster.primary()
        node.vanish()
        time.sleep(OUTAGE)
        node.reappear()

    def etcd_away(self) -> None:
        for node in self.cluster.nodes:
            node.kill("etcd")
        time.sleep(OUTAGE)
        for node in self.cluster.nodes:
            node.start("etcd")

    def kill_nats_node(self) -> None:
        node = self.cluster.nodes[1]
        node.kill("nats")
        time.sleep(OUTAGE / 3)
        node.start("nats")

    def kill_projector(self) -> None:
        self.programs["projector1"].kill()
        time.sleep(OUTAGE / 3)
        self.start_program("projector1", str(PROGRAMS / "projector"), "run")

    def restart_all(self) -> None:
        for index in range(len(PORTS)):
            self.stop_program(f"api{index}")
            self.start_api(index)
        for number in (1, 2):
            self.stop_program(f"projector{number}")
            self.start_program(f"projector{number}", str(PROGRAMS / "projector"), "run")

    def primary_and_nats(self) -> None:
        node = self.cluster.standbys()[0]
        node.kill("nats")
        self.kill_primary_node()
        node.start("nats")

    def random_round(self) -> None:
        name = self.random.choice([name for name in FAULTS if name not in ("random_round", "etcd_away")])
        print(f"  chosen: {name}", flush=True)
        getattr(self, name)()

    # How each is judged.

    def round(self, name: str, limit: float) -> None:
        self.cluster.wait_until_whole()
        email = f"revoked-{len(self.revoked)}@example.com"
        key = self.create_key(email, "professional")
        self.run("api", "key", "delete", email, "drill")
        self.revoked.append(key)
        time.sleep(2)
        before, began = dict(self.calls.statuses), time.monotonic()
        getattr(self, name)()
        self.load()
        until("calls are answered again", 120, lambda: self.calls.good and self.calls.good[-1] > time.monotonic() - 0.5)
        gap = self.calls.longest_gap(began, time.monotonic())
        self.cluster.wait_until_whole()
        self.check_revoked()
        statuses = {status: count - before.get(status, 0) for status, count in self.calls.statuses.items()}
        passed = gap <= limit and not self.calls.wrong
        self.failed |= not passed
        line = f"| {name} | {gap:.1f} | {limit:g} | {dict(sorted(statuses.items()))} | {'passed' if passed else 'FAILED'} |"
        self.results.append(line)
        print(line, *self.calls.wrong[:3], flush=True)

    def check_revoked(self) -> None:
        for key in self.revoked:
            status = asyncio.run(self.calls.ask("/v1/stocks?limit=1", key))
            self.hold(status in (0, 401, 503), f"a revoked key was answered with {status}")

    def hold(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.failed = True
            print(f"DOES NOT HOLD: {otherwise}", flush=True)
            self.results.append(f"does not hold: {otherwise}")

    def judge(self) -> None:
        self.calls.stop()
        seconds = time.monotonic() - self.began
        self.cluster.wait_until_whole()
        until("the log is applied", 180, lambda: json.loads(self.run("projector", "status", "--json"))["lag_events"] == 0)
        used = dict(line.split("|") for line in self.sql(
            "select a.email, l.used from accounts.accounts a join accounts.limiter l on l.account_id = a.id").split())  # fmt: skip
        emails = {**{key: f"load-{number}@example.com" for number, key in enumerate(self.keys)}, self.limited: "limited@example.com"}
        # A crash loses less than a second of counts; a call without an answer may have been charged.
        lost = (self.crashes + 1) * RATE / len(emails)
        for key, email in emails.items():
            charged, admitted, tried = int(used[email]), self.calls.admitted[key], self.calls.attempts[key]
            self.hold(admitted - lost <= charged <= tried, f"{email}: {admitted} admitted, {charged} charged, {tried} tried")
        allowed = 60 + seconds / 60 * 30 + (self.crashes + 1) * 30
        admitted = self.calls.admitted[self.limited]
        self.hold(admitted <= allowed, f"{admitted} calls above the limit of {allowed:.0f}")
        stored = len(self.days())
        self.hold(stored == self.rows, f"{stored} of {self.rows} loaded days are served")
        generation = json.loads(self.run("projector", "rebuild", "--from", "log", "--json", limit=600))["generation"]
        compared = json.loads(self.run("projector", "diff", "1", str(generation), "--json", limit=600))
        self.hold(compared["identical"], f"the tables are not the fold of the log: {compared['summary']}")
        total = sum(self.calls.statuses.values())
        self.results.append(f"{total} calls in {seconds:.0f} s, {self.crashes} crashes: {dict(sorted(self.calls.statuses.items()))}")

    def days(self) -> list[str]:
        """Days of the loaded security, by the API."""
        answer = json.loads(sh("curl", "-sf", "-H", f"X-API-Key: {self.keys[0]}", f"http://127.0.0.1:{BALANCER}/v1/prices/DRILL?start_date=2020-01-01&limit=1000"))
        days = [row["date"] for row in answer["data"]]
        self.hold(len(days) == len(set(days)), "a day is served twice")
        return days


FAULTS: dict[str, float] = {
    "switchover": 2, "kill_postmaster": TTL + 3, "kill_primary_node": TTL + 3, "kill_standby_node": 1, "hang_primary": TTL + 5,
    "hang_standby": 1, "vanish_primary": TTL + 5, "etcd_away": 1, "kill_nats_node": 1, "kill_projector": 1, "restart_all": 1,
    "primary_and_nats": TTL + 3, "random_round": TTL + 5,
}  # fmt: skip


@contextmanager
def drill() -> Iterator[Drill]:
    work = Path(tempfile.mkdtemp(prefix="failover-"))
    work.chmod(0o755)
    running = Drill(work)
    try:
        yield running
    finally:
        running.stop()
        print(f"logs are in {work}", flush=True)
        shutil.rmtree(work / "market", ignore_errors=True)


def main(wanted: list[str]) -> int:
    seed, rounds = int(os.environ.get("SEED", "1")), int(os.environ.get("ROUNDS", "20"))
    with drill() as running:
        running.random = random.Random(seed)
        running.start()
        print("| fault | seconds without a 200 | limit | statuses | |\n|---|---|---|---|---|", flush=True)
        for name, limit in FAULTS.items():
            if not wanted or name in wanted:
                for _ in range(rounds if name == "random_round" else 1):
                    running.round(name, limit)
        running.judge()
    print("\n".join(running.results))
    print(f"seed {seed}: {'FAILED' if running.failed else 'passed'}")
    return int(running.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
