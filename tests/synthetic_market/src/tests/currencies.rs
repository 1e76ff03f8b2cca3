//! Tests of the securities and rates in several currencies.

use chrono::Datelike;
use market::decimal::parse_decimal;
use market::identity::SecurityAddress;

use super::*;

#[test]
fn a_fund_has_three_listings_in_three_currencies() {
    let files = market("listings", 60, 5);
    let securities = rows(&files, "securities");
    let listings: Rows =
        securities.into_iter().filter(|row| row["name"].starts_with("Synthetic World Fund")).collect();
    let markets: Vec<_> =
        listings.iter().map(|row| (row["exchange"].as_str(), row["currency"].as_str())).collect();
    assert_eq!(markets, [("XLON", "GBP"), ("XETR", "EUR"), ("XSWX", "USD")]);
    assert_eq!((words(&listings, "name").len(), words(&listings, "symbol").len()), (1, 3));
    let isins = words(&listings, "isin");
    assert!(isins.len() == 1 && isins.iter().all(|isin| SecurityAddress::parse(isin).is_ok()), "{isins:?}");

    let dividends = rows(&files, "dividends");
    let paid = |row: &BTreeMap<String, String>| -> Vec<[String; 3]> {
        let own = dividends.iter().filter(|dividend| dividend["symbol"] == row["symbol"]);
        own.map(|dividend| ["ex_date", "amount", "currency"].map(|column| dividend[column].clone())).collect()
    };
    let [pounds, euros, dollars] = listings.as_slice() else { panic!("{listings:?}") };
    assert!(paid(pounds).len() > 15 && paid(pounds).iter().all(|[_, _, currency]| currency == "USD"));
    assert!(paid(pounds) == paid(dollars) && paid(euros) == paid(dollars));

    // The closes differ only by the exchange rate, up to half a penny of rounding.
    let prices = rows(&files, "prices");
    let closes = |row: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let own = prices.iter().filter(|price| price["symbol"] == row["symbol"]);
        own.map(|price| (price["date"].clone(), price["close"].clone())).collect()
    };
    let number = |text: &str| parse_decimal(text).unwrap().value;
    let rates: BTreeMap<(String, String), String> = rows(&files, "fx")
        .into_iter()
        .map(|row| ((row["date"].clone(), row["quote"].clone()), row["rate"].clone()))
        .collect();
    let rate = |day: &str, quote: &str| number(&rates[&(day.to_owned(), quote.to_owned())]);
    let (in_pounds, in_euros) = (closes(pounds), closes(euros));
    for (day, close) in closes(dollars) {
        let in_euros_by_rate = number(&close) / rate(&day, "USD");
        let difference = (in_euros_by_rate - number(&in_euros[&day])).abs();
        let of_pounds = (in_euros_by_rate * rate(&day, "GBP") - number(&in_pounds[&day])).abs();
        assert!(difference <= number("0.005") && of_pounds <= number("0.005"), "{day}");
    }
}

#[test]
fn a_receipt_in_dollars_has_figures_in_another_currency() {
    let files = market("receipts", 60, 3);
    let figures = rows(&files, "fundamentals");
    check_words(&figures, "reported_currency", &["USD", "EUR", "GBP"]);
    let securities = rows(&files, "securities");
    for figure in figures.iter().filter(|row| row["reported_currency"] != "USD") {
        let security = securities.iter().find(|row| row["symbol"] == figure["symbol"]).unwrap();
        assert_eq!((security["type"].as_str(), security["currency"].as_str()), ("adr", "USD"));
    }
}

#[test]
fn each_currency_has_a_rate_on_each_working_day() {
    let files = market("rates", 31, 30);
    let rates = rows(&files, "fx");
    let first = date(&rows(&files, "securities")[0]["ipo_date"]);
    let days = first.iter_days().take_while(|day| *day <= date(UNTIL));
    let working: Vec<NaiveDate> = days.filter(|day| day.weekday().number_from_monday() < 6).collect();
    assert_eq!(words(&rates, "base"), BTreeSet::from(["EUR".to_owned()]));
    let currencies = ["USD", "JPY", "GBP", "CNY", "AUD", "CAD", "CHF", "HKD", "SGD"];
    assert_eq!(words(&rates, "quote"), currencies.map(str::to_owned).into());
    for currency in currencies {
        let own: Rows = rates.iter().filter(|row| row["quote"] == currency).cloned().collect();
        assert!(own.iter().map(|row| date(&row["date"])).eq(working.iter().copied()), "{currency}");
        let numbers: Vec<_> = own.iter().map(|row| parse_decimal(&row["rate"]).unwrap().value).collect();
        assert!(numbers.iter().all(|rate| rate.scale() <= 4), "{currency}");
        let (least, most) = (numbers.iter().min().unwrap(), numbers.iter().max().unwrap());
        let is_level = *most < *least * parse_decimal("2").unwrap().value;
        assert!(is_level && most > least, "{currency}: {least} to {most}");
    }
}

#[test]
fn only_a_market_with_foreign_currencies_has_rates() {
    assert!(!market("without-rates", 30, 1).contains_key("fx.csv"));
    assert!(!rows(&market("with-rates", 31, 1), "fx").is_empty());
}
