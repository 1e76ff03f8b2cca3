"""Relations between parameters, which OpenAPI has no words for.

Each is a sentence of a parameter's description. Only requests that are meant to be valid are changed, so that every
one of them has to be accepted; what breaks the rules is the business of the project's own tests.
"""

import datetime
import functools
import json
import os
import random
import urllib.error
import urllib.parse
import urllib.request

import hypothesis
import schemathesis
from schemathesis import GenerationMode

# The newest day of the generated market; `as_of` may not be later than today.
LATEST = "2020-01-01"
LONGEST_WINDOW = datetime.timedelta(days=366)
LONGEST_MARKET = datetime.timedelta(days=30)

# Hypothesis's search for requests that succeed more often ends in an IndexError of its own at times; without targets it
# does not search. Every request is still held against every check.
hypothesis.target = lambda *_, **__: None


# Filters whose values are names in the data, and an endpoint that knows them.
NAMES = {
    "sector": "/v1/screener",
    "industry": "/v1/screener",
    "exchange": "/v1/screener",
    "country": "/v1/screener",
    "index": "/v1/screener",
    "issuer": "/v1/etfs",
    "asset_class": "/v1/etfs",
    "category": "/v1/etfs",
    "strategy": "/v1/etfs",
}
# What conflicts with a request for changes.
FILTERS = (
    "known_at", "data_version", "start_date", "end_date", "type", "status", "include_projected", "sort",
    "declared_from", "declared_to", "record_from", "record_to", "currency",
)
RECEIVED = "/v1/portfolio/dividends"
# Purchases of a security that is known. What a transaction may have is the business of the project's own tests.
TRANSACTIONS = {"transactions": [{"account": "a", "symbol": "SPY", "date": "2019-01-02", "quantity": "10.5"}]}
TRANSACTIONS_CSV = "account,symbol,date,quantity\na,SPY,2019-01-02,10.5\n"


@schemathesis.hook
def map_case(context, case):
    if case.meta and case.meta.generation.mode == GenerationMode.POSITIVE:
        case.query = case.query or {}
        make_valid(case.path, case.query)
        if case.path == RECEIVED:
            case.body = TRANSACTIONS if case.media_type == "application/json" else TRANSACTIONS_CSV
    return case


def make_valid(path, query):
    if path == "/v1/changes":
        # A stream has no end otherwise.
        query["follow"] = "false"
        if "since" in query:
            query["since"] = sync_from()
    keep_relations(path, query)
    draw_names(query)
    ask_for_changes(path, query)


def answer(path, **query):
    """The body of an answer of the stack, refusals included."""
    url = f"{os.environ['DDS_API_URL']}{path}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {os.environ['DDS_API_KEY']}"})
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


@functools.cache
def known(name):
    """Values of a filter that the data has: a refusal lists those nearest to the word that was refused."""
    return answer(NAMES[name], **{name: "nothing has this name"}).get("allowed") or []


@functools.cache
def data_version():
    """An earlier version, whose answers are derived again; the current one if there is no other."""
    current = answer("/v1/stocks/SPY/splits")["meta"]["data_version"]
    generation, sequence = current.split(".")[:2]
    for earlier in range(int(sequence) - 1, 0, -1):
        version = f"{generation}.{earlier}"
        if "data" in answer("/v1/stocks/SPY/quote", data_version=version):
            return version
    return current


@functools.cache
def sync_from():
    return answer("/v1/stocks/SPY/splits")["meta"]["sync_from"]


def draw_names(query):
    for name in NAMES.keys() & query.keys():
        values = known(name)
        if values:
            query[name] = ",".join(random.Random(str(query[name])).choices(values, k=2))
        else:
            del query[name]


def ask_for_changes(path, query):
    if "updated_since" in query:
        query["updated_since"] = sync_from()
        for name in FILTERS:
            query.pop(name, None)
    if path == "/v1/dividends/history" and "updated_since" not in query:
        query.setdefault("symbols", "SPY")
    if path == "/v1/bulk/dividends" and "fields" in query:
        # The fields of both formats are documented; only the symbol is one of both.
        query["fields"] = "symbol"


def keep_relations(path, query):
    # A cursor and a version come from an earlier response. The service refuses a version that it never had.
    query.pop("cursor", None)
    query.pop("min_version", None)
    if "data_version" in query:
        query["data_version"] = data_version()
        query.pop("known_at", None)
    if "known_at" in query:
        # Its pattern also fits dates that no calendar has.
        query["known_at"] = "2030-01-01"
    if "pays_dividend" in query:
        query.pop("has_dividends", None)
    for low in [name for name in query if name.startswith("min_")]:
        order(query, low, "max_" + low.removeprefix("min_"), number)
    order(query, "start_date", "end_date", str)
    order(query, "ex_date_from", "ex_date_to", str)
    order(query, "declared_from", "declared_to", str)
    order(query, "record_from", "record_to", str)
    if "range" in query:
        query.pop("start_date", None)
        query.pop("end_date", None)
    if path == "/v1/bulk/prices":
        if "date" in query:
            query.pop("start_date", None)
            query.pop("end_date", None)
        keep_window(query, LONGEST_MARKET)
        if "data_version" in query or "known_at" in query:
            query["symbols"] = "SPY"
    if "sort" in query:
        query["sort"] = first_of_each_key(query["sort"])
    if "tax" in query:
        query["tax"] = "US:15,*:0"
    if path.endswith("/metrics/history") and "start_date" in query:
        # At most 600 points.
        query["start_date"] = max(query["start_date"], "2000-01-01")
        order(query, "start_date", "end_date", str)
    if path.endswith("/metrics") and "as_of" in query:
        query["as_of"] = min(query["as_of"], LATEST)
    if path in ("/v1/dividends/calendar", "/v1/dividends/ex-dates", "/v1/dividends/payment-dates"):
        keep_window(query, LONGEST_WINDOW)


def order(query, low, high, key):
    if low in query and high in query:
        query[low], query[high] = sorted((query[low], query[high]), key=key)


def number(value):
    return float(value)


def first_of_each_key(sort):
    keys = sort if isinstance(sort, list) else sort.split(",")
    chosen = {}
    for key in keys:
        chosen.setdefault(key.rsplit(".", 1)[0], key)
    return list(chosen.values()) if isinstance(sort, list) else ",".join(chosen.values())


def keep_window(query, longest):
    """The window begins today unless it is told, and has a longest length."""
    if "end_date" in query:
        end = datetime.date.fromisoformat(query["end_date"])
        start = datetime.date.fromisoformat(query.get("start_date", query["end_date"]))
        query["start_date"] = max(start, end - longest if end.year > 1 else start).isoformat()


@schemathesis.hook
def filter_case(context, case):
    """A list of symbols is limited in different ones: one that repeats itself is not as long as it looks."""
    symbols = (case.query or {}).get("symbols", [])
    items = symbols.split(",") if isinstance(symbols, str) else symbols
    return not isinstance(items, list) or len(set(map(str, items))) == len(items)
