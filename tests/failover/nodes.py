"""Clusters of three nodes. A node is a network namespace with Patroni and Postgres. Those of the market also have etcd and NATS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any, Callable

COUNT = 3
TTL = 20
BRIDGE = "ddsbr"
ETCD = "10.77.0.11:2379"
REPAIRS = 6
PATRONI = shutil.which("patroni") or "patroni"
IS_RECENT = int(subprocess.run([PATRONI, "--version"], capture_output=True, text=True, check=True).stdout.split()[1].split(".")[0]) >= 4
"""Patroni 4 compares the leader key with etcd's API v3. Patroni 3.0.2 does not: a primary that hung takes over again."""
WITHIN_BRIDGE = ("-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT")


def sh(*command: str, check: bool = True) -> str:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        if check:
            raise
        return ""
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def until(what: str, limit: float, attempt: Callable[[], Any]) -> Any:
    """The first true result of `attempt`."""
    end, reason = time.monotonic() + limit, "not so"
    while time.monotonic() < end:
        try:
            if found := attempt():
                return found
        except Exception as error:  # noqa: BLE001
            reason = str(error)
        time.sleep(0.2)
    raise RuntimeError(f"{what}: not within {limit} s: {reason}")


class Node:
    """One machine: its address, its processes, its data."""

    def __init__(self, number: int, scope: str, programs: tuple[str, ...], work: Path) -> None:
        self.name, self.address = f"node{number}", f"10.77.0.1{number}"
        self.scope, self.programs = scope, programs
        self.space, self.link = f"dds{number}", f"ddsv{number}"
        self.work = work / self.name
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.work.mkdir(parents=True)
        self.work.chmod(0o755)

    def connect(self) -> None:
        sh("ip", "netns", "add", self.space)
        sh("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        sh("ip", "link", "set", self.link, "master", BRIDGE, "up")
        for command in (f"addr add {self.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            sh("ip", "-n", self.space, *command.split())

    def disconnect(self) -> None:
        sh("ip", "netns", "del", self.space, check=False)
        sh("ip", "link", "del", self.link, check=False)

    def vanish(self) -> None:
        """Packets to and from the node are lost. No peer gets an error."""
        sh("ip", "link", "set", self.link, "nomaster")

    def reappear(self) -> None:
        sh("ip", "link", "set", self.link, "master", BRIDGE)

    def start(self, name: str) -> None:
        # Only the command of this program: making one writes the configuration that another program may be reading.
        command = {"etcd": self.etcd, "nats": self.nats, "patroni": self.patroni}[name]()
        user = "postgres" if name == "patroni" else "root"
        log = (self.work / f"{name}.log").open("ab")
        prefix = ["ip", "netns", "exec", self.space]
        if user != "root":
            prefix += ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        self.processes[name] = subprocess.Popen([*prefix, *command], stdout=log, stderr=log, start_new_session=True)

    def pids(self, name: str) -> list[int]:
        """The process and everything below it."""
        if (started := self.processes.get(name)) is None or started.poll() is not None:
            return []
        found, rest = [], [started.pid]
        while rest:
            found.append(parent := rest.pop())
            children = Path(f"/proc/{parent}/task/{parent}/children")
            rest += [int(child) for child in children.read_text().split()] if children.exists() else []
        return found

    def postgres_pids(self) -> list[int]:
        """Postmaster and sessions. Patroni starts the postmaster as a process of its own."""
        postmaster = self.work / "pg" / "postmaster.pid"
        if not postmaster.exists():
            return []
        first = int(postmaster.read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children")
        return [first, *(int(child) for child in children.read_text().split())] if children.exists() else []

    def signal(self, number: signal.Signals, *names: str) -> None:
        for name in names:
            for pid in self.postgres_pids() if name == "postgres" else self.pids(name):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass

    def kill(self, *names: str) -> None:
        """As a power cut would."""
        self.signal(signal.SIGKILL, *names)
        for name in names:
            if started := self.processes.pop(name, None):
                started.wait()

    def etcd(self) -> list[str]:
        url = f"http://{self.address}"
        peers = ",".join(f"node{n}=http://10.77.0.1{n}:2380" for n in range(1, COUNT + 1))
        return [
            "etcd", "--name", self.name, "--data-dir", str(self.work / "etcd"), "--initial-cluster", peers,
            # A new leader of etcd renews the lease of a primary that is gone, so its election is part of a failover.
            "--heartbeat-interval", "50", "--election-timeout", "500",
            *([] if IS_RECENT else ["--enable-v2"]),
            "--listen-client-urls", f"{url}:2379", "--advertise-client-urls", f"{url}:2379",
            "--listen-peer-urls", f"{url}:2380", "--initial-advertise-peer-urls", f"{url}:2380",
        ]  # fmt: skip

    def nats(self) -> list[str]:
        routes = ", ".join(f'"nats://10.77.0.1{n}:6222"' for n in range(1, COUNT + 1))
        config = self.work / "nats.conf"
        config.write_text(
            f'server_name: {self.name}\nmax_payload: 8MB\nlisten: "{self.address}:4222"\n'
            f'jetstream {{ store_dir: "{self.work}/nats", sync_interval: always }}\n'
            f'cluster {{ name: dividends, listen: "{self.address}:6222", routes: [{routes}] }}\n'
        )
        return [os.environ["NATS_SERVER"], "--config", str(config)]

    def patroni(self) -> list[str]:
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        access = ["local all all trust", "host all all 10.77.0.0/24 trust", "host replication all 10.77.0.0/24 trust"]
        dcs = {
            "ttl": TTL, "loop_wait": 5, "retry_timeout": 5, "maximum_lag_on_failover": 1048576,
            "primary_stop_timeout": 10, "synchronous_mode": True, "synchronous_mode_strict": True, "failsafe_mode": True,
            "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 200, "wal_keep_size": "512MB", "wal_log_hints": "on"}},
        }  # fmt: skip
        config = {
            "scope": self.scope, "name": self.name,
            "restapi": {"listen": f"{self.address}:8008", "connect_address": f"{self.address}:8008"},
            "etcd3" if IS_RECENT else "etcd": {"hosts": [f"10.77.0.1{n}:2379" for n in range(1, COUNT + 1)]},
            "bootstrap": {"dcs": dcs, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"], "pg_hba": access},
            "postgresql": {
                "listen": f"{self.address}:5432", "connect_address": f"{self.address}:5432",
                "data_dir": str(self.work / "pg"), "bin_dir": str(binaries), "pgpass": str(self.work / "pgpass"), "pg_hba": access,
                "authentication": {"superuser": {"username": "postgres", "password": "p"}, "replication": {"username": "replicator", "password": "p"}, "rewind": {"username": "postgres", "password": "p"}},
                "parameters": {"unix_socket_directories": str(self.work)},
            },
        }  # fmt: skip
        path = self.work / "patroni.yml"
        # YAML contains JSON.
        path.write_text(json.dumps(config))
        shutil.chown(self.work, "postgres", "postgres")
        return [PATRONI, str(path)]

    def role(self) -> str | None:
        """Role by Patroni's word; None without an answer."""
        answer = self.probe("/patroni")
        return answer["role"] if answer and answer["state"] == "running" else None

    def probe(self, path: str) -> Any:
        """Body of Patroni's answer; None unless it is a success."""
        try:
            with urllib.request.urlopen(f"http://{self.address}:8008{path}", timeout=2) as answer:
                return json.load(answer)
        except OSError:
            return None


def connect_bridge() -> None:
    sh("ip", "link", "add", BRIDGE, "type", "bridge")
    sh("ip", "addr", "add", "10.77.0.1/24", "dev", BRIDGE)
    sh("ip", "link", "set", BRIDGE, "up")
    # A Docker engine drops packets between ports of every bridge.
    sh("iptables", "-I", "FORWARD", *WITHIN_BRIDGE, check=False)


def disconnect_bridge() -> None:
    sh("iptables", "-D", "FORWARD", *WITHIN_BRIDGE, check=False)
    sh("ip", "link", "del", BRIDGE, check=False)


class Cluster:
    """Nodes with one database."""

    def __init__(self, scope: str, first: int, programs: tuple[str, ...], work: Path) -> None:
        self.scope = scope
        self.nodes = [Node(number, scope, programs, work) for number in range(first, first + COUNT)]
        self.repairs: list[str] = []

    def start(self) -> None:
        for node in self.nodes:
            node.connect()
        for name in self.nodes[0].programs:
            for node in self.nodes:
                node.start(name)
        self.wait_until_whole()

    def stop(self) -> None:
        for node in self.nodes:
            node.signal(signal.SIGCONT, "postgres", *node.programs)
            node.kill("postgres", *node.programs)
            node.disconnect()

    def primary(self) -> Node:
        """The node that Patroni calls master or primary."""
        return until("a primary exists", 120, lambda: next((n for n in self.nodes if n.role() in ("master", "primary")), None))

    def standbys(self) -> list[Node]:
        first = self.primary()
        return [node for node in self.nodes if node is not first]

    def wait_until_whole(self) -> None:
        """One primary, the others replicas, one of them synchronous. An operator repairs what does not heal by itself."""
        for _ in range(REPAIRS):
            try:
                until("the cluster is whole", 60, self.is_whole)
                return
            except RuntimeError:
                self.repair()
        until("the cluster is whole", 60, self.is_whole)

    def is_whole(self) -> bool:
        roles = sorted(node.role() or "" for node in self.nodes)
        return roles in (["master", "replica", "replica"], ["primary", "replica", "replica"]) and self.synchronous() is not None

    def repair(self) -> None:
        """Reseeds members that do not replicate. If all do, no standby is synchronous because of a stale key."""
        primary = self.primary()
        lost = [node for node in self.nodes if node is not primary and not self.is_streaming(node)]
        for node in lost:
            # A reseed may be running already.
            sh("patronictl", "-c", str(primary.work / "patroni.yml"), "reinit", self.scope, node.name, "--force", check=False)
            self.repairs.append(f"{node.name} reseeded")
        if not lost:
            if IS_RECENT:
                raise RuntimeError("all standbys replicate, and none is synchronous")
            key = f"http://{ETCD}/v2/keys/service/{self.scope}/sync"
            urllib.request.urlopen(urllib.request.Request(key, method="DELETE"), timeout=5).close()
            self.repairs.append("key of the synchronous standby deleted")

    def is_streaming(self, node: Node) -> bool:
        query = f"select count(*) from pg_stat_replication where application_name = '{node.name}' and state = 'streaming'"
        return psql(self.primary().address, "postgres", query).strip() == "1"

    def synchronous(self) -> Node | None:
        """Standby that Patroni would promote."""
        return next((node for node in self.nodes if node.probe("/synchronous")), None)


def psql(address: str, database: str, query: str) -> str:
    url = f"postgres://postgres@{address}:5432/{database}?connect_timeout=3"
    return sh("psql", "-X", "-At", "-c", query, url)
