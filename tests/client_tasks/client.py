"""The tasks with the Python client."""

from decimal import Decimal
from typing import Any

from dds_client import Client
from dds_client.models import CalendarRow

client = Client()


def portfolio_value(given: Any) -> Any:
    quotes = client.bulk_quotes(symbols=list(given["portfolio"])).data
    values = {quote.symbol: (quote.price or 0) * given["portfolio"][quote.symbol] for quote in quotes}
    return [values, sum(values.values())]


def next_payments(given: Any) -> Any:
    return {row.symbol: [row.payment_date, row.amount] for row in reversed(payments(given))}


def income_of_twelve_months(given: Any) -> Any:
    months: dict[str, dict[str, Decimal]] = {}
    for row in payments(given):
        month = months.setdefault(f"{row.event_date:%Y-%m}", {"declared": Decimal(0), "estimated": Decimal(0)})
        month[row.amount_status] += (row.amount or 0) * given["portfolio"][row.symbol]
    return months


def payments(given: Any) -> list[CalendarRow]:
    return client.dividends_payment_dates(
        symbols=list(given["portfolio"]),
        start_date=given["today"],
        end_date=given["in_a_year"],
        include_projected=True,
        limit=500,
    ).data


def ex_dates_of_two_weeks(given: Any) -> Any:
    rows = client.dividends_ex_dates(start_date=given["today"], end_date=given["in_two_weeks"], limit=500).data
    return [[row.symbol, row.ex_date, row.amount] for row in rows]


def ten_years_for_fifty(given: Any) -> Any:
    pages = client.dividends_history_pages(symbols=given["fifty"], start_date=given["ten_years_ago"], limit=1000)
    return [[row.symbol, row.ex_date, row.adjusted_amount] for row in pages.rows()]


def bulk_of_fifty(given: Any) -> Any:
    data = client.bulk_dividends(symbols=given["fifty"], per_symbol=20).data
    return {one.symbol: [row.amount for row in one.dividends] for one in data}


def screener_walked(given: Any) -> Any:
    walked = list(client.screener_pages(min_yield=2, limit=5).rows())
    assert walked == client.screener(min_yield=2, limit=1000).data
    return [row.symbol for row in walked]


def best_of_a_sector(given: Any) -> Any:
    rows = client.screener(sector=given["sector"], sort="dividend_yield.desc", limit=5).data
    return [[row.symbol, row.dividend_yield] for row in rows]


def steady_growers(given: Any) -> Any:
    rows = client.screener(min_streak=5, max_payout_ratio=80, limit=1000).data
    return [[row.symbol, row.increase_streak_years, row.payout_ratio] for row in rows]


def dividend_kings(given: Any) -> Any:
    return [row.symbol for row in client.screener_dividend_kings(limit=500).data]


def market_of_today(given: Any) -> Any:
    frame = client.bulk_prices_pages(limit=10_000).to_dataframe()
    return frame[["symbol", "close", "volume"]].to_numpy().tolist()


def chart_of_ten_years(given: Any) -> Any:
    rows = client.prices_by_symbol("SPY", range="10y", adjustment="all", sort="date.asc", limit=5000).data
    return [[row.date, row.close] for row in rows]


def return_of_a_year(given: Any) -> Any:
    return client.prices_by_symbol("SPY", range="1y", limit=1).meta.total_return


def four_side_by_side(given: Any) -> Any:
    answer = client.compare(symbols=given["fifty"][:4])
    rows = [[one.symbol, one.quote.price, one.metrics.dividend_yield] for one in answer.data]
    return [rows, answer.meta.best]


def found_by_name(given: Any) -> Any:
    found = client.search(q=given["name"], limit=1).data[0]
    return client.stocks_by_symbol_quote(found.symbol).data.price


def look_through(given: Any) -> Any:
    rows = client.etfs_by_symbol_holdings("SPY", limit=500).data
    return [[row.symbol, row.weight, row.yield_contribution] for row in rows]


def figure_explained(given: Any) -> Any:
    explanation = client.stocks_by_symbol_metrics("SPY", explain=True).data.explanation
    return [[one.rule, one.formula] for one in explanation.metrics if one.metric == "dividend_yield"]


def sectors_at_a_glance(given: Any) -> Any:
    return {row.sector: row.median_yield for row in client.sectors().data}


def typing_error_found(given: Any) -> Any:
    answer = client.stocks(symbols=["SPY", "SPYY", "NOPE"], limit=100)
    return [warning.code for warning in answer.meta.warnings]


def yield_as_known_then(given: Any) -> Any:
    return client.stocks_by_symbol_metrics("SPY", as_of=given["two_years_ago"]).data.dividend_yield


def cuts_in_the_portfolio(given: Any) -> Any:
    rows = client.bulk_metrics(symbols=list(given["portfolio"])).data
    return {row.symbol: row.last_cut_date for row in rows}


def unchanged_since(given: Any) -> Any:
    first, again = (client.stocks_by_symbol("SPY").data for _ in range(2))
    assert first == again
    return first.price


def in_step(given: Any, held: Any) -> Any:
    rows, since = held or ({}, None)
    known: Any = {"updated_since": since} if since else {}
    for page in client.dividends_history_pages(symbols=given["fifty"], limit=1000, **known):
        since = page.meta.sync_from
        for row in page.data:
            if row.status == "cancelled":
                rows.pop(row.id, None)
            else:
                rows[row.id] = [row.symbol, row.ex_date, row.amount, row.adjusted_amount, row.status]
    return rows, since
