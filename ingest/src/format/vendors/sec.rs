//! SEC EDGAR company facts: shares outstanding, and twelve months of earnings, revenue and cash flows.
//!
//! A later filing for the same period corrects an earlier filing. The file has no ex-dates, so the reader creates no
//! dividend rows.

use std::collections::BTreeMap;

use chrono::{Days, Months, NaiveDate};
use rust_decimal::Decimal;

use super::{
    Encoding, FeedReadError, FileHead, Kind, RawJson, RecordBuilder, RowAccumulator, SymbolScope, VendorFile,
    VendorFormat, parse_date, read_documents,
};

pub(crate) static FORMAT: VendorFormat = VendorFormat {
    name: "sec",
    about: "SEC EDGAR company facts JSON, one company a file",
    needs: "an object with cik, entityName and facts is needed",
    detect,
    read,
};

/// Twelve-month figures: canonical name, unit, and SEC facts in order of preference.
const TRAILING: [(&str, &str, &[&str]); 6] = [
    ("eps_ttm", "USD/shares", &["EarningsPerShareDiluted", "EarningsPerShareBasicAndDiluted"]),
    (
        "revenue_ttm",
        "USD",
        &["RevenueFromContractWithCustomerExcludingAssessedTax", "Revenues", "SalesRevenueNet"],
    ),
    ("net_income_ttm", "USD", &["NetIncomeLoss", "ProfitLoss"]),
    ("operating_cash_flow_ttm", "USD", &["NetCashProvidedByUsedInOperatingActivities"]),
    ("capital_expenditure_ttm", "USD", &["PaymentsToAcquirePropertyPlantAndEquipment"]),
    ("dividends_paid_ttm", "USD", &["PaymentsOfDividendsCommonStock", "PaymentsOfDividends"]),
];

/// Taxonomies and names of the SEC facts that contain a share count.
const SHARES: [(&str, &str); 2] =
    [("dei", "EntityCommonStockSharesOutstanding"), ("us-gaap", "CommonStockSharesOutstanding")];

fn detect(head: &FileHead) -> Option<Result<SymbolScope, String>> {
    let found = head.encoding != Encoding::Csv
        && head.has_column(&["entityname"])
        && head.has_column(&["facts", "cik"]);
    found.then_some(Ok(SymbolScope::File))
}

fn read(file: VendorFile<'_>, rows: &mut RowAccumulator) -> Result<(), FeedReadError> {
    let symbol = file.file_symbol()?.to_string();
    read_documents(file, rows, |document, _, rows| {
        for (number, (as_of, figures)) in (1..).zip(figures_of(document)) {
            rows.stats.records += 1;
            let mut draft = RecordBuilder::new(Kind::Fundamentals)
                .with_value("symbol", Some(symbol.as_str()))
                .with_value("as_of", Some(as_of.to_string()))
                .with_value("reported_currency", Some("USD"));
            for (name, figure) in &figures {
                draft = draft.with_value(name, Some(figure.to_string()));
            }
            if figures.contains_key("eps_ttm") {
                draft = draft.with_value("eps_as_of", Some(as_of.to_string()));
            }
            if figures.contains_key("shares_outstanding") {
                draft = draft.with_value("shares_as_of", Some(as_of.to_string()));
            }
            let text = format!("{as_of} {figures:?}");
            if let Err(fault) = draft.validate_into(number, text.len(), rows) {
                rows.add_reject(number, text.as_bytes(), fault);
            }
        }
    })
}

/// Figures of a company, by date and by canonical column name.
fn figures_of(document: RawJson<'_>) -> BTreeMap<NaiveDate, BTreeMap<&'static str, Decimal>> {
    let mut figures: BTreeMap<NaiveDate, BTreeMap<&'static str, Decimal>> = BTreeMap::new();
    let Some(facts) = document.get("facts") else { return figures };
    let part = |name: &str| facts.get(name);
    for (part, name) in SHARES.iter().filter_map(|(section, name)| Some((part(section)?, *name))) {
        let Some(fact) = part.get(name) else { continue };
        for ((_, end), count) in periods(fact, "shares") {
            if count > Decimal::ZERO {
                figures.entry(end).or_default().entry("shares_outstanding").or_insert(count);
            }
        }
    }
    let Some(statements) = part("us-gaap") else { return figures };
    for (name, unit, concepts) in TRAILING {
        for fact in concepts.iter().filter_map(|concept| statements.get(concept)) {
            for (end, sum) in trailing(&periods(fact, unit)) {
                figures.entry(end).or_default().entry(name).or_insert(sum);
            }
        }
    }
    figures
}

/// First and last day of a fact's period. For a share count, both are the same day.
type Period = (NaiveDate, NaiveDate);

/// Values of an SEC fact by period. If several filings report one period, the value in the newest filing is used.
fn periods(fact: RawJson<'_>, unit: &str) -> BTreeMap<Period, Decimal> {
    let mut filed: BTreeMap<Period, (String, Decimal)> = BTreeMap::new();
    let values = fact.get("units").and_then(|units| units.get(unit));
    for value in values.map(RawJson::items).unwrap_or_default() {
        let members = value.members();
        let text =
            |name: &str| members.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.text());
        let date = |name: &str| text(name).and_then(|text| parse_date(text.as_bytes()));
        let number = text("val").and_then(|text| market::decimal::parse_figure(&text).ok());
        let (Some(end), Some(number)) = (date("end"), number) else { continue };
        let filing = text("filed").unwrap_or_default().into_owned();
        let known = filed.entry((date("start").unwrap_or(end), end)).or_default();
        if filing >= known.0 {
            *known = (filing, number.value);
        }
    }
    filed.into_iter().map(|(period, (_, value))| (period, value)).collect()
}

/// Sums of twelve months, by the last day of the twelve months.
fn trailing(periods: &BTreeMap<Period, Decimal>) -> BTreeMap<NaiveDate, Decimal> {
    let length = |(start, end): Period| (end - start).num_days();
    let years: BTreeMap<NaiveDate, Decimal> = periods
        .iter()
        .filter(|(period, _)| (350..=380).contains(&length(**period)))
        .map(|((_, end), value)| (*end, *value))
        .collect();
    let mut sums = years.clone();
    for (&(start, end), so_far) in periods.iter().filter(|(period, _)| (80..=290).contains(&length(**period)))
    {
        // Twelve months: the previous fiscal year, plus this year to date, minus the same months of the year before.
        let year = start.checked_sub_days(Days::new(1)).and_then(|last| nearest(&years, last));
        let before = [start, end].map(|day| day.checked_sub_months(Months::new(12)));
        let [Some(start_before), Some(end_before)] = before else { continue };
        let same_part =
            periods.iter().find(|((from, to), _)| are_near(*from, start_before) && are_near(*to, end_before));
        if let (Some(year), Some((_, same_part))) = (year, same_part) {
            sums.entry(end).or_insert(year + so_far - same_part);
        }
    }
    sums
}

/// True if two dates are at most ten days apart. Fiscal periods often end on a certain weekday, so that the date
/// differs from year to year.
fn are_near(a: NaiveDate, b: NaiveDate) -> bool {
    (a - b).num_days().abs() <= 10
}

fn nearest(years: &BTreeMap<NaiveDate, Decimal>, day: NaiveDate) -> Option<Decimal> {
    years.iter().find(|(end, _)| are_near(**end, day)).map(|(_, value)| *value)
}
