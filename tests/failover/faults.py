"""Faults, each with its limit for the seconds without a 200. Each function returns after its fault is healed."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from nodes import IS_RECENT, TTL, Cluster, Node, sh, until
from service import INSTANCES, PROJECTORS, Service

OUTAGE = 45.0
"""Seconds for which a node hangs or is gone: long enough for a failover."""


@dataclass
class Fault:
    """A fault that hurts one part of the system."""

    inflict: Callable[[Service, float], None]
    limit: float
    has_crash: bool = False
    """The primary may lose counts that it did not write yet."""


def switchover(cluster: Cluster, outage: float) -> None:
    first = cluster.primary()

    def switch() -> bool:
        chosen = cluster.synchronous()
        command = ("switchover", "--leader" if IS_RECENT else "--master", first.name, "--candidate", chosen.name if chosen else "", "--force")
        return "Successfully switched over" in sh("patronictl", "-c", str(first.work / "patroni.yml"), *command)

    until("Patroni accepts the switchover", 60, switch)


def kill_postmaster(cluster: Cluster, outage: float) -> None:
    cluster.primary().signal(signal.SIGKILL, "postgres")
    time.sleep(outage / 2)


def lose_node(node: Node, outage: float) -> None:
    node.kill("postgres", *node.programs)
    time.sleep(outage)
    for name in node.programs:
        node.start(name)


def kill_primary_node(cluster: Cluster, outage: float) -> None:
    lose_node(cluster.primary(), outage)


def kill_standby_node(cluster: Cluster, outage: float) -> None:
    lose_node(cluster.standbys()[0], outage)


def hang(node: Node, outage: float) -> None:
    node.signal(signal.SIGSTOP, "patroni", "postgres")
    time.sleep(outage)
    node.signal(signal.SIGCONT, "patroni", "postgres")


def hang_primary(cluster: Cluster, outage: float) -> None:
    hang(cluster.primary(), outage)


def hang_standby(cluster: Cluster, outage: float) -> None:
    hang(cluster.standbys()[0], outage)


def vanish_primary(cluster: Cluster, outage: float) -> None:
    node = cluster.primary()
    node.vanish()
    time.sleep(outage)
    node.reappear()


def take_etcd_away(service: Service, outage: float) -> None:
    for node in service.cluster.nodes:
        node.kill("etcd")
    time.sleep(outage)
    for node in service.cluster.nodes:
        node.start("etcd")


def kill_nats_node(service: Service, outage: float) -> None:
    """Kills the server of a standby's node: together with the primary's node, the log has no quorum."""
    node = service.cluster.standbys()[-1]
    node.kill("nats")
    time.sleep(outage)
    node.start("nats")


def kill_projector(service: Service, outage: float) -> None:
    service.programs[PROJECTORS[0]].kill()
    time.sleep(outage / 3)
    service.start_projector(PROJECTORS[0])


def kill_instance(service: Service, outage: float) -> None:
    name = list(INSTANCES)[-1]
    service.programs[name].kill()
    time.sleep(outage / 3)
    service.start_api(name)


def restart_all(service: Service, outage: float) -> None:
    for name in INSTANCES:
        service.stop_program(name)
        service.start_api(name)
    for name in PROJECTORS:
        service.stop_program(name)
        service.start_projector(name)


# Faults of a database, by their limits.
ON_DATABASE: dict[Callable[[Cluster, float], None], float] = {
    switchover: 2,
    kill_postmaster: TTL + 3,
    kill_primary_node: TTL + 3,
    kill_standby_node: 1,
    hang_primary: TTL + 5,
    hang_standby: 1,
    vanish_primary: TTL + 5,
}
CRASHES = (kill_postmaster, kill_primary_node, hang_primary, vanish_primary)


def on(database: str, strike: Callable[[Cluster, float], None]) -> Callable[[Service, float], None]:
    return lambda service, outage: strike(getattr(service, database), outage)


# Faults of the market's database, and of that of the accounts, which has the counts. They may strike together with other faults.
# Two nodes of three are more than Patroni tolerates.
DATABASE_FAULTS = {
    prefix + strike.__name__: Fault(on(database, strike), limit, has_crash=database == "accounts" and strike in CRASHES)
    for prefix, database in (("", "cluster"), ("accounts_", "accounts"))
    for strike, limit in ON_DATABASE.items()
}
FAULTS = {
    **DATABASE_FAULTS,
    "etcd_away": Fault(take_etcd_away, 1),
    "kill_nats_node": Fault(kill_nats_node, 1),
    "kill_projector": Fault(kill_projector, 1),
    "kill_instance": Fault(kill_instance, 1),
    "restart_all": Fault(restart_all, 1),
}
OTHER_FAULTS = ["kill_nats_node", "kill_projector", "kill_instance"]
PAIRS = [
    ("kill_primary_node", "kill_nats_node"), ("hang_primary", "kill_projector"), ("kill_primary_node", "accounts_hang_primary"),
]  # fmt: skip


def choose(chooser: random.Random) -> tuple[list[str], float]:
    """One fault, or two of different parts, and the seconds that they last."""
    pair = [chooser.choice(list(DATABASE_FAULTS)), chooser.choice(OTHER_FAULTS)]
    names = pair if chooser.random() < 0.5 else [chooser.choice(pair)]
    return names, chooser.uniform(3, OUTAGE)


def limit_of(names: list[str]) -> float:
    return max(FAULTS[name].limit for name in names)


def inflict(service: Service, names: list[str], outage: float) -> None:
    """Inflicts faults at the same time, and returns after all are healed."""
    failures: list[BaseException] = []

    def strike(name: str) -> None:
        try:
            FAULTS[name].inflict(service, outage)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=strike, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
