"""What an API, a projector and a load tell a collector of traces; see `traces`, which sets the stage."""

import http.server
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROGRAMS = pathlib.Path(os.environ["PROGRAMS"])
KEY = os.environ["DDS_API_KEY"]
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "Bearer of-the-collector"


class Collector(http.server.BaseHTTPRequestHandler):
    spans = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        assert (self.path, self.headers["authorization"]) == ("/v1/traces", SECRET), self.path
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.put((service, span))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def told(service):
    """The spans of a service that were sent up to now, by name."""
    found = {}
    while not Collector.spans.empty():
        sender, span = Collector.spans.get()
        assert sender == service, sender
        found.setdefault(span.name, []).append(span)
    return found


def attributes(span):
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def run(program, *arguments, endpoint, **variables):
    environment = {
        **os.environ,
        **variables,
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + urllib.parse.quote(SECRET),
        "RUST_LOG": "info",
    }
    return subprocess.Popen(
        [PROGRAMS / program, *arguments], env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def ended(process):
    """Ends a program, and gives what it logged."""
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    assert "of-the-collector" not in log, log
    return log


def get(url, **headers):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers


def api(endpoint):
    process = run("api", "serve", endpoint=endpoint, API_LISTEN="127.0.0.1:18093")
    begun = time.monotonic()
    while time.monotonic() - begun < 30:
        try:
            urllib.request.urlopen("http://127.0.0.1:18093/v1/health", timeout=5).close()
            return process
        except OSError:
            time.sleep(0.1)
    raise SystemExit(ended(process))


collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=collector.serve_forever, daemon=True).start()
ENDPOINT = f"http://127.0.0.1:{collector.server_port}"

process = api(ENDPOINT)
status, headers = get(
    "http://127.0.0.1:18093/v1/stocks/NOSUCH/quote?secret=s3cret", traceparent=f"00-{TRACE}-{CALLER}-01"
)
assert status in (400, 404), status
get("http://127.0.0.1:18093/v1/stocks?limit=1")
ended(process)
spans = told("dds-api")
(quote,) = spans["GET /v1/stocks/{symbol}/quote"]
assert (quote.trace_id.hex(), quote.parent_span_id.hex()) == (TRACE, CALLER), quote
assert quote.kind == quote.SPAN_KIND_SERVER and quote.end_time_unix_nano > quote.start_time_unix_nano, quote
facts = attributes(quote)
assert facts["http.response.status_code"] == status and facts["http.request.method"] == "GET", facts
assert facts["request_id"] == headers["x-request-id"] == TRACE, facts
(listed,) = spans["GET /v1/stocks"]
assert listed.trace_id.hex() != TRACE and not listed.parent_span_id, listed
assert attributes(listed)["http.response.status_code"] == 200, listed
assert spans["admission"], spans.keys()
everything = repr(spans)
assert not [word for word in ("NOSUCH", "s3cret", KEY) if word in everything], everything
print("one span a request, in its caller's trace; nothing that clients write is in one")

process = api("http://127.0.0.1:1")
begun = time.monotonic()
assert get("http://127.0.0.1:18093/v1/stocks?limit=1")[0] == 200
assert time.monotonic() - begun < 2
log = ended(process)
assert "127.0.0.1:1" in log or "not sent" in log, log
print("a collector that is away delays nobody, and the log tells")

# The stack's projector holds its database's lease: another one folds the same log into a database of its own.
subprocess.run([os.environ["PSQL"], "--quiet", os.environ["DATABASE_URL"], "--command", "create database traced"], check=True)
urls = {
    name: urllib.parse.urlsplit(os.environ[name])._replace(path="/traced").geturl()
    for name in ("DATABASE_URL", "PROJECTOR_DATABASE_URL")
}
subprocess.run([PROGRAMS / "projector", "migrate"], env={**os.environ, **urls}, check=True)
process = run("projector", "run", "--until-caught-up", endpoint=ENDPOINT, **urls)
_, log = process.communicate(timeout=300)
assert process.returncode == 0, log
batches = told("dds-projector")["batch"]
facts = [attributes(batch) for batch in batches]
assert all(each["messages"] > 0 and each["sequence"] > 0 for each in facts), facts
assert max(each["sequence"] for each in facts) >= sum(each["messages"] for each in facts), facts
print(f"one span a batch: {len(batches)}")

feed = pathlib.Path(os.environ["STACK_DIR"]) / "prices.csv"
feed.write_text("symbol,date,close\nTRACED,2020-01-02,10\n")
process = run("ingest", "load", str(feed), "--source", "traces", endpoint=ENDPOINT)
_, log = process.communicate(timeout=60)
assert process.returncode == 0, log
(load,) = told("dds-ingest")["load"]
assert attributes(load)["source"] == "traces" and len(attributes(load)["run"]) == 32, load
print("one span a load")
