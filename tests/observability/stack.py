"""Rules and board against a running stack; see `run`, which sets the stage."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import jsonschema
import yaml

HERE = Path(__file__).parent
COMPOSE = HERE.parent.parent / ".compose"
PROGRAMS = Path(os.environ["PROGRAMS"]).resolve()
ALERTS_WITHIN = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(command, log, **variables):
    environment = {**os.environ, **variables}
    # Its folder is one that a program run as another user can reach.
    return subprocess.Popen(
        [str(word) for word in command], stdout=log, stderr=log, env=environment, start_new_session=True
    )


def get(url, key=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as refused:
        return refused.read()


class Prometheus:
    def __init__(self, url):
        self.url = url

    def ask(self, path, **parameters):
        answer = json.loads(get(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))
        if answer["status"] != "success":
            raise RuntimeError(f"{parameters}: {answer.get('error')}")
        return answer["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def firing(self):
        return {
            (alert["labels"]["alertname"], alert["labels"].get("instance") or alert["labels"].get("server"))
            for alert in self.ask("alerts")["alerts"]
            if alert["state"] == "firing"
        }


def wait(what, seconds, is_so):
    """Waits until something is so, and says how long that took."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if is_so():
            return time.monotonic() - begun
        time.sleep(0.5)
    sys.exit(f"not within {seconds} s: {what}")


def targets(configuration, addresses):
    """The configuration as compose.yaml has it, with this stack's addresses."""
    for job in configuration["scrape_configs"]:
        job.pop("dns_sd_configs", None)
        job["static_configs"] = [{"targets": addresses[job["job_name"]]}]
    return configuration


def always_an_answer(expression):
    """The expression with comparisons that give 0 or 1, so that it has an answer whenever its operands have."""
    return re.sub(r" (==|!=|<=|>=|<|>) ", r" \1 bool ", expression)


def expressions():
    rules = yaml.safe_load((COMPOSE / "alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield f"alert {rule['alert']}", always_an_answer(rule["expr"])
    board = json.loads((COMPOSE / "board.json").read_text())
    jsonschema.Draft202012Validator(json.loads((HERE / "board.schema.json").read_text())).validate(board)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)), "panels share an id"
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["expr"]


def send_calls():
    url, key = os.environ["DDS_API_URL"], os.environ["DDS_API_KEY"]
    for path in ["/v1/stocks?limit=5", "/v1/stocks?limit=6", "/v1/sectors", "/v1/nothing"] * 5:
        get(f"{url}{path}", key)


def process_at(address):
    """The process that listens at host:port."""
    port = address.rsplit(":", 1)[1]
    listed = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=True)
    return int(re.search(r"pid=(\d+)", listed.stdout).group(1))


def main():
    work = Path(tempfile.mkdtemp(prefix="observability-"))
    log = (work / "log").open("w")
    ports = {name: free_port() for name in ["prometheus", "node", "api", "api_public", "projector", "watch"]}
    at = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    (work / "in").mkdir()
    running = {
        "node": start(["prometheus-node-exporter", f"--web.listen-address={at['node']}"], log),
        "api": start(
            [PROGRAMS / "api", "serve", "--listen", at["api_public"]], log,
            METRICS_LISTEN=at["api"], CURSOR_SECRET="0" * 64,
        ),
        "projector": start([PROGRAMS / "projector", "run"], log, METRICS_LISTEN=at["projector"]),
        "watch": start(
            [PROGRAMS / "ingest", "watch", work / "in", "--source", "watched"], log, METRICS_LISTEN=at["watch"]
        ),
    }
    addresses = {
        "api": [os.environ["API_METRICS"], at["api"]],
        "projector": [os.environ["PROJECTOR_METRICS"], at["projector"]],
        "ingest": [at["watch"]],
        "node": [at["node"]],
    }
    configuration = targets(yaml.safe_load((COMPOSE / "prometheus.yml").read_text()), addresses)
    (work / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    (work / "alerts.yml").write_text((COMPOSE / "alerts.yml").read_text())
    running["prometheus"] = start(
        ["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
         f"--web.listen-address={at['prometheus']}"], log,
    )
    try:
        check(Prometheus(f"http://{at['prometheus']}"), running, addresses, at)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def check(prometheus, running, addresses, at):
    def all_up():
        try:
            answer = prometheus.query("sum(up)")
        except (OSError, RuntimeError):
            return False
        return answer and float(answer[0]["value"][1]) == sum(map(len, addresses.values()))

    wait("every program is scraped", 60, all_up)
    send_calls()
    pending = dict.fromkeys(expressions())

    def all_answered():
        for name, expression in list(pending):
            if prometheus.query(expression):
                del pending[name, expression]
        return not pending

    count = len(pending)
    begun = time.monotonic()
    while not all_answered():
        send_calls()
        if time.monotonic() - begun > 90:
            sys.exit("no data:\n" + "\n".join(f"{name}: {expression}" for name, expression in pending))
        time.sleep(5)
    print(f"{count} expressions of rules and panels return data")

    at_rest = prometheus.firing()
    assert not {name for name, _ in at_rest} & {"ProgramDown", "ServerDown", "NobodyProjects"}, at_rest
    for name in ["api", "projector", "watch"]:
        running[name].kill()
        taken = wait(f"ProgramDown for {name}", ALERTS_WITHIN, lambda: ("ProgramDown", at[name]) in prometheus.firing())
        print(f"{name} killed: alert after {taken:.0f} s")
    nats = process_at(os.environ["NATS_URL"])
    os.kill(nats, signal.SIGKILL)
    taken = wait("ServerDown for nats", ALERTS_WITHIN, lambda: ("ServerDown", "nats") in prometheus.firing())
    print(f"nats killed: alert after {taken:.0f} s")


main()
