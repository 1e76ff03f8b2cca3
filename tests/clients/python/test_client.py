"""The Python client against the running service."""

import asyncio
import inspect
import time
from decimal import Decimal
from typing import Any

import dds_client
import pytest
from conftest import Relay
from dds_client import AsyncClient, BrokenAnswer, Client, Retry, Unreachable, errors, to_dataframe
from msgspec import Struct


def test_a_small_rate_walks_sixty_pages_unaided(slow_key: str) -> None:
    with Client(slow_key) as client:
        began = time.monotonic()
        pages = client.dividends_history_pages(symbols=fifty(), start_date="2022-01-01", limit=5)
        ids = [(row.symbol, row.id) for _, page in zip(range(60), pages) for row in page.data]
    assert len(ids) == len(set(ids)) == 300
    assert time.monotonic() - began > 3, "60 calls of ten at once and ten a second were never refused"


def test_a_small_rate_walks_sixty_pages_awaited(slow_key: str) -> None:
    async def walk() -> int:
        async with AsyncClient(slow_key) as client:
            count = 0
            async for page in client.dividends_history_pages(symbols=fifty(), start_date="2022-01-01", limit=5):
                count += 1
                if count == 60:
                    break
            return count

    assert asyncio.run(walk()) == 60


def fifty() -> list[str]:
    with Client() as client:
        return [row.symbol for row in client.stocks(pays_dividend=True, limit=50).data]


def test_a_page_that_breaks_off_raises_and_is_not_asked_again(relay: type[Relay]) -> None:
    between = relay("pass", "cut")
    with Client(url=between.url) as client, pytest.raises(BrokenAnswer):
        list(client.stocks_pages(limit=5).rows())
    assert len(between.calls()) == 2


def test_a_page_that_breaks_off_raises_awaited(relay: type[Relay]) -> None:
    async def walk(url: str) -> None:
        async with AsyncClient(url=url) as client:
            async for _ in client.stocks_pages(limit=5).rows():
                pass

    with pytest.raises(BrokenAnswer):
        asyncio.run(walk(relay("pass", "cut").url))


def test_dropped_and_busy_calls_are_repeated(relay: type[Relay]) -> None:
    between = relay("drop", "busy", "drop")
    with Client(url=between.url) as client:
        began = time.monotonic()
        assert client.stocks(limit=1).data
    assert time.monotonic() - began >= 1, "Retry-After: 1 was not waited for"
    assert len(between.calls()) == 4


def test_patience_ends(relay: type[Relay]) -> None:
    impatient = Retry(attempts=2, base=0.01)
    with Client(url=relay(*["drop"] * 9).url, retry=impatient) as client, pytest.raises(Unreachable):
        client.stocks(limit=1)
    with Client(url=relay(*["busy"] * 9).url, retry=impatient) as client, pytest.raises(errors.ServiceUnavailable):
        client.stocks(limit=1)


def test_an_unchanged_answer_is_asked_for_conditionally(relay: type[Relay]) -> None:
    between = relay()
    with Client(url=between.url) as client:
        assert client.sectors() == client.sectors()
    first, again = between.calls()
    assert first.startswith("first") and again.startswith("again")


def test_later_calls_ask_for_data_that_is_not_older(relay: type[Relay]) -> None:
    between = relay("pass", "lost")
    with Client(url=between.url, kept_answers=0) as client:
        assert client.sectors() == client.sectors() == client.sectors()
    first, refused, without, again = (call.split()[4:] for call in between.calls())
    assert (first, without) == ([], [])
    assert refused == again and refused[0].startswith("g1.")


def test_a_call_may_name_the_oldest_data_that_it_accepts(client: Client) -> None:
    answer = client.sectors()
    version = answer.meta.data_version
    assert client.sectors(min_version=version).data == answer.data
    generation = version.split(".")[0]
    with pytest.raises(errors.VersionNotServed):
        client.sectors(min_version=f"{generation}.999999999.999999999")
    # A refused version is not sent again.
    assert client.sectors().data == answer.data


def test_refusals_have_types(client: Client) -> None:
    with pytest.raises(errors.NotFound, match="NOPE"):
        client.stocks_by_symbol_quote("NOPE")
    with pytest.raises(errors.InvalidParameter) as wrong:
        client.get("/v1/stocks", {"limit": 0})
    assert wrong.value.body["param"] == "limit" and wrong.value.request_id
    with pytest.raises(errors.InvalidCursor):
        client.stocks(cursor="nonsense")
    with Client("dds_live_wrong") as stranger, pytest.raises(errors.InvalidApiKey):
        stranger.stocks()


def test_a_tier_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    with Client(os.environ["KEY_FREE"]) as free, pytest.raises(errors.FeatureNotAvailable) as refused:
        free.bulk_quotes(symbols=["SPY"])
    assert refused.value.body["current_tier"] == "free"
    monkeypatch.delenv("DDS_API_KEY")
    with pytest.raises(errors.MissingKey):
        Client()


# The stream has separate tests.
# A stream, and files of a store, which this stack does not have.
BY_HAND = ("/v1/changes", "/v1/files")


def test_every_operation_is_reachable(client: Client, document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        if path in BY_HAND:
            continue
        [operation] = item.values()
        name = operation["operationId"]
        answer = getattr(client, name)(**arguments(client, operation))
        assert not floats(answer), name
        assert answer.data is not None, name


async def ask_everything(paths: dict[str, Any], client: Client) -> None:
    async with AsyncClient() as awaited:
        for path, item in paths.items():
            if path in BY_HAND:
                continue
            [operation] = item.values()
            name, given = operation["operationId"], arguments(client, operation)
            answer, expected = await getattr(awaited, name)(**given), getattr(client, name)(**given)
            assert path in ("/v1/health", "/v1/status") or answer == expected, name


def test_every_operation_is_reachable_awaited(client: Client, document: dict[str, Any]) -> None:
    asyncio.run(ask_everything(document["paths"], client))


def arguments(client: Client, operation: dict[str, Any]) -> dict[str, Any]:
    """What a call cannot do without."""
    sector = client.sectors(limit=1).data[0].slug
    known = {"symbol": "SPY", "symbols": ["SPY"], "q": "SPY", "sector": sector, "holdings": ["SPY:120"]}
    known |= {"base": "EUR", "quote": "USD"}
    # A list of symbols may be left out only by whoever asks for changes.
    parameters = operation.get("parameters", [])
    needed = [one["name"] for one in parameters if one.get("required") or one["name"] == "symbols"]
    body: dict[str, Any] = {}
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]["example"]
    return body | {name: known[name] for name in needed}


def floats(value: Any) -> bool:
    """Whether a binary float is anywhere in it."""
    match value:
        case Struct():
            return any(floats(getattr(value, name)) for name in value.__struct_fields__)
        case dict():
            return any(map(floats, value.values()))
        case list():
            return any(map(floats, value))
    return isinstance(value, float)


def test_figures_are_exact_in_every_form(client: Client) -> None:
    typed = client.prices_by_symbol("SPY", limit=5).data
    plain = client.get("/v1/prices/SPY", {"limit": 5, "decimals": "string"})["data"]
    assert [str(row.close) for row in typed] == [row["close"] for row in plain]
    assert not floats(client.get("/v1/prices/SPY", {"limit": 5}))
    with pytest.raises(TypeError, match="min_yield is a float"):
        client.screener(min_yield=0.1)  # type: ignore[arg-type]


def test_rows_become_a_data_frame(client: Client) -> None:
    pages = client.stocks_pages(limit=25)
    frame = pages.to_dataframe()
    assert list(frame["symbol"]) == [row.symbol for row in pages.rows()]
    assert {type(price) for price in frame["price"].dropna()} == {Decimal}
    assert frame["price_date"].dtype.kind == "M"
    assert pages.to_dataframe("float64")["price"].dtype == "float64"
    assert pages.to_dataframe("string")["price"].dtype == "string"
    assert "next.ex_date" in to_dataframe(client.bulk_metrics(symbols=["SPY"]).data).columns


def test_a_data_frame_is_indexed_by_day(client: Client) -> None:
    prices = client.prices_by_symbol("SPY", limit=5)
    frame = prices.to_dataframe()
    assert frame.index.name == "date" and frame.index.is_monotonic_decreasing
    assert [day.date() for day in frame.index] == [row.date for row in prices.data]
    assert client.stocks_by_symbol_dividends("SPY", limit=5).to_dataframe().index.name == "ex_date"
    assert client.dividends_ex_dates(limit=5).to_dataframe().index.name in ("event_date", None)
    assert client.stocks(limit=5).to_dataframe().index.name is None


def test_every_method_explains_its_parameters(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        [operation] = item.values()
        if path in BY_HAND:
            continue
        meaning = getattr(Client, operation["operationId"]).__doc__
        for parameter in operation.get("parameters", []):
            if parameter["name"] not in ("fields", "format", "decimals"):
                assert f"\n            {parameter['name']}: " in meaning, (operation["operationId"], parameter["name"])
        assert f">>> client.{operation['operationId']}(" in meaning
    text = inspect.getdoc(Client.dividends_history) or ""
    assert text.startswith("Dividend history") and "Conflicts with `updated_since`" in text


def test_the_user_agent_has_the_version_of_its_own(client: Client) -> None:
    assert client._http.headers["user-agent"].startswith(f"dds-python/{dds_client.__version__} ")


def test_a_stream_goes_on_after_lost_connections(relay: type[Relay]) -> None:
    with Client() as client:
        since = beginning(client)
        everything = list(client.changes(since=since, symbols=fifty()[:2], follow=False))
    between = relay("cut", "drop", "busy", "cut")
    with Client(url=between.url) as client:
        resumed = list(client.changes(since=since, symbols=fifty()[:2], follow=False))
    assert [change.id for change in resumed] == [change.id for change in everything]
    assert {change.kind for change in everything} >= {"dividends", "factors", "statuses"}
    assert len({change.since for change in everything}) == len(everything) > 40


def test_a_stream_is_awaited_and_typed() -> None:
    async def first() -> Any:
        async with AsyncClient() as client:
            with Client() as other:
                since = beginning(other)
            async for change in client.changes(since=since, symbols=fifty()[:1], kinds=["dividends"]):
                return change
            return None

    change = asyncio.run(first())
    assert change.action == "upsert" and isinstance(change.row, dds_client.models.DividendRow)
    assert isinstance(change.row.amount, Decimal)


def test_a_stream_that_is_refused_raises() -> None:
    with Client() as client, pytest.raises(errors.InvalidParameter):
        next(client.changes(since="00000000.1", symbols=["SPY"]))


def beginning(client: Client) -> str:
    """The synchronization point before all changes."""
    since = client.stocks_by_symbol_splits(fifty()[0]).meta.sync_from
    return f"{(since or '').split('.')[0]}.0"
