"""Files of a published version, read with DuckDB, against what Postgres holds (every row) and what the API serves (a sample of
each table, and random prices).

    parquet.py FOLDER     FOLDER is the folder of `projector publish --to file:FOLDER`, or a copy of an object store;
                          ANALYST_DATABASE_URL, DDS_API_URL and DDS_API_KEY as tests/analyst/run sets them
"""

import collections
import decimal
import json
import os
import pathlib
import random
import sys
import urllib.request

import duckdb
import psycopg

FOLDER = pathlib.Path(sys.argv[1])
# A table, the call that serves its rows of one security, and the columns that tell its rows apart.
SERVED = {
    "quotes": ("/v1/stocks/{symbol}/quote", "symbol = '{symbol}'", ["symbol"]),
    "metrics": ("/v1/stocks/{symbol}/metrics", "symbol = '{symbol}'", ["symbol"]),
    "fundamentals": ("/v1/stocks/{symbol}/fundamentals", "symbol = '{symbol}'", ["symbol"]),
    "stocks": ("/v1/stocks?limit=100", "true", ["symbol"]),
    "dividends": ("/v1/stocks/{symbol}/dividends?limit=100", "symbol = '{symbol}' and id is not null", ["id"]),
    "splits": ("/v1/stocks/{symbol}/splits", "symbol = '{symbol}'", ["id"]),
    "prices": ("/v1/prices/{symbol}?adjustment=raw&range=1y&limit=400", "symbol = '{symbol}'", ["date"]),
    "etfs": ("/v1/etfs/{fund}", "symbol = '{fund}'", ["symbol"]),
    "holdings": ("/v1/etfs/{fund}/holdings?limit=500", "etf_symbol = '{fund}'", ["as_of", "rank"]),
    "sectors": ("/v1/sectors", "true", ["slug"]),
}
# Rows of these are no answers of their own: they are judged by Postgres alone.
UNSERVED = {"factors", "quarantine", "symbols"}
RANDOM_PRICES = 10_000


def exact(value):
    """A value as text that is the same wherever it comes from."""
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True)
    return str(value)


def of_parquet(table, condition="true"):
    files = [str(FOLDER / file["path"]) for file in table["files"]]
    instant = lambda column: column["type"].startswith("timestamp")
    columns = ", ".join(("epoch_us({})" if instant(column) else "{}").format(f'"{column["name"]}"') for column in table["columns"])
    query = f"select {columns} from read_parquet({files}) where {condition}"
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, map(exact, row))) for row in duckdb.sql(query).fetchall()]


def of_postgres(session, table):
    forms = {"text": "{}::text", "timestamp with time zone": "(extract(epoch from {}) * 1000000)::bigint"}
    columns = ", ".join(forms.get(column["type"], "{}").format(f'"{column["name"]}"') for column in table["columns"])
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, map(exact, row))) for row in session.execute(f"select {columns} from {table['name']}")]


def ask(path):
    sign = "&" if "?" in path else "?"
    request = urllib.request.Request(
        f"{os.environ['DDS_API_URL']}{path}{sign}decimals=string",
        headers={"Authorization": f"Bearer {os.environ['DDS_API_KEY']}"},
    )
    return json.load(urllib.request.urlopen(request))


def of_api(path):
    data = ask(path)["data"]
    return data if isinstance(data, list) else [data]


def served(value):
    """A served scalar as `exact` writes it: decimals come as text."""
    try:
        return exact(decimal.Decimal(value)) if isinstance(value, str) else exact(value)
    except decimal.InvalidOperation:
        return exact(value)


def number(text):
    try:
        return exact(decimal.Decimal(text)) if isinstance(text, str) else text
    except decimal.InvalidOperation:
        return text


def compare_with_api(table, names):
    path, condition, key = SERVED[table["name"]]
    rows = {tuple(number(row[name]) for name in key): row for row in of_parquet(table, condition.format(**names))}
    fields = compared = 0
    for answer in of_api(path.format(**names)):
        row = rows.get(tuple(served(answer.get(name)) for name in key))
        if row is None:
            continue
        compared += 1
        for name, value in answer.items():
            name = {"raw_close": "close", "close": None}.get(name, name) if table["name"] == "prices" else name
            if name not in row or isinstance(value, (dict, list)) or name.endswith("_at"):
                continue
            found = number(row[name])
            assert found == served(value), f"{table['name']}.{name}: {found}, but {value} is served"
            fields += 1
    assert compared and fields, f"nothing of {table['name']} was compared"
    return compared, fields


def compare_random_prices(table):
    chosen = collections.defaultdict(list)
    for row in random.Random(7).sample(rows := of_parquet(table), min(RANDOM_PRICES, len(rows))):
        chosen[row["symbol"]].append(row)
    for symbol, rows in chosen.items():
        answers, cursor = {}, ""
        while cursor is not None:
            path = f"/v1/prices/{symbol}?adjustment=raw&range=max&limit=5000{cursor}"
            answer = ask(path)
            answers |= {row["date"]: row for row in answer["data"]}
            cursor = (token := answer["meta"]["next_cursor"]) and f"&cursor={token}"
        for row in rows:
            answer = answers[row["date"]]
            for name in ("open", "high", "low", "close", "volume"):
                value = answer["raw_close" if name == "close" else name]
                assert number(row[name]) == served(value), f"{symbol} {row['date']} {name}: {row[name]}, but {value} is served"
    return sum(map(len, chosen.values()))


latest = json.loads((FOLDER / "latest.json").read_text())
manifest = json.loads((FOLDER / "versions" / latest["data_version"] / "manifest.json").read_text())
tables = {table["name"]: table for table in manifest["tables"]}
assert set(tables) == set(SERVED) | UNSERVED, tables.keys()

with psycopg.connect(os.environ["ANALYST_DATABASE_URL"]) as session:
    generation, sequence = session.execute("select generation, sequence from version").fetchone()
    assert manifest["data_version"] == f"g{generation}.{sequence}"
    for name, table in tables.items():
        mine, theirs = of_parquet(table), of_postgres(session, table)
        assert len(mine) == table["rows"] == sum(part["rows"] for part in table["files"]), name
        ordered = [sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in (mine, theirs)]
        assert ordered[0] == ordered[1], f"{name}: {next(pair for pair in zip(*ordered) if pair[0] != pair[1])}"
        print(f"{name}: {len(mine)} rows as in Postgres")
    fund = session.execute("select etf_symbol from holdings order by 1 limit 1").fetchone()
    payer = session.execute(
        "select symbol from stocks join splits using (symbol) where pays_dividend and stocks.type = 'stock' order by 1 limit 1"
    ).fetchone()
names = {"symbol": payer[0], "fund": fund[0]}
for name in SERVED:
    rows, fields = compare_with_api(tables[name], names)
    print(f"{name}: {fields} fields of {rows} rows as served")
print(f"prices: {compare_random_prices(tables['prices'])} random rows as served")
