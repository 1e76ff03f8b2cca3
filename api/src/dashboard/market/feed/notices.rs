//! `/feed/{key}/events.atom`: notices of securities as an Atom feed (RFC 4287).

use atom_syndication::{Category, Content, Entry, Feed, Generator, Link, Person, Text};
use axum::http::HeaderValue;
use axum::response::Response;
use chrono::{DateTime, FixedOffset, Utc};
use market::decimal::ExactDecimal;
use market::row::{DividendRow, Notice, NoticeCause, NoticeEvent, NoticeRow, SplitRow};
use rust_decimal::Decimal;

use crate::account::portfolios::Portfolio;
use crate::answer::{Access, Free, private_response};
use crate::dashboard::market::api_calls::encode;
use crate::error::ApiError;
use crate::parameters::{ParameterError, SymbolList, parameters, parse_holdings};
use crate::read::changes::{ListedSecurities, NoticeSelection, read_notice};
use crate::read::{QueryError, lookup};
use crate::routes::portfolio::transactions::transaction_symbols;

const NEWEST: &str = include_str!("../../../../queries/changes/newest_notices.sql");
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/atom+xml; charset=utf-8");
/// Maximum number of symbols.
const MOST: usize = 100;

parameters! {
    /// Parameters of the feed.
    pub(crate) struct FeedParameters by reader {
        /// Comma-separated symbols, at most 100.
        symbols: Option<SymbolList> = reader.read_symbols(MOST),
        /// Name of a saved portfolio, whose symbols are used.
        portfolio: Option<String> = reader.read_text("portfolio", 64),
        /// Events, comma-separated. Default: all.
        events: Option<Vec<NoticeEvent>> = reader.read_words("events", NoticeEvent::ALL),
        /// Causes, comma-separated. Default: `data`.
        cause: Option<Vec<NoticeCause>> = reader.read_words("cause", NoticeCause::ALL),
        /// If true, events are included that were more than ten sessions old when they became known.
        backfill: bool = reader.read_bool_or("backfill", false),
    }
}

impl FeedParameters {
    /// Name of the portfolio whose symbols are used.
    pub(super) fn portfolio(&self) -> Option<&str> {
        self.portfolio.as_deref().filter(|_| self.symbols.is_none())
    }
}

/// Symbols of a saved portfolio.
pub(super) fn symbols_of(portfolio: Portfolio) -> Result<SymbolList, ApiError> {
    let unreadable = |error: String| ApiError::Unavailable(format!("cannot read the portfolio: {error}"));
    if portfolio.transactions.is_empty() {
        let parsed = parse_holdings(&portfolio.holdings).map_err(|error| unreadable(error.to_string()))?;
        return Ok(parsed.symbols);
    }
    transaction_symbols(portfolio.transactions).map_err(unreadable)
}

/// Responds with the newest notices of the requested securities, or with 304.
pub(super) async fn respond(
    access: Access<Free, FeedParameters>,
    if_none_match: Option<&HeaderValue>,
    origin: &str,
    portfolio: Option<SymbolList>,
) -> Result<Response, ApiError> {
    let FeedParameters { symbols, portfolio: name, events, cause, backfill } = access.parameters;
    let (list, title) = match (symbols, portfolio, name) {
        (Some(list), None, None) => (list, "Dividend events".to_owned()),
        (None, Some(list), Some(name)) => (list, format!("Dividend events of {name}")),
        _ => return Err(one_source_error()),
    };
    let generation = access.generation?;
    let selection = NoticeSelection::new(events, cause, backfill);
    let find = async {
        let resolved = lookup::resolve_symbols(&generation, &list).await?;
        let securities = ListedSecurities::find(&generation, &list).await?.all();
        let NoticeSelection { events, causes, backfill } = &selection;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&securities, events, causes, backfill];
        Ok::<_, QueryError>((resolved, lookup::run_query(&generation, NEWEST, &parameters).await?))
    };
    let (resolved, rows) = generation.run_while_responsive(find).await?;
    let unknown = list.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    let unknown: Vec<&str> = unknown.map(|(symbol, _)| symbol.text.as_str()).collect();
    let notices = rows.iter().map(read_notice).collect::<Result<Vec<Notice>, _>>()?;
    let mut entries: Vec<Entry> = Vec::new();
    for notice in &notices {
        let id = entry_id(notice);
        // A record that is declared again after it was cancelled has the same id.
        if !entries.iter().any(|entry| entry.id == id) {
            entries.push(entry(notice, id, origin));
        }
    }
    let target = access.target.split_once("/events.atom").map_or("", |(_, query)| query);
    let pages = Link { href: format!("{origin}/calendar"), rel: "alternate".to_owned(), ..Link::default() };
    let feed = Feed {
        title: Text::plain(title),
        id: uuid_of(&["feed", target]),
        updated: entries.first().map_or_else(|| fixed(DateTime::UNIX_EPOCH), |entry| entry.updated),
        authors: vec![Person { name: "Dividend data".to_owned(), ..Person::default() }],
        generator: Some(Generator { value: "dividend-data-service".to_owned(), ..Generator::default() }),
        links: vec![pages],
        subtitle: (!unknown.is_empty())
            .then(|| Text::plain(format!("Unknown symbols: {}", unknown.join(", ")))),
        entries,
        ..Feed::default()
    };
    let text = feed.to_string();
    let tag = HeaderValue::try_from(format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]));
    let tag = tag.unwrap_or_else(|_| HeaderValue::from_static("\"0\""));
    Ok(private_response(text, MEDIA_TYPE, &tag, if_none_match))
}

fn one_source_error() -> ApiError {
    let error = "is required, or the name of a saved portfolio as portfolio; only one of them";
    ApiError::Parameters(vec![ParameterError::new("symbols", error, None)])
}

fn entry(notice: &Notice, id: String, origin: &str) -> Entry {
    let (title, details) = (title(notice), details(notice));
    let href = format!("{origin}/s/{}", encode(&notice.symbol));
    let category = |term: &str| Category { term: term.to_owned(), ..Category::default() };
    Entry {
        title: Text::plain(title),
        id,
        updated: fixed(notice.known_at),
        links: vec![Link { href, rel: "alternate".to_owned(), ..Link::default() }],
        categories: vec![category(notice.event.as_str()), category(&notice.symbol)],
        content: Some(Content {
            value: Some(details),
            content_type: Some("text".to_owned()),
            ..Content::default()
        }),
        ..Entry::default()
    }
}

fn fixed(at: DateTime<Utc>) -> DateTime<FixedOffset> {
    at.fixed_offset()
}

/// Id of a notice, which is the same in every feed and after a rebuild of the data.
fn entry_id(notice: &Notice) -> String {
    let record = notice.id.as_deref().unwrap_or(&notice.symbol);
    let day = match notice.event {
        // A record may be corrected or cancelled several times.
        NoticeEvent::Corrected | NoticeEvent::Cancelled => notice.known_at.to_rfc3339(),
        _ => notice.date.to_string(),
    };
    uuid_of(&[notice.event.as_str(), record, &day])
}

fn uuid_of(parts: &[&str]) -> String {
    let hash = blake3::hash(parts.join("\n").as_bytes()).to_hex();
    let group = |from: usize, to: usize| &hash[from..to];
    // Version 8, variant 1 (RFC 9562).
    format!(
        "urn:uuid:{}-{}-8{}-a{}-{}",
        group(0, 8),
        group(8, 12),
        group(12, 15),
        group(15, 18),
        group(18, 30)
    )
}

fn title(notice: &Notice) -> String {
    let (symbol, date) = (&notice.symbol, notice.date);
    match (&notice.before, &notice.after) {
        (before, Some(NoticeRow::Dividend(row))) => dividend_title(notice, before.as_ref(), row),
        (Some(NoticeRow::Dividend(row)), None) => {
            format!("{symbol} cancelled its dividend of {}, ex-date {date}", amount(row))
        }
        (before, Some(NoticeRow::Split(row))) => split_title(notice, before.as_ref(), row),
        (Some(NoticeRow::Split(row)), None) => {
            format!("{symbol} cancelled its split {}, ex-date {date}", row.text)
        }
        (_, Some(NoticeRow::Event(row))) => match (&row.from_symbol, &row.to_symbol) {
            (Some(from), Some(to)) => format!("{from} is renamed to {to} on {date}"),
            (None, Some(to)) => format!("{symbol} is merged into {to}, last trading day {date}"),
            _ => format!("{symbol} is delisted, last trading day {date}"),
        },
        (_, Some(NoticeRow::Status(row))) => match notice.event {
            NoticeEvent::Resumed => format!("{symbol} pays dividends again"),
            _ => format!("{symbol} no longer pays dividends: {}", row.dividend_status),
        },
        (_, None) => format!("{symbol}: {}", notice.event),
    }
}

fn dividend_title(notice: &Notice, before: Option<&NoticeRow>, row: &DividendRow) -> String {
    let (symbol, date) = (&notice.symbol, notice.date);
    let amount_text = match notice.event {
        NoticeEvent::Declared => format!("{} {}", regular_part(row)[0], row.currency),
        NoticeEvent::Special => format!("{} {}", row.special_amount.unwrap_or(row.amount), row.currency),
        _ => amount(row),
    };
    let before = match before {
        Some(NoticeRow::Dividend(before)) => Some(before),
        _ => None,
    };
    let change = before.map(|before| {
        let [before, after] = [before, row].map(|row| regular_part(row)[1]);
        format!("from {before} to {after} {}", row.currency)
    });
    let change = change.unwrap_or_else(|| format!("to {amount_text}"));
    match notice.event {
        NoticeEvent::Raised => format!("{symbol} raised its dividend {change}, ex-date {date}"),
        NoticeEvent::Cut => format!("{symbol} cut its dividend {change}, ex-date {date}"),
        NoticeEvent::Special => {
            format!("{symbol} declared a special dividend of {amount_text}, ex-date {date}")
        }
        NoticeEvent::SpinOff => format!("{symbol} spins off shares, ex-date {date}"),
        NoticeEvent::Split => format!("{symbol} distributes shares, ex-date {date}"),
        NoticeEvent::Cancelled => format!("{symbol} cancelled its dividend of {amount_text}, ex-date {date}"),
        NoticeEvent::Corrected => {
            format!("{symbol}: the dividend of {amount_text} was corrected, ex-date {date}")
        }
        NoticeEvent::ExDateSoon => {
            format!("{symbol} trades without its dividend of {amount_text} from {date}")
        }
        _ => format!("{symbol} declared a dividend of {amount_text}, ex-date {date}"),
    }
}

/// Regular part of a dividend as declared, and adjusted for splits.
fn regular_part(row: &DividendRow) -> [ExactDecimal; 2] {
    let special = row.special_amount.map_or(Decimal::ZERO, |special| special.0);
    let regular = row.amount.0 - special;
    if regular.is_zero() {
        return [row.amount, row.adjusted_amount];
    }
    [regular, row.adjusted_amount.0 - special * row.split_factor.0].map(|part| ExactDecimal(part.normalize()))
}

fn split_title(notice: &Notice, before: Option<&NoticeRow>, row: &SplitRow) -> String {
    let (symbol, date) = (&notice.symbol, notice.date);
    match (notice.event, before) {
        (NoticeEvent::SpinOff, _) => format!("{symbol} spins off shares, ex-date {date}"),
        (NoticeEvent::Corrected, Some(NoticeRow::Split(before))) => {
            format!(
                "{symbol}: split {} on {} instead of {} on {}",
                row.text, date, before.text, before.ex_date
            )
        }
        (NoticeEvent::Cancelled, _) => format!("{symbol} cancelled its split {}, ex-date {date}", row.text),
        _ => format!("{symbol} splits {}, ex-date {date}", row.text),
    }
}

fn amount(row: &DividendRow) -> String {
    format!("{} {}", row.amount, row.currency)
}

/// Facts of the notice, one per line.
fn details(notice: &Notice) -> String {
    let mut lines = vec![format!("Event: {}", notice.event), format!("Date: {}", notice.date)];
    let row = |label: &str, row: &Option<NoticeRow>| match row {
        Some(NoticeRow::Dividend(row)) => {
            let day =
                |day: Option<chrono::NaiveDate>| day.map_or("unknown".to_owned(), |day| day.to_string());
            let (amount, kind, ex_date) = (amount(row), row.r#type, row.ex_date);
            Some(format!(
                "{label}: {amount} ({kind}), ex-date {ex_date}, payment date {}",
                day(row.payment_date)
            ))
        }
        Some(NoticeRow::Split(row)) => {
            Some(format!("{label}: {} ({}), ex-date {}", row.text, row.r#type, row.ex_date))
        }
        Some(NoticeRow::Status(row)) => Some(format!("{label}: {}", row.dividend_status)),
        Some(NoticeRow::Event(_)) | None => None,
    };
    lines.extend(row("Before", &notice.before));
    lines.extend(row("After", &notice.after));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use market::row::NoticeKind;
    use serde_json::json;

    #[test]
    fn titles_have_the_part_of_a_dividend_that_the_event_is_about() {
        let row = |amount: &str, special: Option<&str>| -> Option<NoticeRow> {
            let row = json!({
                "id": "d", "symbol": "KO", "ex_date": "2024-06-14", "amount": amount, "amount_status": "declared",
                "adjusted_amount": amount, "currency": "USD", "type": "regular", "reading": "combined",
                "special_amount": special, "frequency": "quarterly", "status": "declared", "split_factor": "1",
                "source": "feed", "revision": 0, "updated_at": "2024-06-01T00:00:00Z",
            });
            NoticeRow::parse(NoticeKind::Dividends, &row.to_string()).ok()
        };
        let title_of = |event| {
            let notice = Notice {
                event,
                symbol: "KO".to_owned(),
                kind: NoticeKind::Dividends,
                id: None,
                date: chrono::NaiveDate::default(),
                cause: NoticeCause::Data,
                known_at: DateTime::UNIX_EPOCH,
                is_backfill: false,
                before: row("0.45", None),
                after: row("1.40", Some("1.00")),
            };
            title(&notice).split(", ").next().unwrap_or_default().to_owned()
        };
        for (event, expected) in [
            (NoticeEvent::Cut, "KO cut its dividend from 0.45 to 0.4 USD"),
            (NoticeEvent::Special, "KO declared a special dividend of 1.00 USD"),
            (NoticeEvent::Declared, "KO declared a dividend of 0.4 USD"),
            (NoticeEvent::Cancelled, "KO cancelled its dividend of 1.40 USD"),
        ] {
            assert_eq!(title_of(event), expected);
        }
    }
}
