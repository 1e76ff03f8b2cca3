//! Conversion of a case to feed files: canonical records, and a vendor's CSV for prices with adjusted closes. Each case has
//! its own symbols.

use rust_decimal::{Decimal, MathematicalOps};
use serde_json::{Map, Value, json};

/// Date of a case that has no date of its own. It is after every record date in such cases.
const UNDATED: &str = "2025-06-30";

/// Source of all files, except those with the rows that name another source.
pub(crate) const SOURCE: &str = "golden";

/// Function that creates the records of a case whose input is a special table.
type Records = fn(&Case) -> Vec<Value>;

pub(crate) struct FeedFile {
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) text: String,
}

impl FeedFile {
    pub(crate) fn new(source: &str, name: String, text: String) -> Self {
        Self { source: source.to_owned(), name, text }
    }
}

pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) as_of: String,
    case: Value,
}

impl Case {
    pub(crate) fn new(case: &Value) -> Self {
        Self {
            id: case["id"].as_str().expect("a case has an id").to_owned(),
            as_of: case["as_of"].as_str().unwrap_or(UNDATED).to_owned(),
            case: case.clone(),
        }
    }

    pub(crate) fn expected(&self) -> &Map<String, Value> {
        self.case["expected"].as_object().expect("a case expects something")
    }

    pub(crate) fn tolerance(&self) -> &str {
        self.case["tolerance"].as_str().unwrap_or("0")
    }

    pub(crate) fn profile(&self, name: &str) -> &Value {
        &self.case["inputs"]["profile"][name]
    }

    pub(crate) fn rows(&self, name: &str) -> &[Value] {
        self.case["inputs"][name].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the symbol for a row of the case's table. Row 0 has the symbol of the case itself.
    pub(crate) fn symbol(&self, row: usize) -> String {
        if row == 0 { self.id.clone() } else { format!("{}.{}", self.id, row) }
    }

    /// Returns the files of the case. In the first file, dividends come first, so the line number of a dividend is its
    /// position in the case plus one.
    pub(crate) fn files(&self) -> Vec<FeedFile> {
        let tables: [(&str, Records); 4] = [
            ("record_dates", Self::record_dates),
            ("distributions", Self::distributions),
            ("rows", Self::chowder_rows),
            ("known", Self::known_symbols),
        ];
        let table = tables.iter().find(|(name, _)| self.profile(name).is_array());
        let records = table.map_or_else(|| self.plain(), |(_, records)| records(self));
        let lines = |records: &[Value]| records.iter().map(|record| format!("{record}\n")).collect();
        let mut files = vec![FeedFile::new(SOURCE, format!("{}.ndjson", self.id), lines(&records))];
        if self.has_adjusted_closes() {
            files.push(FeedFile::new(SOURCE, format!("{}.csv", self.id), self.adjusted_prices()));
        }
        for dividends in self.rows("dividends").chunk_by(|a, b| a["source"] == b["source"]) {
            if let Some(source) = dividends[0]["source"].as_str() {
                let records: Vec<Value> = dividends.iter().map(|row| self.dividend(row)).collect();
                files.push(FeedFile::new(source, format!("{}.ndjson", self.id), lines(&records)));
            }
        }
        files
    }

    /// Prices in the columns of EODHD, because canonical prices have no adjusted close.
    fn adjusted_prices(&self) -> String {
        let row = |row: &Value| {
            let [date, close, adjusted] =
                ["date", "close", "adjusted_close"].map(|name| row[name].as_str().unwrap_or_default());
            format!("{date},{close},{adjusted}\n")
        };
        std::iter::once("date,close,adjusted_close\n".to_owned())
            .chain(self.rows("prices").iter().map(row))
            .collect()
    }

    fn has_adjusted_closes(&self) -> bool {
        self.rows("prices").iter().any(|row| row["adjusted_close"].is_string())
    }

    fn plain(&self) -> Vec<Value> {
        let symbol = self.symbol(0);
        let mut rows: Vec<&Value> =
            self.rows("dividends").iter().filter(|row| row["source"].is_null()).collect();
        rows.sort_by_key(|row| row["seq"].as_i64());
        let dividends = rows.into_iter().map(|row| self.dividend(row));
        let splits = self.rows("splits").iter().map(|row| with(row, "split", &symbol));
        let prices = self.rows("prices").iter().filter(|_| !self.has_adjusted_closes());
        let prices = prices.map(|row| with(row, "price", &symbol));
        let rates = self.rows("exchange_rates").iter().map(|row| {
            let mut rate = row.clone();
            rate["kind"] = json!("fx");
            rate
        });
        dividends
            .chain(splits)
            .chain(prices)
            .chain(rates)
            .chain([self.security(&symbol)])
            .chain(self.fundamentals())
            .collect()
    }

    fn dividend(&self, row: &Value) -> Value {
        let mut record = with(row, "dividend", &self.symbol(0));
        let fields = record.as_object_mut().expect("a row is an object");
        fields.remove("seq");
        fields.remove("source");
        for (from, to) in [("pay_date", "payment_date"), ("vendor_frequency", "frequency")] {
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
        for (field, words) in [
            (
                "type",
                &[
                    ("spinoff", "spin_off"),
                    ("capital_gain_lt", "capital_gain_long"),
                    ("capital_gain_st", "capital_gain_short"),
                ][..],
            ),
            ("action", &[("insert", "put"), ("update", "put"), ("cancel", "retract"), ("delete", "retract")]),
        ] {
            let word = fields.get(field).and_then(Value::as_str).unwrap_or_default();
            if let Some((_, canonical)) = words.iter().find(|(theirs, _)| *theirs == word) {
                fields.insert(field.to_owned(), json!(canonical));
            }
        }
        // All cases are in the feed of one vendor, so the ids need a prefix to be unique.
        if let Some(id) = fields.get("id").and_then(Value::as_str).map(|id| self.own_id(id)) {
            fields.insert("id".to_owned(), json!(id));
        }
        record
    }

    pub(crate) fn own_id(&self, id: &str) -> String {
        format!("{}:{id}", self.id)
    }

    fn security(&self, symbol: &str) -> Value {
        let mut record = json!({
            "kind": "security", "symbol": symbol, "name": symbol,
            "type": self.profile("asset_type").as_str().unwrap_or("stock"), "currency": self.profile("currency"),
        });
        let seed = self.profile("streak_seed");
        let fields = [
            ("sector", self.profile("sector")),
            ("ipo_date", self.profile("ipo_date")),
            ("status", self.profile("status")),
            ("delisted_on", self.profile("delisted_on")),
            ("dividend_suspended_on", self.profile("dividend_suspended_on")),
            ("streak_seed_years", &seed["years"]),
            ("streak_seed_through", &seed["through_year"]),
        ];
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
            record[name] = value.clone();
        }
        if self.profile("sp500") == &json!(true) {
            record["indexes"] = json!(["sp500"]);
        }
        record
    }

    fn fundamentals(&self) -> Option<Value> {
        let named = [
            ("eps_ttm", "eps_ttm"),
            ("eps_as_of", "eps_as_of"),
            ("reported_currency", "reported_currency"),
            ("ffo_per_share_ttm", "ffo_per_share_ttm"),
            ("ffo_per_share", "ffo_per_share_ttm"),
            ("shares_outstanding", "shares_outstanding"),
            ("shares_as_of", "shares_as_of"),
            ("float_market_cap", "float_market_cap"),
            ("advt_3m", "avg_daily_value"),
            ("dividends_paid_ttm", "dividends_paid_ttm"),
            ("operating_cash_flow_ttm", "operating_cash_flow_ttm"),
            ("capital_expenditure_ttm", "capital_expenditure_ttm"),
        ];
        let given: Vec<_> = named.iter().filter(|(theirs, _)| !self.profile(theirs).is_null()).collect();
        let mut record = json!({ "kind": "fundamentals", "symbol": self.symbol(0), "as_of": self.as_of });
        given.iter().for_each(|(theirs, canonical)| record[*canonical] = self.profile(theirs).clone());
        (!given.is_empty()).then_some(record)
    }

    fn record_dates(&self) -> Vec<Value> {
        let dates = self.profile("record_dates").as_array().into_iter().flatten();
        let dividend = |date| json!({ "kind": "dividend", "symbol": self.symbol(0), "record_date": date, "amount": "0.1" });
        dates.map(dividend).collect()
    }

    fn distributions(&self) -> Vec<Value> {
        let rows = self.profile("distributions").as_array().into_iter().flatten().enumerate();
        let records = |(index, row): (usize, &Value)| {
            let symbol = self.symbol(index);
            [
                json!({ "kind": "dividend", "symbol": symbol, "record_date": row["record_date"], "payment_date": row["pay_date"],
                        "amount": row["amount"], "type": "special" }),
                json!({ "kind": "price", "symbol": symbol, "date": "2024-12-02", "close": row["price"] }),
            ]
        };
        rows.flat_map(records).collect()
    }

    /// Returns the records of one security for each row of the table. Price and yearly dividends give the yield and the
    /// growth in the row.
    fn chowder_rows(&self) -> Vec<Value> {
        let rows = self.profile("rows").as_array().into_iter().flatten().enumerate();
        rows.flat_map(|(index, row)| self.chowder_row(index, row)).collect()
    }

    fn chowder_row(&self, index: usize, row: &Value) -> Vec<Value> {
        let symbol = self.symbol(index);
        let percent = |value: &Value| {
            value.as_str().map(|text| text.parse::<Decimal>().expect("a percent") / Decimal::ONE_HUNDRED)
        };
        let growth = percent(&row["growth_5y_pct"]);
        let (first, last) = match growth {
            Some(growth) => (2019, (Decimal::ONE + growth).powi(5).round_dp(10)),
            None => (2023, Decimal::ONE),
        };
        let price = (last / percent(&row["yield_pct"]).expect("a yield")).round_dp(10);
        let amount = |year| if year == 2024 { last } else { Decimal::ONE };
        let dividends = (first..=2024).map(|year| {
            json!({ "kind": "dividend", "symbol": symbol, "ex_date": format!("{year}-11-15"), "amount": amount(year), "frequency": "annual" })
        });
        let security = json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": "stock", "sector": row["sector"] });
        let price = json!({ "kind": "price", "symbol": symbol, "date": "2025-06-27", "close": price });
        dividends.chain([security, price]).collect()
    }

    fn known_symbols(&self) -> Vec<Value> {
        let known = self.profile("known").as_array().into_iter().flatten();
        known
            .map(|symbol| json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": "stock" }))
            .collect()
    }
}

fn with(row: &Value, kind: &str, symbol: &str) -> Value {
    let mut record = row.clone();
    record["kind"] = json!(kind);
    record["symbol"] = json!(symbol);
    record
}
