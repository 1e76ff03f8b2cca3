"""Relations between parameters, which OpenAPI has no words for.

Each is a sentence of a parameter's description. Only requests that are meant to be valid are changed, so that every
one of them has to be accepted; what breaks the rules is the business of the project's own tests.
"""

import datetime

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


@schemathesis.hook
def map_case(context, case):
    if case.meta and case.meta.generation.mode == GenerationMode.POSITIVE and case.query:
        keep_relations(case.path, case.query)
    return case


@schemathesis.hook
def before_add_examples(context, examples):
    """The document has an example of every parameter; some exclude each other."""
    for case in examples:
        if case.query:
            keep_relations(case.path, case.query)


def keep_relations(path, query):
    # A cursor is what the page before gave: nobody can make one up.
    query.pop("cursor", None)
    for low in [name for name in query if name.startswith("min_")]:
        order(query, low, "max_" + low.removeprefix("min_"), number)
    order(query, "start_date", "end_date", str)
    order(query, "ex_date_from", "ex_date_to", str)
    if "range" in query:
        query.pop("start_date", None)
        query.pop("end_date", None)
    if path == "/v1/bulk/prices":
        if "date" in query:
            query.pop("start_date", None)
            query.pop("end_date", None)
        keep_window(query, LONGEST_MARKET)
    if "sort" in query:
        query["sort"] = first_of_each_key(query["sort"])
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
