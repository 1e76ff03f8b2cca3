//! Answers of the API about a case, under the field names that the cases use.

use anyhow::{Context, Result, ensure};
use harness::{Api, TestApp};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::feed::Case;

/// Names of metrics in the cases, each with the name of the field in the API.
const METRICS: [(&str, &str); 22] = [
    ("ttm_dividend", "dps_ttm"),
    ("ttm_dividend_total", "dps_ttm_total"),
    ("forward_dividend", "dps_forward"),
    ("dividend_yield_pct", "dividend_yield"),
    ("ttm_yield_pct", "yield_ttm"),
    ("ttm_yield_total_pct", "yield_ttm_total"),
    ("forward_yield_pct", "yield_forward"),
    ("payout_ratio_pct", "payout_ratio"),
    ("fcf_payout_ratio_pct", "fcf_payout_ratio"),
    ("growth_1y_pct", "growth_1y"),
    ("growth_3y_pct", "growth_3y"),
    ("growth_5y_pct", "growth_5y"),
    ("growth_10y_pct", "growth_10y"),
    ("streak_years", "increase_streak_years"),
    ("payment_years", "payment_streak_years"),
    ("is_aristocrat", "is_dividend_aristocrat"),
    ("is_king", "is_dividend_king"),
    ("volatility_pct", "volatility_1y"),
    ("beta", "beta_5y"),
    ("next_ex_date", "next.ex_date"),
    ("next_ex_status", "next.status"),
    ("latest_increase_pct", "latest_increase_percent"),
];
const QUOTE: [(&str, &str); 4] = [
    ("high_52w", "year_high"),
    ("low_52w", "year_low"),
    ("pe_ratio", "pe_ratio"),
    ("market_cap", "market_cap"),
];
const EXPLAINED: [&str; 3] = ["frequency_source", "payout_status", "payout_basis"];

pub(crate) struct Answers<'a> {
    app: &'a TestApp,
    api: &'a Api,
    key: &'a str,
    case: &'a Case,
    /// Past date to request. `None` requests the current market date.
    past: Option<&'a str>,
    metrics: OnceCell<Value>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(
        app: &'a TestApp,
        api: &'a Api,
        key: &'a str,
        case: &'a Case,
        past: Option<&'a str>,
    ) -> Self {
        Self { app, api, key, case, past, metrics: OnceCell::new() }
    }

    pub(crate) fn when(&self) -> String {
        self.past.map_or("on its day".to_owned(), |date| format!("as of {date}"))
    }

    /// Returns the answer for the figure `key`. Returns `None` if the API does not serve this figure for past dates.
    pub(crate) async fn value(&self, key: &str) -> Result<Option<Value>> {
        if EXPLAINED.contains(&key) {
            return Ok(Some(self.metrics().await?["explanation"][key].clone()));
        }
        let current = match key {
            "derived_ex_dates" => self.derived_ex_dates().await?,
            "ex_date_calendar" => self.calendar("ex-dates").await?,
            "payment_date_calendar" => self.calendar("payment-dates").await?,
            "results" => self.chowder().await?,
            "canonical" => self.canonical().await?,
            "adjusted_close" => self.prices("adj_close").await?,
            "split_adjusted_close" => self.prices("close").await?,
            "adjusted_close_return_pct" => self.adjusted_return().await?,
            "total_return_pct" => self.price_answer().await?["meta"]["total_return"].clone(),
            "split_adjusted_dividends" => self.dividends("adjusted_amount").await?,
            "kept_ex_dates" => self
                .dividends("ex_date")
                .await?
                .as_object()
                .map(|kept| kept.values().cloned().collect())
                .unwrap_or_default(),
            _ => match QUOTE.iter().find(|(theirs, _)| *theirs == key) {
                Some((_, field)) => {
                    self.data(&format!("/v1/stocks/{}/quote", self.symbol())).await?[field].clone()
                }
                None => return Ok(Some(self.metric(key).await?)),
            },
        };
        Ok(Some(current).filter(|_| self.past.is_none()))
    }

    async fn metric(&self, key: &str) -> Result<Value> {
        let metrics = self.metrics().await?;
        let field = METRICS.iter().find(|(theirs, _)| *theirs == key).map_or(key, |(_, field)| field);
        Ok(match (key, field.split_once('.')) {
            ("annual_totals", _) => by(&metrics["annual_totals"], "year", "amount"),
            ("flags", _) => self.flags(metrics),
            ("quarantined", _) => self.quarantined(metrics).await?,
            ("frequency", _)
                if ["none", "unknown"].contains(&metrics["frequency"].as_str().unwrap_or_default()) =>
            {
                Value::Null
            }
            (_, Some((object, member))) => metrics[object][member].clone(),
            _ => metrics.get(field).with_context(|| format!("{key} is not served"))?.clone(),
        })
    }

    /// Returns the flags, without the prefix that the feed adds to ids (`Case::own_id`).
    fn flags(&self, metrics: &Value) -> Value {
        let own = self.case.own_id("");
        metrics["flags"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|flag| json!(flag.as_str().unwrap_or_default().replace(&own, "")))
            .collect()
    }

    /// Returns position and reason of each quarantined or rejected row of the case. Quarantined rows come from
    /// `metrics`, and rejected rows from `ingest rejects`.
    async fn quarantined(&self, metrics: &Value) -> Result<Value> {
        let listed = self.app.ingest(&["rejects", "--json"]).await?.success()?.stdout;
        let listed: Vec<Value> = listed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let file = format!("{}.ndjson", self.case.id);
        let own =
            listed.iter().filter(|reject| reject["file"].as_str().is_some_and(|path| path.ends_with(&file)));
        let held = metrics["quarantined"].as_array().into_iter().flatten();
        let mut rows: Vec<(i64, &str)> = own
            .chain(held)
            .map(|row| {
                (row["line"].as_i64().unwrap_or_default() - 1, row["reason"].as_str().unwrap_or_default())
            })
            .collect();
        rows.sort_unstable();
        Ok(rows.into_iter().map(|(index, reason)| json!({ "index": index, "reason": reason })).collect())
    }

    async fn derived_ex_dates(&self) -> Result<Value> {
        let mut dates = Vec::new();
        for row in 0..self.case.profile("distributions").as_array().map_or(1, Vec::len) {
            let path = format!("/v1/stocks/{}/dividends?sort=ex_date.asc", self.case.symbol(row));
            let rows = self.data(&path).await?;
            dates.extend(rows.as_array().into_iter().flatten().map(|row| row["ex_date"].clone()));
        }
        Ok(json!(dates))
    }

    /// Returns the dates of a calendar that begins on the date of the case and has the default length.
    async fn calendar(&self, endpoint: &str) -> Result<Value> {
        let (symbol, first) = (self.symbol(), &self.case.as_of);
        let rows =
            self.data(&format!("/v1/dividends/{endpoint}?symbols={symbol}&start_date={first}")).await?;
        Ok(rows.as_array().into_iter().flatten().map(|row| row["event_date"].clone()).collect())
    }

    async fn chowder(&self) -> Result<Value> {
        let mut results = Vec::new();
        for row in 0..self.case.profile("rows").as_array().map_or(0, Vec::len) {
            let metrics =
                self.data(&format!("/v1/stocks/{}/metrics?decimals=string", self.case.symbol(row))).await?;
            results.push(
                json!({ "chowder_number": metrics["chowder_number"], "pass": metrics["chowder_pass"] }),
            );
        }
        Ok(json!(results))
    }

    async fn canonical(&self) -> Result<Value> {
        let mut found = Vec::new();
        for query in self.case.profile("query").as_array().into_iter().flatten().filter_map(Value::as_str) {
            let path = format!("/v1/stocks/{}", query.replace(' ', "%20").replace('/', "%2F"));
            let reply = self.api.get(&path, Some(self.key)).await?;
            found.push(if reply.status == 404 {
                Value::Null
            } else {
                reply.json()?["data"]["symbol"].clone()
            });
        }
        Ok(json!(found))
    }

    async fn prices(&self, column: &str) -> Result<Value> {
        Ok(by(&self.price_answer().await?["data"], "date", column))
    }

    async fn price_answer(&self) -> Result<Value> {
        self.answer(&format!("/v1/prices/{}?sort=date.asc&limit=1000&decimals=string", self.symbol())).await
    }

    async fn adjusted_return(&self) -> Result<Value> {
        let closes = self.price_answer().await?["data"].clone();
        let close = |row: Option<&Value>| {
            row.and_then(|row| row["adj_close"].as_str())
                .context("a close")
                .and_then(|text| Ok(text.parse::<rust_decimal::Decimal>()?))
        };
        let closes = closes.as_array().context("no prices")?;
        let ratio = close(closes.last())? / close(closes.first())?;
        Ok(json!(((ratio - rust_decimal::Decimal::ONE) * rust_decimal::Decimal::ONE_HUNDRED).to_string()))
    }

    async fn dividends(&self, column: &str) -> Result<Value> {
        let path =
            format!("/v1/stocks/{}/dividends?sort=ex_date.asc&limit=100&decimals=string", self.symbol());
        Ok(by(&self.data(&path).await?, "ex_date", column))
    }

    /// Returns the metrics with their explanation. Only the first call sends a request.
    async fn metrics(&self) -> Result<&Value> {
        self.metrics
            .get_or_try_init(async || {
                let as_of = self.past.map(|date| format!("&as_of={date}")).unwrap_or_default();
                let path =
                    format!("/v1/stocks/{}/metrics?decimals=string&explain=true{as_of}", self.symbol());
                let metrics = self.data(&path).await?;
                ensure!(metrics["as_of"] == self.case.as_of, "answered as of {}", metrics["as_of"]);
                Ok(metrics)
            })
            .await
    }

    fn symbol(&self) -> String {
        self.case.symbol(0)
    }

    async fn data(&self, path: &str) -> Result<Value> {
        Ok(self.answer(path).await?["data"].clone())
    }

    async fn answer(&self, path: &str) -> Result<Value> {
        let reply = self.api.get(path, Some(self.key)).await?;
        ensure!(reply.status == 200, "{path}: {}", reply.text());
        reply.json()
    }
}

/// Converts rows to a JSON object. The arguments `name` and `value` name the fields with the keys and the values.
fn by(rows: &Value, name: &str, value: &str) -> Value {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    rows.as_array().into_iter().flatten().map(|row| (text(&row[name]), row[value].clone())).collect()
}
