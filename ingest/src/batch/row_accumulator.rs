//! Row accumulator: collects parsed rows by kind and cuts them into record batches of the target size.
//!
//! Invariant: the batches depend only on the rows and their order, never on time or on the machine.

use std::sync::mpsc::{Receiver, SyncSender};

use chrono::{DateTime, NaiveDate, Utc};
use event_log::record_batch::Body;
use market::bars::{BarVersion, MISSING};
use market::day::{date_of, day_number};
use market::event::{
    Action, Dividend, Etf, EventRow, Fundamentals, FxRate, Holding, Kind, MarketSession, Reject, Security,
    Split,
};
use market::metrics::currency::Currency;
use market::metrics::merge::latest_session_date;
use market::sibling_payments::SiblingDetector;
use market::symbol::Symbol;

use crate::batch::load_stats::LoadStats;
use crate::batch::price_evidence::PriceEvidence;
use crate::batch::row_buffers::{LoadHoldings, MAX_POSITIONS, PendingRows, SymbolTable};
use crate::normalize::{ExchangeZone, RowError};
use crate::price::bar_parser::{PriceCells, ScaledBar};
use crate::price::price_batch::{PriceBatch, RareFields, ScaledPriceRow};

/// Maximum length of the text of a rejected row, in bytes. Longer texts are truncated.
const REJECT_BYTES: usize = 4096;

/// Maximum length of a table header that rejects contain, in bytes. Rejects of tables with a longer header have no
/// header, and their export has the text of the row.
const HEADER_BYTES: usize = 4096;

/// Accumulated rows of one file, to be encoded as one or more record batches.
pub(crate) enum RowChunk {
    Prices(PriceBatch, Vec<Symbol>),
    /// Rows of a kind other than price, and the line of the first row.
    Rows(Body, u64),
}

/// Provenance of a row: line, vendor's id, revision, action and observation time.
pub(crate) type RowProvenance = EventRow<()>;

/// Accumulator for the rows of one file.
pub(crate) struct RowAccumulator {
    label: String,
    /// Header of the table; `None` if the file is not a table, or if the header is longer than [`HEADER_BYTES`].
    columns: Option<String>,
    /// Observation time that a row gets if the file has none.
    pub(crate) observed_at: DateTime<Utc>,
    today: NaiveDate,
    newest_day: i32,
    /// Time zone of the exchange, for a file that gives each date as the UTC time of midnight in this zone.
    pub(crate) zone: Option<ExchangeZone>,
    /// Currency of dividends without a currency; `None` for that of their security.
    dividend_currency: Option<Currency>,
    /// Currency and unit of the prices; `None` for that of their security.
    price_currency: Option<Currency>,
    chunk_sender: SyncSender<RowChunk>,
    /// Receiver of emptied price batches, which the encoder returns for reuse.
    used_batches: Receiver<PriceBatch>,
    pub stats: LoadStats,
    pub holdings: LoadHoldings,
    prices: PriceBatch,
    symbols: SymbolTable,
    price_rows: u64,
    pending: PendingKinds,
    same_day: SiblingDetector,
    /// Evidence about dividends, collected from the file's prices. It is sent to the encoder after all rows.
    pub(crate) evidence: PriceEvidence,
    rejects: PendingRows<Reject>,
}

/// Declares a row buffer for each listed kind, and the methods of [`RowAccumulator`] that fill and empty these buffers.
/// The buffers of prices, holdings and rejects are declared elsewhere.
macro_rules! pending_kinds {
    ($($(#[$meta:meta])* $name:ident, $field:ident: $record:ty, $kind:ident, $body:ident;)*) => {
        #[derive(Default)]
        struct PendingKinds {
            $($field: PendingRows<EventRow<$record>>,)*
        }

        impl RowAccumulator {
            $($(#[$meta])*
            pub(crate) fn $name(&mut self, row: EventRow<$record>, bytes: usize) {
                *self.stats.rows.entry(Kind::$kind).or_default() += 1;
                self.stats.coverage.add_record(&row.record);
                self.stats.retractions.record_row(&row);
                if let Some((rows, line)) = self.pending.$field.push(row.line, row, bytes) {
                    self.send(RowChunk::Rows(Body::$body(rows), line));
                }
            })*

            /// Sends the pending rows of each kind that this macro lists.
            fn flush_rows(&mut self) {
                $(if let Some((rows, line)) = self.pending.$field.take() {
                    self.send(RowChunk::Rows(Body::$body(rows), line));
                })*
            }
        }
    };
}

pending_kinds! {
    add_checked_security, securities: Security, Security, Securities;
    /// Adds a dividend. Its `sibling_amounts` (amounts of other payments of the same day) must already be set.
    add_paired_dividend, dividends: Dividend, Dividend, Dividends;
    add_split, splits: Split, Split, Splits;
    add_fundamentals, fundamentals: Fundamentals, Fundamentals, Fundamentals;
    add_etf, etfs: Etf, Etf, Etfs;
    add_fx_rate, fx_rates: FxRate, Fx, FxRates;
    add_session, sessions: MarketSession, Session, Sessions;
}

impl RowAccumulator {
    /// Creates an accumulator for the file `label`. It sends chunks to `chunk_sender`, and receives used price batches
    /// from `used_batches`.
    pub(crate) fn new(
        label: &str,
        observed_at: DateTime<Utc>,
        today: NaiveDate,
        chunk_sender: SyncSender<RowChunk>,
        used_batches: Receiver<PriceBatch>,
    ) -> Self {
        Self {
            label: label.to_owned(),
            columns: None,
            observed_at,
            today,
            newest_day: day_number(latest_session_date(today)),
            zone: None,
            dividend_currency: None,
            price_currency: None,
            chunk_sender,
            used_batches,
            stats: LoadStats::default(),
            holdings: LoadHoldings::default(),
            prices: PriceBatch::default(),
            symbols: SymbolTable::default(),
            price_rows: 0,
            pending: PendingKinds::default(),
            same_day: SiblingDetector::default(),
            evidence: PriceEvidence::default(),
            rejects: PendingRows::default(),
        }
    }

    /// Sets the header of the file's table. Each rejected row is stored with this header.
    pub(crate) fn set_table_header(&mut self, header: &str) {
        self.columns = (header.len() <= HEADER_BYTES).then(|| header.to_owned());
    }

    /// Sets the currency of dividends without one, and the currency of the prices.
    pub(crate) fn set_currency(&mut self, of_dividends: Option<Currency>, of_prices: Option<Currency>) {
        (self.dividend_currency, self.price_currency) = (of_dividends, of_prices);
    }

    /// Provenance of a row in a format without id, revision or observation time.
    pub(crate) fn default_provenance(&self, line: u64) -> RowProvenance {
        let (action, observed_at) = (Action::Put, self.observed_at);
        EventRow { line, id: None, revision: 0, action, observed_at, security_ref: None, record: () }
    }

    /// Adds a security. A security without a currency gets US dollars. In all `add_` functions, `bytes` is the length of
    /// the row's source text.
    pub(crate) fn add_security(&mut self, mut row: EventRow<Security>, bytes: usize) {
        if row.record.currency.is_empty() {
            row.record.currency = Currency::dollar().code;
            if row.action == Action::Put {
                self.stats.securities_without_currency.add(|| row.record.symbol.clone());
            }
        }
        self.stats.currencies.add_row(&row);
        self.add_checked_security(row, bytes);
    }

    /// Adds a dividend with the type that the vendor gives; empty for formats without dividend types. The detection of
    /// two different payments on one day uses this type.
    pub(crate) fn add_dividend(&mut self, mut row: EventRow<Dividend>, type_text: &str, bytes: usize) {
        if let Some(currency) = &self.dividend_currency {
            currency.assign(&mut row.record);
        }
        if row.record.currency.is_empty() {
            self.stats.missing_currencies.add_dividends(&row.record.symbol, 1);
        }
        self.same_day.set_siblings(&mut row, type_text);
        self.add_paired_dividend(row, bytes);
    }

    /// Adds a holding of a fund. A row without a holding retracts all holdings of the fund and date.
    pub(crate) fn add_holding_or_retraction(
        &mut self,
        etf: Symbol,
        as_of: NaiveDate,
        row: EventRow<Option<Holding>>,
    ) -> Result<(), RowError> {
        if !self.holdings.has_room() {
            let message =
                format_args!("a load has at most {MAX_POSITIONS} positions: load the funds in parts");
            return Err(RowError::new("too_many_holdings", message));
        }
        *self.stats.rows.entry(Kind::Holding).or_default() += 1;
        self.stats.coverage.add_symbol(&etf);
        self.stats.coverage.add_date(Kind::Holding, as_of);
        self.holdings.add_row(etf, as_of, row);
        Ok(())
    }

    /// Adds a price row. `symbol` is spelled as in the file.
    pub(crate) fn add_price(
        &mut self,
        symbol: &[u8],
        date: NaiveDate,
        cells: &PriceCells<'_>,
        version: BarVersion,
        line: u64,
    ) -> Result<(), RowError> {
        let day = day_number(date);
        if day > self.newest_day {
            return Err(RowError::future_date("date", date, self.today));
        }
        let bar = if version.retracted { ScaledBar::VOID } else { ScaledBar::parse_cells(cells)? };
        if self.prices.is_full() {
            self.flush_prices();
        }
        let symbol = self.symbols.id_of(symbol)?;
        let ScaledBar { scale, open, high, low, close, vwap, volume, trade_count, rounded } = bar;
        let extra = (vwap != MISSING || trade_count != MISSING).then_some(RareFields { vwap, trade_count });
        if version.retracted {
            self.stats.retractions.record_price(self.symbols.names[symbol as usize].clone(), date);
        }
        let row = ScaledPriceRow { symbol, day, version: 0, scale, line, open, high, low, close, volume };
        self.prices.push(row, extra, version);
        self.price_rows += 1;
        self.stats.rounded += rounded;
        Ok(())
    }

    /// Batch with all price rows of the file; `None` if they do not fit into one batch. At the end of a split-adjusted
    /// file, the reader sets the basis day in this batch.
    pub(crate) fn uncut_prices_mut(&mut self) -> Option<&mut PriceBatch> {
        (self.price_rows <= crate::price::price_batch::BATCH_ROWS as u64).then_some(&mut self.prices)
    }

    /// Fails for a date later than tomorrow.
    pub(crate) fn check_not_future(&self, column: &str, date: NaiveDate) -> Result<(), RowError> {
        if date > latest_session_date(self.today) {
            Err(RowError::future_date(column, date, self.today))
        } else {
            Ok(())
        }
    }

    pub(crate) fn add_reject(&mut self, line: u64, raw: &[u8], error: RowError) {
        let raw = String::from_utf8_lossy(&raw[..raw.len().min(REJECT_BYTES)]).into_owned();
        let reject = Reject {
            file: self.label.clone(),
            line,
            reason: error.reason.to_owned(),
            message: error.message,
            row: raw,
            columns: self.columns.clone(),
        };
        self.stats.count_reject(error.reason, &reject);
        let bytes = reject.row.len() + reject.message.len();
        if let Some((rows, line)) = self.rejects.push(line, reject, bytes) {
            self.send(RowChunk::Rows(Body::Rejects(rows), line));
        }
    }

    fn flush_prices(&mut self) {
        if !self.prices.is_empty() {
            self.remove_conflicts();
            let days = self.prices.day_range();
            days.into_iter()
                .flatten()
                .for_each(|day| self.stats.coverage.add_date(Kind::Price, date_of(day)));
            let put = self.prices.priced_symbols();
            for (id, symbol) in (0..).zip(&self.symbols.names) {
                match put.as_ref().is_none_or(|put| put.contains(&id)) {
                    true => {
                        self.stats.coverage.add_priced_symbol(symbol);
                        if let Some(currency) = &self.price_currency {
                            self.evidence.add_price_currency(symbol, currency);
                            self.stats.currencies.add_price_currency(symbol, currency);
                        }
                    }
                    false => self.stats.coverage.add_symbol(symbol),
                }
            }
            let empty = self.used_batches.try_recv().unwrap_or_default();
            let batch = std::mem::replace(&mut self.prices, empty);
            let symbols = self.symbols.take();
            self.send(RowChunk::Prices(batch, symbols));
        }
    }

    /// Removes the rows with another close of a day than the day's first row.
    fn remove_conflicts(&mut self) {
        for conflict in self.prices.remove_conflicts(&self.symbols.names) {
            self.stats.conflicting_prices.sample.add(|| conflict.clone());
            self.evidence.conflicts.push(conflict);
        }
    }

    /// Sends the pending rows, and returns the statistics and the holdings. The caller collects the holdings of all
    /// files.
    pub(crate) fn finish(mut self) -> (LoadStats, LoadHoldings) {
        self.flush_prices();
        self.flush_rows();
        self.send_evidence();
        if let Some((rows, line)) = self.rejects.take() {
            self.send(RowChunk::Rows(Body::Rejects(rows), line));
        }
        if self.price_rows > 0 {
            self.stats.rows.insert(Kind::Price, self.price_rows);
        }
        (self.stats, self.holdings)
    }

    /// Sends the evidence about dividends that the prices contain. Evidence records are not rows of the file, so the
    /// statistics do not count them.
    fn send_evidence(&mut self) {
        let mut pending = PendingRows::default();
        for (line, record) in std::mem::take(&mut self.evidence).into_records() {
            let row = self.default_provenance(line).with_record(record);
            if let Some((rows, line)) = pending.push(line, row, 0) {
                self.send(RowChunk::Rows(Body::Evidence(rows), line));
            }
        }
        if let Some((rows, line)) = pending.take() {
            self.send(RowChunk::Rows(Body::Evidence(rows), line));
        }
    }

    /// Sends a chunk to the encoder. If the load has stopped, the receiver is closed and the chunk is lost. The reader
    /// notices the stop at its next read.
    fn send(&self, chunk: RowChunk) {
        let _ = self.chunk_sender.send(chunk);
    }
}
