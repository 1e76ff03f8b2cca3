"""The running stack, as tests/with-stack exports it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dds_client import Client

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    return json.loads((ROOT / "api/openapi.json").read_text())


@pytest.fixture
def slow_key() -> str:
    """A key that has ten calls at once and ten a second: small enough to be refused, fast enough to wait for."""
    sql("update accounts.tiers set rate_per_minute = 600, burst = 10 where tier = 'starter'")
    return os.environ["KEY_STARTER"]


def sql(statement: str) -> None:
    subprocess.run([os.environ["PSQL"], "--quiet", os.environ["DATABASE_URL"], "--command", statement], check=True)


class Relay:
    """The service behind a relay that fails as told."""

    def __init__(self, *faults: str) -> None:
        script = ROOT / "tests/clients/relay.py"
        command = [sys.executable, str(script), os.environ["DDS_API_URL"], *faults]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()

    def calls(self) -> list[str]:
        """What was asked, once nothing more is."""
        self.process.terminate()
        assert self.process.stdout
        return self.process.stdout.read().splitlines()


@pytest.fixture
def relay() -> Iterator[type[Relay]]:
    started: list[Relay] = []

    class Started(Relay):
        def __init__(self, *faults: str) -> None:
            super().__init__(*faults)
            started.append(self)

    yield Started
    for one in started:
        one.process.terminate()
        one.process.wait()
