//! Database role for analysts. Its views show the read tables of a generation, with plain values in all columns. The
//! role cannot write, and it cannot read accounts.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use harness::{Api, TestApp};
use rust_decimal::Decimal;
use serde_json::Value;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::generations::{answer, load};

const ROLE: &str = "dds_analyst";
const PRICES: &str = "symbol,date,open,high,low,close,volume,vwap,trade_count
WIDE,2023-12-28,10.1,10.25,9.75,10.123456,1200,10.01,7
WIDE,2023-12-29,,,,10.2,,,
WIDE,2024-06-18,0.05,0.07,0.0499,0.05,9007199254740993,,
WIDE,2024-06-28,12345.6,12345.7,12345.5,12345.678901,0,12345.6,1
";
const DIVIDENDS: &str = "symbol,ex_date,amount,frequency,id
WIDE,2023-03-15,0.123456,quarterly,a
WIDE,2023-06-15,0.123456,quarterly,b
WIDE,2023-09-15,0.123456,quarterly,c
WIDE,2023-12-15,0.123456,quarterly,d
WIDE,2024-03-15,1.3,quarterly,e
";

async fn market() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    load(&app, "prices.csv", "test", PRICES).await?;
    load(&app, "dividends.csv", "test", DIVIDENDS).await?;
    app.catch_up().await?;
    Ok(app)
}

async fn session(app: &TestApp) -> Result<Client> {
    let (client, connection) =
        tokio_postgres::connect(&app.endpoints().database_url_of(ROLE)?, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Runs a query, all of whose columns must be text. Returns the rows as maps from column name to value.
async fn table(client: &Client, query: &str) -> Result<Vec<BTreeMap<String, Option<String>>>> {
    let rows = client.query(&format!("select to_json(t)::text from ({query}) t"), &[]).await?;
    let row = |row: &tokio_postgres::Row| -> Result<_> {
        let columns: BTreeMap<String, Value> = serde_json::from_str(row.try_get(0)?)?;
        let text = |value: Value| value.as_str().map(str::to_owned);
        Ok(columns.into_iter().map(|(name, value)| (name, text(value))).collect())
    };
    rows.iter().map(row).collect()
}

/// Checks that the API and a query with the analyst role return the same rows. Each field in `fields` must equal the
/// column of the same name, to the last digit.
async fn agree(
    client: &Client,
    (api, key): (&Api, &str),
    path: &str,
    query: &str,
    fields: &[&str],
) -> Result<()> {
    let reply = api.get(path, Some(key)).await?;
    ensure!(reply.status == 200, "{path}: {}", reply.text());
    let body = reply.json()?;
    let served = body["data"].as_array().context("rows")?;
    let seen = table(client, query).await?;
    ensure!(served.len() == seen.len() && !seen.is_empty(), "{path}: {served:?} against {seen:?}");
    let exact =
        |text: &str| text.parse::<Decimal>().map_or_else(|_| text.to_owned(), |n| n.normalize().to_string());
    for (served, seen) in served.iter().zip(&seen) {
        for field in fields {
            let expected = match &served[field] {
                Value::Null => None,
                Value::String(text) => Some(exact(text)),
                other => Some(exact(&other.to_string())),
            };
            let found = seen[*field].as_deref().map(exact);
            ensure!(found == expected, "{path} {field}: {found:?}, but {expected:?} is served");
        }
    }
    Ok(())
}

#[tokio::test]
async fn plain_columns_are_what_is_served() -> Result<()> {
    let app = market().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let analyst = session(&app).await?;
    let at = (&api, key.as_str());
    let prices =
        "select date::text, open::text, high::text, low::text, close::text as raw_close, volume::text,
        vwap::text, trade_count::text from prices where symbol = 'WIDE' order by date";
    let path = "/v1/prices/WIDE?start_date=2023-01-01&adjustment=raw&sort=date.asc&decimals=string";
    agree(&analyst, at, path, prices, &["date", "open", "high", "low", "raw_close", "volume", "vwap"])
        .await?;
    let dividends = "select ex_date::text, amount::text, adjusted_amount::text, currency, type, status, id
        from dividends where symbol = 'WIDE' and status <> 'projected' order by ex_date";
    let path = "/v1/stocks/WIDE/dividends?limit=100&sort=ex_date.asc&decimals=string";
    agree(&analyst, at, path, dividends, &["ex_date", "amount", "adjusted_amount", "currency", "type", "id"])
        .await?;
    let held = table(&analyst, "select symbol, reason from quarantine").await?;
    assert_eq!(held[0]["reason"].as_deref(), Some("amount_outlier"), "{held:?}");
    let counts = "select trade_count from prices where symbol = 'WIDE' and year = 2024 order by date";
    let counts: Vec<Option<i64>> = analyst.query(counts, &[]).await?.iter().map(|row| row.get(0)).collect();
    assert_eq!(counts, [None, Some(1)]);
    Ok(())
}

/// The comment of a column must equal the description of the API field with the same name.
#[tokio::test]
async fn every_view_and_column_has_the_words_of_the_api_document() -> Result<()> {
    let app = market().await?;
    let analyst = session(&app).await?;
    let query = "select format('%I.%I', n.nspname, c.relname), a.attname::text, col_description(c.oid, a.attnum),
            obj_description(c.oid, 'pg_class')
        from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
        where n.nspname in ('analyst', 'analyst_g1') and c.relkind = 'v' and a.attnum > 0";
    let mut columns = BTreeMap::new();
    for row in analyst.query(query, &[]).await? {
        let (view, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (of_column, of_view): (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        ensure!(of_view.is_some_and(|text| !text.is_empty()), "{view} has no comment");
        columns.insert(
            format!("{view}.{column}"),
            of_column.with_context(|| format!("{view}.{column} has no comment"))?,
        );
    }
    ensure!(columns.len() > 250, "only {} columns", columns.len());
    let document: Value = serde_json::from_str(include_str!("../../api/openapi.json"))?;
    for (view, schema) in
        [("metrics", "Metrics"), ("dividends", "DividendRow"), ("quotes", "Quote"), ("splits", "SplitRow")]
    {
        let properties =
            document["components"]["schemas"][schema]["properties"].as_object().context("properties")?;
        for (name, property) in properties {
            let Some(comment) = columns.get(&format!("analyst_g1.{view}.{name}")) else { continue };
            // The description of `flags` in the document is longer, because it lists every flag.
            if name == "flags" {
                continue;
            }
            let described = property["description"].as_str().unwrap_or_default().replace('\n', " ");
            ensure!(*comment == described, "{view}.{name}: {comment:?}, but the document has {described:?}");
        }
    }
    Ok(())
}

/// Prices of 18 months. Most days have all values of a bar, and some have only a close or a few values. There is a gap
/// of a month, and one price on a Saturday.
fn long_history() -> String {
    let first = chrono::NaiveDate::from_ymd_opt(2023, 1, 2).expect("a day");
    let sessions = first.iter_days().take(540).enumerate().filter(|(day, _)| day % 7 < 5 || *day == 40);
    let rows = sessions.filter(|(day, _)| !(200..230).contains(day)).map(|(day, date)| {
        let close = 10_000 + (day * 7_919) % 997;
        let (open, high, low) = (close + 5, close + 9 + day % 13, close - day % 7);
        let price = |cents: usize| format!("{}.{:02}", cents / 100, cents % 100);
        let [open, high, low, close] = [open, high, low, close].map(price);
        match day % 11 {
            3 => format!("LONG,{date},,,,{close},,,\n"),
            4 => format!("LONG,{date},{open},,,{close},{day},,9\n"),
            _ => format!("LONG,{date},{open},{high},{low},{close},{}000,{close}1,{day}\n", day * day),
        }
    });
    let head = "symbol,date,open,high,low,close,volume,vwap,trade_count\n".to_owned();
    std::iter::once(head).chain(rows).collect()
}

#[tokio::test]
async fn years_are_unpacked_as_they_are_served() -> Result<()> {
    let app = market().await?;
    load(&app, "prices-long.csv", "test", &long_history()).await?;
    app.catch_up().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let analyst = session(&app).await?;
    let seen = "select date::text, open::text, high::text, low::text, close::text as raw_close, volume::text,
        vwap::text from prices where symbol = 'LONG' order by date";
    let path =
        "/v1/prices/LONG?start_date=2023-01-01&adjustment=raw&sort=date.asc&decimals=string&limit=5000";
    let fields = ["date", "open", "high", "low", "raw_close", "volume", "vwap"];
    agree(&analyst, (&api, &key), path, seen, &fields).await
}

#[tokio::test]
async fn a_session_begins_in_the_served_generation_and_may_name_another() -> Result<()> {
    let app = market().await?;
    let before = session(&app).await?;
    answer(&app, &["rebuild", "--rule", "outlier.unit_tolerance=0"]).await?;
    let held = async |client: &Client| -> Result<i64> {
        Ok(client.query_one("select count(*) from quarantine", &[]).await?.try_get(0)?)
    };
    assert_eq!(held(&before).await?, 1);
    before.batch_execute("set search_path = analyst_g2, analyst").await?;
    assert_eq!(held(&before).await?, 0);
    answer(&app, &["promote", "2", "--accept-diff", "--accept-rules", "--note", "twenty"]).await?;
    assert_eq!(held(&session(&app).await?).await?, 0);
    let listed = "select generation, schema, served, note from generations order by 1";
    let rows = before.query(listed, &[]).await?;
    let told: Vec<(i32, String, bool, Option<String>)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    let expected = [(1, "analyst_g1", false, None), (2, "analyst_g2", true, Some("twenty"))];
    let expected =
        expected.map(|(id, schema, served, note)| (id, schema.into(), served, note.map(str::to_owned)));
    assert_eq!(told, expected);
    answer(&app, &["rollback"]).await?;
    assert_eq!(held(&session(&app).await?).await?, 1);
    // The command `drop` waits only a few seconds for a reader, because the projector would have to wait too.
    before.batch_execute("begin; select from quarantine").await?;
    let held_up = app.projector(&["drop", "2"]).await?;
    assert!(held_up.code == 1 && held_up.stderr.contains("a client reads them"), "{}", held_up.stderr);
    before.batch_execute("commit").await?;
    app.projector(&["drop", "2"]).await?.success()?;
    let gone = before.query("select from quarantine", &[]).await.err();
    assert_eq!(gone.as_ref().and_then(|error| error.code()), Some(&SqlState::UNDEFINED_TABLE));
    // The number of a dropped generation is never used again. Clients may still have responses that contain the number.
    assert_eq!(answer(&app, &["rebuild"]).await?["generation"], 3);
    Ok(())
}

#[tokio::test]
async fn the_role_writes_nothing_and_sees_no_accounts() -> Result<()> {
    let app = market().await?;
    app.create_account("hidden@example.com", "free").await?;
    let analyst = session(&app).await?;
    let read_only = analyst.batch_execute("create temp table mine (n int)").await.err();
    let code = read_only.as_ref().and_then(|error| error.code());
    assert_eq!(code, Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
    // A session may turn off its read-only mode. It gains no privileges by that.
    analyst.batch_execute("set default_transaction_read_only = off").await?;
    for statement in [
        "insert into symbols values ('A', 'A')",
        "update metrics set price = 1",
        "delete from dividends",
        "update version set sequence = 0",
        "create temp table mine (n int)",
        "create table analyst.mine (n int)",
        "create table analyst_g1.mine (n int)",
        "create table public.mine (n int)",
        "create schema mine",
        "create function pg_temp.mine() returns int language sql as 'select 1'",
        "select lo_create(0)",
        "select lo_from_bytea(0, 'x')",
        "select control.point_analysts()",
        "update control.active set generation = 1",
        "select * from control.source_policy",
        "select * from accounts.accounts",
        "select * from accounts.api_keys",
        "select * from accounts.audit",
        "select * from facts.records",
        "select * from facts.rejects",
        "select * from read_g1.prices",
        "set role dds_projector",
        "set role dds_api",
    ] {
        let error = analyst.batch_execute(statement).await.err();
        let code = error.as_ref().and_then(|error| error.code());
        ensure!(code == Some(&SqlState::INSUFFICIENT_PRIVILEGE), "allowed: {statement} ({error:?})");
    }
    Ok(())
}
