//! Models of all list endpoints, written from the documentation of the API and not from its code.

use super::model::{Filter, List, Rule};
use crate::generated::TODAY;

macro_rules! filters {
    ($($parameter:literal $column:literal $rule:ident),* $(,)?) => {
        &[$(Filter { parameter: $parameter, column: $column, rule: Rule::$rule }),*]
    };
}

const STOCKS: &[Filter] = filters![
    "symbols" "symbol" Among, "type" "type" Is, "exchange" "exchange" Is, "sector" "sector" Is,
    "industry" "industry" Is, "country" "country" Is, "currency" "currency" Is, "frequency" "frequency" Is,
    "pays_dividend" "pays_dividend" Is, "is_active" "is_active" Is,
    "min_yield" "dividend_yield" AtLeast, "max_yield" "dividend_yield" AtMost,
    "min_price" "price" AtLeast, "max_price" "price" AtMost,
    "min_market_cap" "market_cap" AtLeast, "max_market_cap" "market_cap" AtMost,
];
const SCREENER: &[Filter] = filters![
    "min_yield" "dividend_yield" AtLeast, "max_yield" "dividend_yield" AtMost,
    "min_yield_ttm" "yield_ttm" AtLeast, "max_yield_ttm" "yield_ttm" AtMost,
    "min_payout_ratio" "payout_ratio" AtLeast, "max_payout_ratio" "payout_ratio" AtMost,
    "min_growth_1y" "growth_1y" AtLeast, "max_growth_1y" "growth_1y" AtMost,
    "min_growth_3y" "growth_3y" AtLeast, "max_growth_3y" "growth_3y" AtMost,
    "min_growth_5y" "growth_5y" AtLeast, "max_growth_5y" "growth_5y" AtMost,
    "min_growth_10y" "growth_10y" AtLeast, "max_growth_10y" "growth_10y" AtMost,
    "min_streak" "increase_streak_years" AtLeast, "max_streak" "increase_streak_years" AtMost,
    "min_market_cap" "market_cap" AtLeast, "max_market_cap" "market_cap" AtMost,
    "min_price" "price" AtLeast, "max_price" "price" AtMost,
    "min_volume" "volume" AtLeast, "max_volume" "volume" AtMost,
    "min_pe" "pe_ratio" AtLeast, "max_pe" "pe_ratio" AtMost,
    "min_beta" "beta" AtLeast, "max_beta" "beta" AtMost,
    "sector" "sector" Is, "industry" "industry" Is, "exchange" "exchange" Is, "country" "country" Is,
    "type" "type" Is, "exclude_types" "type" NoneOf, "frequency" "frequency" Is, "index" "indexes" Has,
    "ex_date_from" "next_ex_date" AtLeast, "ex_date_to" "next_ex_date" AtMost,
];
const SCREENER_KEYS: &[&str] = &[
    "symbol",
    "name",
    "dividend_yield",
    "yield_ttm",
    "yield_forward",
    "payout_ratio",
    "growth_1y",
    "growth_3y",
    "growth_5y",
    "growth_10y",
    "increase_streak_years",
    "payment_streak_years",
    "market_cap",
    "price",
    "volume",
    "pe_ratio",
    "beta",
    "next_ex_date",
    "yield_suspect",
];
const CALENDAR: &[Filter] = filters![
    "start_date" "event_date" AtLeast, "end_date" "event_date" AtMost, "symbols" "symbol" Among,
    "sector" "sector" Is, "min_yield" "dividend_yield" AtLeast, "min_amount" "amount" CashAtLeast,
    "type" "type" Is, "frequency" "frequency" Is, "include_projected" "status" WithProjected,
];
const SPLIT_CALENDAR: &[Filter] = filters![
    "start_date" "event_date" AtLeast, "end_date" "event_date" AtMost, "symbols" "symbol" Among,
    "sector" "sector" Is, "min_yield" "dividend_yield" AtLeast, "type" "type" Is,
];
const HISTORY: &[Filter] = filters![
    "symbols" "symbol" Among, "start_date" "ex_date" AtLeast, "end_date" "ex_date" AtMost, "type" "type" Is,
    "status" "status" Among,
];
const DIVIDENDS: &[Filter] = filters![
    "start_date" "ex_date" AtLeast, "end_date" "ex_date" AtMost, "type" "type" Is, "status" "status" Among,
];
const ETFS: &[Filter] = filters![
    "q" "name" Named,
    "issuer" "issuer" Is, "asset_class" "asset_class" Is, "category" "category" Is, "strategy" "strategy" Is,
    "related_symbol" "related_symbol" Is, "is_leveraged" "is_leveraged" Is, "is_inverse" "is_inverse" Is,
    "frequency" "frequency" Is, "max_expense_ratio" "expense_ratio" AtMost, "min_aum" "aum" AtLeast,
    "min_yield" "dividend_yield" AtLeast, "max_yield" "dividend_yield" AtMost,
];
const HOLDINGS: &[Filter] =
    filters!["asset_type" "asset_type" Is, "sector" "sector" Is, "min_weight" "weight" AtLeast];
const SPLITS: &[Filter] =
    filters!["start_date" "ex_date" AtLeast, "end_date" "ex_date" AtMost, "type" "type" Is];

const ACTIVE: &str = "select * from read_g1.stocks where is_active";

fn list(path: &str, sql: impl Into<String>, filters: &'static [Filter]) -> List {
    List {
        path: path.to_owned(),
        sql: sql.into(),
        filters,
        defaults: vec![],
        always: vec![],
        keys: &["symbol"],
        order: &[("symbol", false)],
        ties: &["symbol"],
        most: 1_000,
    }
}

fn screener(path: &str, condition: &str, defaults: &[(&'static str, &str)], most: usize) -> List {
    let defaults = defaults.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let all = list(path, format!("{ACTIVE} {condition}"), SCREENER);
    List { keys: SCREENER_KEYS, order: &[("dividend_yield", true)], defaults, most, ..all }
}

/// `rates` has pairs of a currency and its units for a US dollar, as SQL values.
fn calendar(path: &str, rates: &str, day: &str, event: &str, last: &str) -> List {
    let sql = format!(
        "select d.*, s.name, s.exchange, s.sector, s.price, s.currency as price_currency, s.dividend_yield, s.market_cap, d.{day} as event_date,
           '{event}' as event_type, d.{day} - date '{TODAY}' as days_until,
           (select r.units from (values {rates}) r (currency, units) where r.currency = d.currency) as units_for_a_dollar
         from read_g1.dividends d join read_g1.stocks s on s.symbol = d.symbol
         where s.is_active and d.{day} is not null and d.status <> 'cancelled'"
    );
    let defaults = [("start_date", TODAY), ("end_date", last), ("include_projected", "false")];
    List {
        defaults: defaults.map(|(name, value)| (name, value.to_owned())).to_vec(),
        keys: &["event_date"],
        order: &[("event_date", false)],
        ties: &["symbol", "type", "id"],
        most: 500,
        ..list(path, sql, CALENDAR)
    }
}

fn split_calendar() -> List {
    let sql = format!(
        "select t.*, s.name, s.exchange, s.sector, s.price, s.currency as price_currency, s.dividend_yield,
           s.market_cap, t.ex_date as event_date, t.ex_date - date '{TODAY}' as days_until
         from read_g1.splits t join read_g1.stocks s on s.symbol = t.symbol
         where s.is_active and t.status <> 'cancelled'"
    );
    let defaults = [("start_date", TODAY), ("end_date", "2024-07-17")];
    List {
        sql,
        filters: SPLIT_CALENDAR,
        defaults: defaults.map(|(name, value)| (name, value.to_owned())).to_vec(),
        ..calendar("/v1/splits/calendar", "", "ex_date", "", "")
    }
}

/// Returns the models of all list endpoints. Paths with a symbol, for example `/v1/stocks/{symbol}/splits`, are
/// included for the first few of `symbols` or `funds`.
pub(super) fn lists(symbols: &[String], funds: &[String], rates: &str) -> Vec<List> {
    let live = || vec![("status", "declared,paid".to_owned())];
    let mut all = vec![
        List {
            defaults: vec![("is_active", "true".to_owned())],
            keys: &["symbol", "name", "market_cap", "price", "dividend_yield"],
            ..list("/v1/stocks", "select * from read_g1.stocks", STOCKS)
        },
        screener("/v1/screener", "", &[], 1_000),
        screener(
            "/v1/screener/high-yield",
            "and not yield_suspect and price_age_sessions <= 5 and pays_dividend and dividend_currency = currency",
            &[("type", "stock,adr,reit,mlp"), ("min_yield", "4")],
            1_000,
        ),
        screener("/v1/screener/dividend-growth", "", &[("min_growth_5y", "10"), ("min_yield", "2")], 1_000),
        screener(
            "/v1/screener/dividend-aristocrats",
            "and is_dividend_aristocrat",
            &[("min_streak", "25")],
            1_000,
        ),
        screener("/v1/screener/dividend-kings", "and is_dividend_king", &[("min_streak", "50")], 500),
        calendar("/v1/dividends/calendar", rates, "payment_date", "payment", "2024-07-17"),
        calendar("/v1/dividends/payment-dates", rates, "payment_date", "payment", "2024-07-17"),
        calendar("/v1/dividends/ex-dates", rates, "ex_date", "ex_dividend", "2024-06-24"),
        split_calendar(),
        List {
            always: vec![("symbols", symbols.join(","))],
            defaults: live(),
            keys: &["ex_date"],
            order: &[("ex_date", true)],
            ties: &["symbol", "type", "id"],
            ..list(
                "/v1/dividends/history",
                "select * from read_g1.dividends where status <> 'projected'",
                HISTORY,
            )
        },
        List {
            keys: &["symbol", "name", "aum", "expense_ratio", "dividend_yield"],
            ..list("/v1/etfs", "select * from read_g1.etfs where is_active", ETFS)
        },
        List {
            keys: &[
                "sector",
                "stock_count",
                "payer_count",
                "market_cap",
                "avg_yield",
                "median_yield",
                "weighted_yield",
                "max_yield",
                "median_payout_ratio",
                "median_growth_5y",
                "median_pe",
                "ex_dates_next_30d",
            ],
            order: &[("sector", false)],
            ties: &["slug"],
            most: 100,
            ..list("/v1/sectors", "select * from read_g1.sectors", &[])
        },
    ];
    all.extend(symbols.iter().take(4).flat_map(|symbol| of_symbol(symbol, live())));
    all.extend(symbols.iter().take(4).map(|symbol| etf_holders(symbol)));
    all.extend(funds.iter().take(3).map(|fund| holdings(fund)));
    all
}

fn of_symbol(symbol: &str, live: Vec<(&'static str, String)>) -> [List; 2] {
    let of = |table: &str| {
        format!("select * from read_g1.{table} where symbol = '{symbol}' and status <> 'projected'")
    };
    let dividends = List {
        defaults: live,
        keys: &["ex_date", "payment_date", "amount"],
        order: &[("ex_date", true)],
        ties: &["symbol", "ex_date", "type", "id"],
        most: 100,
        ..list(&format!("/v1/stocks/{symbol}/dividends"), of("dividends"), DIVIDENDS)
    };
    let splits = List {
        keys: &["ex_date"],
        order: &[("ex_date", true)],
        ties: &["id"],
        most: 200,
        ..list(&format!("/v1/stocks/{symbol}/splits"), of("splits"), SPLITS)
    };
    [dividends, splits]
}

fn etf_holders(symbol: &str) -> List {
    let sql = format!(
        "select '{symbol}' as symbol, h.etf_symbol, e.name as etf_name, h.rank, h.weight, h.shares, h.market_value, h.currency, h.as_of
         from read_g1.holdings h join read_g1.etfs e on e.symbol = h.etf_symbol
         where e.is_active and h.symbol in (select symbol from read_g1.symbols where canonical = '{symbol}')
           and h.as_of = (select max(n.as_of) from read_g1.holdings n where n.etf_symbol = h.etf_symbol)"
    );
    List {
        keys: &["weight", "etf_symbol"],
        order: &[("weight", true)],
        ties: &["etf_symbol", "rank"],
        most: 500,
        ..list(&format!("/v1/stocks/{symbol}/etf-holders"), sql, &[])
    }
}

fn holdings(fund: &str) -> List {
    let sql = format!(
        "select h.*, s.dividend_yield from read_g1.holdings h left join read_g1.stocks s on s.symbol = h.symbol
         where h.etf_symbol = '{fund}'
           and h.as_of = (select max(as_of) from read_g1.holdings where etf_symbol = '{fund}')"
    );
    List {
        keys: &["weight", "rank", "symbol", "name"],
        order: &[("weight", true)],
        ties: &["rank"],
        most: 500,
        ..list(&format!("/v1/etfs/{fund}/holdings"), sql, HOLDINGS)
    }
}
