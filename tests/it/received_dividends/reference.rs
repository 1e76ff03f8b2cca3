//! Random portfolios, whose payments are computed a second time: in SQL, from the served dividends and splits.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::PATH;
use crate::generated::{Generated, TODAY};

const PORTFOLIOS: u64 = 500;

/// Payments of all portfolios. $1 transactions, $2 dividends and $3 splits, each a JSON list of rows.
const REFERENCE: &str = "
with split as (
  select r->>'symbol' as symbol, (r->>'ex_date')::date as day, (r->>'from_shares')::numeric as old, (r->>'to_shares')::numeric as new
  from jsonb_array_elements($3::jsonb) r
  where r->>'type' in ('forward', 'reverse', 'stock_dividend') and r->>'status' <> 'cancelled'
), trade as (
  select (r->>'portfolio')::integer as portfolio, r->>'account' as account, r->>'symbol' as symbol, (r->>'date')::date as day,
    (r->>'basis')::date as basis, (r->>'quantity')::numeric as quantity
  from jsonb_array_elements($1::jsonb) r
), dividend as (
  select r->>'symbol' as symbol, (r->>'ex_date')::date as ex_date, (r->>'payment_date')::date as payment_date,
    (r->>'amount')::numeric as amount, coalesce(r->>'id', 'projected') as id
  from jsonb_array_elements($2::jsonb) r where r->>'type' not in ('stock', 'spin_off')
), part as (
  select t.portfolio, t.account, d.*, (
    select t.quantity::numeric(60, 30)
      * coalesce(product(case when s.day > t.basis then s.new else s.old end), 1)
      / coalesce(product(case when s.day > t.basis then s.old else s.new end), 1)
    from split s
    where s.symbol = t.symbol and s.day > least(t.basis, d.ex_date) and s.day <= greatest(t.basis, d.ex_date)
  ) as quantity
  from trade t join dividend d on d.symbol = t.symbol and d.ex_date > t.day
), total as (
  select portfolio, account, symbol, ex_date, payment_date, id, amount, round(sum(quantity), 10) as quantity
  from part group by portfolio, account, symbol, ex_date, payment_date, id, amount
)
select portfolio, concat_ws(' ', account, symbol, ex_date, id, trim_scale(quantity), trim_scale(round(quantity * amount, 6))) as line
from total where quantity <> 0 and coalesce(payment_date, ex_date) <= $4::text::date";

/// Pseudorandom numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Purchase of up to 1,000 shares or sale of up to 200, with up to ten decimal places.
    fn transaction(&mut self, symbols: &[String]) -> Value {
        let symbol = &symbols[usize::try_from(self.below(symbols.len() as u64)).unwrap_or_default()];
        let is_sale = self.below(4) == 0;
        let shares = self.below(if is_sale { 200 } else { 1_000 });
        let mut quantity = format!("{}{shares}", if is_sale { "-" } else { "" });
        let places = usize::try_from(self.below(11)).unwrap_or_default();
        let fraction = format!("{:010}", self.below(10_000_000_000));
        let _ = write!(quantity, ".{}1", &fraction[..places.saturating_sub(1)]);
        let date = format!("{}-{:02}-{:02}", 2013 + self.below(11), 1 + self.below(12), 1 + self.below(28));
        let account = ["a", "b", "c"][usize::try_from(self.below(3)).unwrap_or_default()];
        json!({ "account": account, "symbol": symbol, "date": date, "quantity": quantity })
    }
}

#[tokio::test]
async fn random_portfolios_have_the_payments_of_the_reference() -> Result<()> {
    let world = Generated::start().await?;
    let rows = async |path: &str| -> Result<Vec<Value>> {
        let page: Value = serde_json::from_slice(&world.body(path).await?)?;
        Ok(page["data"].as_array().context("rows")?.clone())
    };
    let stocks = rows("/v1/stocks?limit=100").await?;
    let symbols: Vec<String> =
        stocks.iter().filter_map(|row| row["symbol"].as_str()).map(str::to_owned).collect();
    let (mut dividends, mut splits) = (Vec::new(), Vec::new());
    for symbol in &symbols {
        let query = "include_projected=true&limit=1000&decimals=string";
        dividends.extend(rows(&format!("/v1/dividends/history?symbols={symbol}&{query}")).await?);
        splits.extend(rows(&format!("/v1/stocks/{symbol}/splits?decimals=string")).await?);
    }
    ensure!(splits.len() > 5, "{} splits", splits.len());

    let mut numbers = Numbers(0x5DEE_CE66_D1CE_4E5B);
    let (mut trades, mut served) = (Vec::new(), Vec::new());
    for portfolio in 0..PORTFOLIOS {
        let list: Vec<Value> = (0..=numbers.below(20)).map(|_| numbers.transaction(&symbols)).collect();
        let is_adjusted = numbers.below(2) == 0;
        for transaction in &list {
            let mut trade = transaction.clone();
            trade["portfolio"] = portfolio.into();
            trade["basis"] = if is_adjusted { TODAY.into() } else { transaction["date"].clone() };
            trades.push(trade);
        }
        let basis = if is_adjusted { "today" } else { "trade_date" };
        let path = format!("{PATH}?short=true&decimals=string&quantity_basis={basis}");
        let headers = [("x-api-key", world.key.clone()), ("content-type", "application/json".to_owned())];
        let body = json!({ "transactions": list }).to_string().into_bytes();
        let reply = world.api.send_body(Method::POST, &path, &headers, body).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        let mut lines: Vec<String> =
            reply.json()?["data"].as_array().context("rows")?.iter().map(line).collect();
        lines.sort();
        served.push(lines);
    }

    let product = "create aggregate product(numeric) (sfunc = numeric_mul, stype = numeric)";
    world.app.sql(product, &[]).await?;
    let text = |rows: Vec<Value>| Value::Array(rows);
    let until = "2025-06-17";
    let found = world.app.sql(REFERENCE, &[&text(trades), &text(dividends), &text(splits), &until]).await?;
    let mut expected = vec![Vec::new(); served.len()];
    for row in &found {
        let portfolio: i32 = row.get("portfolio");
        expected[usize::try_from(portfolio)?].push(row.get::<_, String>("line"));
    }
    ensure!(found.len() > 50_000, "{} payments", found.len());
    for (portfolio, (served, mut expected)) in served.into_iter().zip(expected).enumerate() {
        expected.sort();
        assert_eq!(served, expected, "portfolio {portfolio}");
    }
    Ok(())
}

fn line(row: &Value) -> String {
    let id = row["id"].as_str().unwrap_or("projected");
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    [text("account"), text("symbol"), text("ex_date"), id, text("quantity"), text("gross")].join(" ")
}
