"""An export, read back with DuckDB, against what Postgres holds (every row) and what the API serves (a sample of each table);
the differences of a rule, as Parquet and as CSV.

    parquet.py FOLDER     PROJECTOR is the program; ANALYST_DATABASE_URL, DDS_API_URL and DDS_API_KEY as tests/analyst/run sets them
"""

import csv
import decimal
import json
import os
import pathlib
import subprocess
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
UNSERVED = {"factors", "quarantine"}


RULE = "streak.tolerated_flat_years=1"


def projector(*arguments):
    return subprocess.run([os.environ["PROJECTOR"], *arguments, "--json"], capture_output=True, text=True)


def export():
    return projector("export", "--parquet", str(FOLDER))


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
    glob = FOLDER / table["name"] / "**" / "*.parquet"
    instant = lambda column: column["type"].startswith("timestamp")
    columns = ", ".join(("epoch_us({})" if instant(column) else "{}").format(f'"{column["name"]}"') for column in table["columns"])
    query = f"select {columns} from read_parquet('{glob}', hive_partitioning = false) where {condition}"
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, map(exact, row))) for row in duckdb.sql(query).fetchall()]


def of_postgres(session, table):
    forms = {"text": "{}::text", "timestamp with time zone": "(extract(epoch from {}) * 1000000)::bigint"}
    columns = ", ".join(forms.get(column["type"], "{}").format(f'"{column["name"]}"') for column in table["columns"])
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, map(exact, row))) for row in session.execute(f"select {columns} from {table['name']}")]


def of_api(path):
    sign = "&" if "?" in path else "?"
    request = urllib.request.Request(
        f"{os.environ['DDS_API_URL']}{path}{sign}decimals=string",
        headers={"Authorization": f"Bearer {os.environ['DDS_API_KEY']}"},
    )
    data = json.load(urllib.request.urlopen(request))["data"]
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


manifest = json.loads((done := export()).stdout or "null")
assert done.returncode == 0, done.stderr
again = export()
assert again.returncode == 1 and "already" in again.stderr, again.stderr
assert not FOLDER.with_name(f"{FOLDER.name}.partial").exists()
assert manifest == json.loads((FOLDER / "manifest.json").read_text())
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
partitions = {part["path"].split("/")[1] for part in tables["prices"]["files"]}
assert all(partition.startswith("year=") for partition in partitions) and len(partitions) > 5, partitions

rebuilt = projector("rebuild", "--rule", RULE)
assert rebuilt.returncode == 0, rebuilt.stderr
other = json.loads(rebuilt.stdout)["generation"]
columns, lines = FOLDER.with_name("diff.parquet"), FOLDER.with_name("diff.csv")
compared = projector("diff", str(generation), str(other), "--parquet", str(columns), "--csv", str(lines))
assert compared.returncode == 0, compared.stderr
with open(lines, newline="") as file:
    head, *expected = [[cell.removeprefix("'") for cell in line] for line in csv.reader(file)]
found = duckdb.sql(f"select * from read_parquet('{columns}')")
assert found.columns == head and expected, head
assert [list(row) for row in found.fetchall()] == expected
print(f"diff: {len(expected)} differing values as in CSV")
projector("drop", str(other))
