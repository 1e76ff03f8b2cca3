"""The service on two clusters: market and accounts, log, two projectors, three API instances and a balancer, under load."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from pathlib import Path

from calls import Calls, Outcome
from nodes import Cluster, connect_bridge, disconnect_bridge, psql, sh, until

PROGRAMS = Path(os.environ["PROGRAMS"]).resolve()
RATE = int(os.environ.get("RATE", "200"))
HOSTS = "10.77.0.11:5432,10.77.0.12:5432,10.77.0.13:5432"
ACCOUNTS_HOSTS = "10.77.0.14:5432,10.77.0.15:5432,10.77.0.16:5432"
DATABASE, ACCOUNTS_DATABASE, BALANCER, BALANCED_DATABASE = "dividends", "accounts", 8190, 6432
INSTANCES = {"api0": 8181, "api1": 8182, "api2": 8183}
PROJECTORS = ("projector1", "projector2")

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
  default-server port 8008 check inter 1s downinter 200ms fall 2 rise 1 on-marked-down shutdown-sessions
  server node1 10.77.0.11:5432
  server node2 10.77.0.12:5432
  server node3 10.77.0.13:5432
listen api
  mode http
  bind 127.0.0.1:{BALANCER}
  retries 2
  retry-on conn-failure empty-response
  option httpchk GET /readyz
  http-response set-header X-Instance %s
  default-server check inter 500ms downinter 100ms fall 2 rise 1
{{api}}
"""


def url(role: str, *, attributes: str = "read-write") -> str:
    return f"postgres://{role}@{HOSTS}/{DATABASE}?target_session_attrs={attributes}"


def accounts_url(role: str) -> str:
    return f"postgres://{role}@{ACCOUNTS_HOSTS}/{ACCOUNTS_DATABASE}?target_session_attrs=read-write"


class Service:
    """The programs and their environment."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.cluster = Cluster("market", 1, ("etcd", "nats", "patroni"), work)
        self.accounts = Cluster("accounts", 4, ("patroni",), work)
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.rows = 0
        self.environment = {
            **os.environ, "DATABASE_URL": url("postgres"), "PROJECTOR_DATABASE_URL": url("dds_projector"),
            "ACCOUNTS_DATABASE_URL": accounts_url("postgres"), "API_ACCOUNTS_DATABASE_URL": accounts_url("dds_api"),
            "API_DATABASE_URL": url("dds_api"), "NATS_URL": "nats://10.77.0.11:4222,nats://10.77.0.12:4222,nats://10.77.0.13:4222",
            "NATS_REPLICAS": "3", "DASHBOARD": "off", "CURSOR_SECRET": "0" * 64, "API_DRAIN_DELAY": "3s",
            "ADDRESS_CALLS_PER_MINUTE": "1000000", "ADDRESS_CALLS_BURST": "1000000",
            "ADDRESS_FAILURES_PER_MINUTE": "1000000", "ADDRESS_FAILURES_BURST": "1000000",
        }  # fmt: skip

    def start(self) -> None:
        connect_bridge()
        for cluster, database in ((self.cluster, DATABASE), (self.accounts, ACCOUNTS_DATABASE)):
            cluster.start()
            sh("createdb", "-h", cluster.primary().address, "-U", "postgres", database)
        self.run("projector", "migrate")
        sh("chmod", "755", str(self.work))
        self.run("stack", "generate", "--symbols", "30", "--years", "2", "--seed", "7", "--out", str(self.work / "market"))
        market = ("ingest", "load", str(self.work / "market"), "--source", "generated")
        until("the log takes the market", 120, lambda: self.run(*market) or True)
        for name in PROJECTORS:
            self.start_projector(name)
        self.sql("update accounts.tiers set rate_per_minute = 600000, burst = 600000, monthly_quota = 100000000 where tier = 'professional'")
        self.emails = {self.create_key(f"load-{number}@example.com", "professional"): f"load-{number}@example.com" for number in range(7)}
        self.limited = self.create_key("limited@example.com", "starter")
        self.emails[self.limited] = "limited@example.com"
        servers = "\n".join(f"  server {name} 127.0.0.1:{port}" for name, port in INSTANCES.items())
        (self.work / "haproxy.cfg").write_text(HAPROXY.format(work=self.work, api=servers))
        self.start_program("haproxy", "haproxy", "-db", "-f", str(self.work / "haproxy.cfg"))
        self.load_day()
        for name in INSTANCES:
            self.start_api(name)
        symbols = self.sql("select symbol from read_g1.stocks order by symbol limit 20").split()
        self.calls = Calls(BALANCER, INSTANCES, list(self.emails), symbols, RATE)
        self.calls.start()
        self.began = time.monotonic()
        until("calls are answered", 60, lambda: len(self.calls.good) > RATE)

    def stop(self) -> None:
        for program in self.programs.values():
            program.kill()
        for cluster in (self.accounts, self.cluster):
            cluster.stop()
        disconnect_bridge()

    def wait_until_whole(self) -> None:
        for cluster in (self.cluster, self.accounts):
            cluster.wait_until_whole()

    def run(self, *command: str, limit: float = 240) -> str:
        done = subprocess.run([str(PROGRAMS / command[0]), *command[1:]], env=self.environment, capture_output=True, text=True, timeout=limit)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start_program(self, name: str, *command: str, **extra: str) -> None:
        log = (self.work / f"{name}.log").open("ab")
        self.programs[name] = subprocess.Popen(command, env={**self.environment, **extra}, stdout=log, stderr=log)

    def start_projector(self, name: str) -> None:
        self.start_program(name, str(PROGRAMS / "projector"), "run")

    def start_api(self, name: str) -> None:
        # One reads from standbys, one reaches its database through the balancer.
        extra = {
            "api1": {"DATABASE_READ_URLS": url("dds_api", attributes="read-only")},
            "api2": {"API_DATABASE_URL": f"postgres://dds_api@127.0.0.1:{BALANCED_DATABASE}/{DATABASE}"},
        }.get(name, {})
        self.start_program(name, str(PROGRAMS / "api"), "serve", "--listen", f"127.0.0.1:{INSTANCES[name]}", **extra)
        until(f"{name} is ready", 60, lambda: sh("curl", "-sf", "-m", "2", f"http://127.0.0.1:{INSTANCES[name]}/readyz"))

    def stop_program(self, name: str) -> None:
        self.programs[name].terminate()
        self.programs[name].wait(60)

    def load_day(self) -> None:
        """One more day of prices, under whatever is wrong now."""
        date = time.strftime("%Y-%m-%d", time.gmtime(1577836800 + self.rows * 86400))
        feed = self.work / f"prices-{self.rows}.csv"
        feed.write_text(f"symbol,date,close\nDRILL,{date},{10 + self.rows}\n")
        self.rows += 1
        until("the log takes a load", 180, lambda: self.run("ingest", "load", str(feed), "--source", "drill") or True)

    def days(self) -> list[str]:
        """Days of the loaded security, by the API."""
        path = f"http://127.0.0.1:{BALANCER}/v1/prices/DRILL?start_date=2020-01-01&limit=1000"
        answer = json.loads(sh("curl", "-sf", "-H", f"X-API-Key: {next(iter(self.emails))}", path))
        return [row["date"] for row in answer["data"]]

    def ask(self, path: str, key: str) -> Outcome:
        """One call through the balancer, besides the load. It is not counted."""
        return asyncio.run(self.calls.ask(path, key))

    def create_key(self, email: str, tier: str) -> str:
        self.run("api", "account", "create", email, "--tier", tier)
        return json.loads(self.run("api", "key", "create", email, "--name", "drill", "--json"))["secret"]

    def revoke_key(self, email: str) -> None:
        self.run("api", "key", "delete", email, "drill")

    def sql(self, query: str) -> str:
        """Runs a query on the database of the accounts if it names their schema, else on that of the market."""
        if "accounts." in query:
            return psql(self.accounts.primary().address, ACCOUNTS_DATABASE, query)
        return psql(self.cluster.primary().address, DATABASE, query)
