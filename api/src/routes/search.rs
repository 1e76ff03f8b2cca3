//! `GET /v1/search`: search by symbol, former symbol, ISIN or name. Typing errors are tolerated.

use std::borrow::Cow;

use market::decimal::ExactDecimal;
use market::event::SecurityType;
use market::row::TableRow;
use market::{table_row, text_enum};
use rust_decimal::Decimal;

use super::endpoint;
use crate::answer::{Free, HandlerContext, RenderedBody, render_page};
use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::parameters::facets::{FilterField, trigram_similarity, trigrams};
use crate::parameters::{Direction, Output, Page, PageOptions, SortValue, Sortable, is_among, parameters};
use crate::read::memory_tables::{NameIndex, SearchNames, SecurityRow, StockTable};
use crate::render::envelope::List;

const PAGING: PageOptions = PageOptions {
    default_limit: 20,
    most: 100,
    keys: &["score", "market_cap", "symbol", "name"],
    order: &[("score", Direction::Descending), ("market_cap", Direction::Descending)],
};
/// Minimum trigram similarity of a name and the search text, in thousandths. A less similar name does not match.
const ALIKE: u32 = 350;
/// Score in thousandths if a word of a name differs from the search text by one typing error. A name that contains the
/// exact search text has a higher score.
const ONE_ERROR: u32 = 520;
/// Score in thousandths if a word of a name differs from the search text by two typing errors.
const TWO_ERRORS: u32 = 460;
/// Score in thousandths if the symbol differs from the search text by one typing error.
const SIMILAR_SYMBOL: u32 = 300;
/// Minimum length of a search text that is compared with similar symbols. Too many symbols resemble a shorter text.
const SIMILAR_LENGTH: usize = 3;

text_enum! {
    /// Kind of match. `name_fuzzy`: the name is only similar to the search text. `symbol_fuzzy`: the symbol differs
    /// from the search text by one typing error.
    pub enum Match {
        Symbol = "symbol", FormerSymbol = "former_symbol", SymbolPrefix = "symbol_prefix", Isin = "isin",
        Name = "name", NameFuzzy = "name_fuzzy", SymbolFuzzy = "symbol_fuzzy",
    }
}

table_row! {
    /// Security that a search found.
    pub struct SearchResult {
        /// Canonical ticker.
        "symbol" symbol: String,
        /// Name of the company or fund.
        "name" name: String,
        /// Market identifier code of the primary listing.
        "exchange" exchange: Option<String>,
        /// Security type.
        "type" r#type: SecurityType,
        /// Country of domicile.
        "country" country: Option<String>,
        /// ISO 4217 currency of the security's prices.
        "currency" currency: String,
        /// Sector name.
        "sector" sector: Option<String>,
        /// True if the security still trades.
        "is_active" is_active: bool,
        /// Score of the match, from 0 to 1.
        "score" score: ExactDecimal,
        /// Kind of match. `name_fuzzy`: the name is only similar to the search text. `symbol_fuzzy`: the symbol differs
        /// from the search text by one typing error.
        "match" r#match: Match,
        /// Headline dividend yield, percent.
        "dividend_yield" dividend_yield: Option<ExactDecimal>,
    }
}

parameters! {
    /// Parameters of the search.
    pub(crate) struct SearchParameters by reader {
        /// Search text: a symbol, an ISIN or a part of a name, 1 to 64 characters.
        q: String = {
            let q = reader.read_text("q", 64).unwrap_or_default();
            reader.require_given("q");
            q
        },
        /// Security types, comma-separated.
        r#type: Option<Vec<SecurityType>> = reader.read_words("type", SecurityType::ALL),
        /// Exchanges by market identifier code or name, comma-separated.
        exchange: Option<Vec<String>> = reader.read_names(FilterField::Exchange),
        /// Includes securities that no longer trade.
        include_inactive: bool = reader.read_bool_or("include_inactive", false),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(SearchResult::COLUMNS),
    }
}

/// Search text, normalized for comparison with symbols, ISINs and names.
struct SearchText {
    symbols: Vec<String>,
    isin: String,
    name: String,
    trigrams: Vec<u32>,
}

impl SearchText {
    fn of(q: &str) -> Self {
        let name = q.trim().to_lowercase();
        let symbol = market::symbol::Symbol::parse(q).ok();
        let symbols = symbol
            .iter()
            .flat_map(market::symbol::Symbol::spellings)
            .map(|symbol| symbol.to_string())
            .collect();
        Self {
            symbols,
            isin: q.trim().to_uppercase().trim_start_matches("ISIN:").to_owned(),
            trigrams: trigrams(&name),
            name,
        }
    }

    /// Score of a security's match in thousandths, and the kind of match; `None` without a match.
    fn score(&self, symbol: &str, known: &SearchNames) -> Option<(u32, Match)> {
        let first = self.symbols.first().map_or("", String::as_str);
        if self.symbols.iter().any(|wanted| wanted == symbol) {
            return Some((1_000, Match::Symbol));
        }
        if known.isin.as_deref() == Some(self.isin.as_str()) {
            return Some((1_000, Match::Isin));
        }
        if known.former_symbols.iter().any(|former| self.symbols.contains(former)) {
            return Some((950, Match::FormerSymbol));
        }
        if !first.is_empty() && symbol.starts_with(first) {
            let beyond = u32::try_from(symbol.len() - first.len()).unwrap_or(0);
            return Some((900 - 10 * beyond.min(20), Match::SymbolPrefix));
        }
        let is_similar = || first.len() >= SIMILAR_LENGTH && strsim::levenshtein(symbol, first) == 1;
        let mistyped = || is_similar().then_some((SIMILAR_SYMBOL, Match::SymbolFuzzy));
        self.score_name(known).or_else(mistyped)
    }

    fn score_name(&self, known: &SearchNames) -> Option<(u32, Match)> {
        let found = known.name.find(&self.name).filter(|_| !self.name.is_empty());
        let starts_word =
            found.is_some_and(|at| at == 0 || !known.name[..at].ends_with(char::is_alphanumeric));
        match found {
            Some(_) if known.name == self.name => Some((880, Match::Name)),
            Some(0) => Some((800, Match::Name)),
            Some(_) if starts_word => Some((700, Match::Name)),
            Some(_) if self.name.chars().count() >= 3 => Some((550, Match::Name)),
            _ => {
                let likeness = trigram_similarity(&self.trigrams, &known.trigrams);
                let likeness = (likeness >= ALIKE).then_some(likeness / 2);
                likeness.max(self.score_mistyped_word(&known.name)).map(|score| (score, Match::NameFuzzy))
            }
        }
    }

    /// Score of a name if one of its words differs from the search text by one or two typing errors. `None` if no word
    /// is that similar, or if the search text is too short or too long.
    fn score_mistyped_word(&self, name: &str) -> Option<u32> {
        let length = self.name.chars().count();
        let most = match length {
            4..=7 => 1,
            8..=20 => 2,
            _ => return None,
        };
        let words = name.split(|c: char| !c.is_alphanumeric());
        let similar = words.filter(|word| word.chars().count().abs_diff(length) <= most);
        let errors = similar.map(|word| strsim::levenshtein(word, &self.name)).min()?;
        (errors <= most).then_some(if errors == 1 { ONE_ERROR } else { TWO_ERRORS })
    }
}

endpoint! {
    /// Search by symbol or company
    ///
    /// Best matches first. Exact symbols, ISINs and former symbols come first, then beginnings of symbols, then names
    /// that contain the search text, then similar names and symbols.
    get "/v1/search", tag "Search", returns "Securities, best match first",
    search(Access<Free, SearchParameters>) -> List<SearchResult> { respond(page) }
}

async fn page(context: HandlerContext<SearchParameters>) -> Result<RenderedBody, ApiError> {
    let stock_table = context.app.memory_tables.stocks(&context.generation).await?;
    let names = context.app.memory_tables.names(&context.generation, &stock_table).await?;
    run_low_priority(move || found(&context, &stock_table, &names)).await?
}

fn found(
    context: &HandlerContext<SearchParameters>,
    stock_table: &StockTable,
    names: &NameIndex,
) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let wanted = SearchText::of(&asked.q);
    let eligible = stock_table.rows.iter().filter(|member| {
        (asked.include_inactive || member.stock.is_active)
            && is_among(asked.r#type.as_ref(), Some(&member.stock.r#type))
            && is_among(asked.exchange.as_ref(), member.stock.exchange.as_ref())
    });
    let fit = |member| {
        let member: &SecurityRow = member;
        let known = names.get(&member.stock.symbol)?;
        wanted.score(&member.stock.symbol, known).map(|(score, why)| SearchHit { score, why, member })
    };
    let found: Vec<SearchHit<'_>> = eligible.filter_map(fit).collect();
    let page = context.select_page(&asked.page, stock_table.version, &found);
    let rows: Vec<SearchResult> = page.rows.into_iter().map(SearchResult::of).collect();
    render_page(&asked.output, &rows, &page.meta, page.version)
}

/// Matching security, with the score of the match in thousandths.
struct SearchHit<'a> {
    score: u32,
    why: Match,
    member: &'a SecurityRow,
}

impl Sortable for SearchHit<'_> {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        match key {
            "score" => Some(SortValue::Number(self.score.into())),
            _ => self.member.stock.sort_value(key),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        self.member.stock.tie_breaker()
    }
}

impl SearchResult {
    fn of(hit: &SearchHit<'_>) -> Self {
        let stock = hit.member.stock.clone();
        Self {
            symbol: stock.symbol,
            name: stock.name,
            exchange: stock.exchange,
            r#type: stock.r#type,
            country: stock.country,
            currency: stock.currency,
            sector: stock.sector,
            is_active: stock.is_active,
            score: ExactDecimal(Decimal::new(hit.score.into(), 3).normalize()),
            r#match: hit.why,
            dividend_yield: stock.dividend_yield,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(q: &str, symbol: &str, name: &str, expected: Option<Match>) {
        let name = name.to_lowercase();
        let known = SearchNames {
            isin: Some("US1912161007".to_owned()),
            former_symbols: vec!["OLD".to_owned()],
            trigrams: trigrams(&name),
            name,
        };
        assert_eq!(SearchText::of(q).score(symbol, &known).map(|(_, why)| why), expected, "{q}");
    }

    #[test]
    fn a_mistyped_word_is_nearer_than_a_similar_beginning() {
        let text = SearchText::of("coka");
        let score = |name: &str| {
            let names = SearchNames {
                isin: None,
                former_symbols: Vec::new(),
                trigrams: trigrams(name),
                name: name.to_owned(),
            };
            text.score("X", &names).map(|(score, _)| score)
        };
        assert_eq!((score("coca-cola co"), score("cosan")), (Some(ONE_ERROR), Some(200)));
    }

    #[test]
    fn securities_are_found_by_what_people_type() {
        check("brk-b", "BRK.B", "Berkshire Hathaway", Some(Match::Symbol));
        check("us1912161007", "KO", "Coca-Cola Co", Some(Match::Isin));
        check("old", "NEW", "New Name", Some(Match::FormerSymbol));
        check("BRK", "BRK.B", "Berkshire Hathaway", Some(Match::SymbolPrefix));
        check("cola", "KO", "Coca-Cola Co", Some(Match::Name));
        check("berkshir hathawy", "BRK.B", "Berkshire Hathaway Inc", Some(Match::NameFuzzy));
        check("zzz", "KO", "Coca-Cola Co", None);
        check("coka", "KO", "Coca-Cola Co", Some(Match::NameFuzzy));
        check("koo", "KO", "Coca-Cola Co", Some(Match::SymbolFuzzy));
        check("kk", "KO", "Coca-Cola Co", None);
        check("Ä;", "KO", "Coca-Cola Co", None);
    }
}
