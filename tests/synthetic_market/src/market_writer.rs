//! Writer of the generated market. Threads generate blocks of securities in parallel, each block with its own price
//! file. Rows of all other kinds are written in block order.

mod adjusted_prices;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use market::event::SecurityType;

use super::exchange_rates::RATE_COLUMNS;
use super::planted_faults::{FaultKind, FaultyRows};
use super::price_walk::BarFault;
use super::security_plan::SecurityPlan;
use super::security_shape::shape_of;
use super::share_changes::ShareChanges;
use super::synthetic_market::SyntheticMarket;
use super::{distributions, funds, planted_faults, price_walk, regular_ex_dates, security_rows};
use adjusted_prices::with_adjusted_close;

const SECURITIES: &str = "securities.csv";
const RATES: &str = "fx.csv";
const PRICE_COLUMNS: &str = "symbol,date,open,high,low,close,volume";
/// Number of price bytes that are buffered before a write.
const CHUNK: usize = 1 << 20;

/// Name and header of each file that contains rows of all securities. Price files are different: each contains only one
/// block of securities.
const SHARED_FILES: [(&str, &str); 5] = [
    (
        "dividends.csv",
        "symbol,ex_date,amount,currency,type,frequency,declaration_date,record_date,payment_date",
    ),
    ("splits.csv", "symbol,ex_date,from,to,declaration_date,payable_date,type"),
    ("fundamentals.csv", security_rows::FUNDAMENTALS_COLUMNS),
    ("etfs.csv", funds::ETF_COLUMNS),
    ("holdings.csv", funds::HOLDING_COLUMNS),
];

/// Name and header of the list of planted faults. The ending `.list` makes `ingest load` skip the file.
const PLANTED: (&str, &str) = ("planted.list", "symbol,date,kind");
/// Folder of the price files with an adjusted close.
const ADJUSTED: &str = "adjusted";

/// Counts of bars, rows, exchange rates, planted faults, files and bytes. `rows` has one count for each file of
/// [`SHARED_FILES`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowCounts {
    pub(super) bars: u64,
    pub(super) rows: [u64; 5],
    pub(super) rates: u64,
    pub(super) planted: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Rows that one block of securities adds to the files of [`SHARED_FILES`], and to the list of planted faults.
#[derive(Default)]
struct SecurityBlock {
    text: [Vec<u8>; 5],
    planted: Vec<u8>,
    counts: RowCounts,
}

/// Writer that writes the blocks in order, although threads may complete them in any order.
struct OrderedWriter {
    files: Vec<BufWriter<File>>,
    /// Rows of the list of planted faults.
    planted: Vec<u8>,
    waiting: BTreeMap<u64, SecurityBlock>,
    next: u64,
    counts: RowCounts,
}

impl OrderedWriter {
    fn create(dir: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        let mut counts = RowCounts { files: SHARED_FILES.len() as u64, ..RowCounts::default() };
        for (name, header) in SHARED_FILES {
            let mut file = BufWriter::new(create(&dir.join(name))?);
            writeln!(file, "{header}")?;
            counts.bytes += header.len() as u64 + 1;
            files.push(file);
        }
        Ok(Self { files, planted: Vec::new(), waiting: BTreeMap::new(), next: 0, counts })
    }

    fn add(&mut self, number: u64, block: SecurityBlock) -> anyhow::Result<()> {
        self.waiting.insert(number, block);
        while let Some(block) = self.waiting.remove(&self.next) {
            for (file, text) in self.files.iter_mut().zip(&block.text) {
                file.write_all(text).context("cannot write")?;
                self.counts.bytes += text.len() as u64;
            }
            self.planted.extend_from_slice(&block.planted);
            self.counts.planted += block.counts.planted;
            self.counts.bars += block.counts.bars;
            self.counts.bytes += block.counts.bytes;
            self.counts.files += block.counts.files + 1;
            self.counts.rows.iter_mut().zip(block.counts.rows).for_each(|(sum, rows)| *sum += rows);
            self.next += 1;
        }
        Ok(())
    }

    /// Completes the files. Writes the list of planted faults if the market has faults.
    fn finish(mut self, dir: &Path, market: &SyntheticMarket) -> anyhow::Result<RowCounts> {
        self.files.iter_mut().try_for_each(Write::flush).context("cannot write")?;
        if market.fault_percent > 0 {
            let (name, header) = PLANTED;
            let text = [header.as_bytes(), b"\n", &self.planted].concat();
            create(&dir.join(name))?
                .write_all(text.as_ref())
                .with_context(|| format!("cannot write {name}"))?;
            self.counts.files += 1;
            self.counts.bytes += text.len() as u64;
        }
        Ok(self.counts)
    }
}

/// Writes all files of a market with up to `threads` threads. The bytes do not depend on the number of threads.
pub(super) fn write_market(
    market: &SyntheticMarket,
    dir: &Path,
    threads: usize,
    progress: &ProgressBar,
) -> anyhow::Result<RowCounts> {
    prepare(dir)?;
    let security_bytes = write_securities(market, dir)?;
    let size = block_size(market.symbols);
    let blocks = market.symbols.div_ceil(size);
    let next_block = AtomicU64::new(0);
    let writer = Mutex::new(OrderedWriter::create(dir)?);
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next_block.fetch_add(1, Ordering::Relaxed);
            if number >= blocks {
                return Ok(());
            }
            let symbols = number * size..((number + 1) * size).min(market.symbols);
            // After an error, the other threads start no further block.
            let block = write_block(market, symbols, dir, number, progress)
                .inspect_err(|_| next_block.store(blocks, Ordering::Relaxed))?;
            writer.lock().map_err(|_| anyhow::anyhow!("another thread failed"))?.add(number, block)?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut results = workers.into_iter().map(|worker| worker.join());
        results
            .try_for_each(|result| result.map_err(|_| anyhow::anyhow!("a thread of the generator failed"))?)
    })?;
    let mut counts =
        writer.into_inner().map_err(|_| anyhow::anyhow!("a thread failed"))?.finish(dir, market)?;
    counts.files += 1;
    counts.bytes += security_bytes;
    write_rates(market, dir, &mut counts)?;
    Ok(counts)
}

/// Number of securities in one price file.
fn block_size(symbols: u64) -> u64 {
    symbols.div_ceil(8).clamp(15, 500)
}

/// Creates the folder, or removes the files of an earlier run from it. Fails if the folder contains any other file.
fn prepare(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    if paths.is_empty() {
        return Ok(());
    }
    let marked = fs::read_to_string(dir.join(SECURITIES)).is_ok_and(|text| text.contains(OWN_FOLDER_MARKER));
    ensure!(
        marked && paths.iter().all(|path| is_own(path)),
        "{} is not empty: name an empty or new folder",
        dir.display()
    );
    paths.iter().try_for_each(|path| {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.with_context(|| format!("cannot replace {}", path.display()))
    })
}

/// Text in the first security row of each generated `securities.csv`. It shows that the generator wrote the files of
/// the folder.
const OWN_FOLDER_MARKER: &str = "SPY,Synthetic Benchmark Fund,";

fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_shared = SHARED_FILES.iter().any(|(known, _)| *known == name);
    is_shared
        || name == PLANTED.0
        || name == ADJUSTED
        || name == SECURITIES
        || name == RATES
        || (name.starts_with("prices-") && name.ends_with(".csv"))
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create_new(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Writes the securities first, so that a later run recognizes the folder of an interrupted run.
fn write_securities(market: &SyntheticMarket, dir: &Path) -> anyhow::Result<u64> {
    let mut text = format!("{}\n", security_rows::SECURITY_COLUMNS).into_bytes();
    (0..market.symbols)
        .for_each(|index| security_rows::write_security(&SecurityPlan::new(index, market), &mut text));
    create(&dir.join(SECURITIES))?.write_all(&text).context("cannot write securities.csv")?;
    Ok(text.len() as u64)
}

/// Writes the exchange rates, if a security of the market needs them.
fn write_rates(market: &SyntheticMarket, dir: &Path, counts: &mut RowCounts) -> anyhow::Result<()> {
    if !(0..market.symbols).any(|index| shape_of(index).needs_rates()) {
        return Ok(());
    }
    let mut text = format!("{RATE_COLUMNS}\n").into_bytes();
    counts.rates = market.rates.write(&mut text);
    counts.files += 1;
    counts.bytes += text.len() as u64;
    create(&dir.join(RATES))?.write_all(&text).with_context(|| format!("cannot write {RATES}"))
}

fn write_block(
    market: &SyntheticMarket,
    symbols: std::ops::Range<u64>,
    dir: &Path,
    number: u64,
    progress: &ProgressBar,
) -> anyhow::Result<SecurityBlock> {
    let path = &dir.join(format!("prices-{:04}.csv", number + 1));
    let mut file = create(path)?;
    let mut prices = Vec::with_capacity(2 * CHUNK);
    prices.extend_from_slice(PRICE_COLUMNS.as_bytes());
    prices.push(b'\n');
    let mut block = SecurityBlock::default();
    let end = symbols.end;
    for index in symbols {
        write_one(&SecurityPlan::new(index, market), dir, &mut prices, &mut block)?;
        if prices.len() >= CHUNK || index + 1 == end {
            block.counts.bytes += prices.len() as u64;
            file.write_all(&prices).with_context(|| format!("cannot write {}", path.display()))?;
            prices.clear();
        }
        progress.inc(1);
    }
    Ok(block)
}

fn write_one(
    plan: &SecurityPlan<'_>,
    dir: &Path,
    prices: &mut Vec<u8>,
    block: &mut SecurityBlock,
) -> anyhow::Result<()> {
    let ex_dates = regular_ex_dates::regular_ex_dates(plan);
    let changes = ShareChanges::from_plan(plan, &ex_dates);
    let planned = distributions::plan_distributions(plan, &ex_dates, &changes);
    let FaultyRows { price_distributions, rows: distribution_rows, fault } =
        planted_faults::plant(plan, &changes, planned);
    let bars = fault.map_or(BarFault::NONE, |fault| fault.bars);
    let begin = prices.len();
    let ending = price_walk::write_bars(plan, &changes, &price_distributions, &bars, prices);
    let [dividends, splits, fundamentals, etfs, holdings] = &mut block.text;
    let rows = &mut block.counts.rows;
    distributions::write_dividends(plan, &distribution_rows, dividends);
    rows[0] += distribution_rows.len() as u64;
    rows[1] += changes.write(plan, splits);
    if let Some(fault) = fault {
        rows[1] += fault.write_split(plan, splits);
        fault.write(plan, &mut block.planted);
        block.counts.planted += 1;
        if fault.kind == FaultKind::DividendsMissing {
            let text = with_adjusted_close(&prices.split_off(begin), plan.start, &price_distributions);
            block.counts.bytes += text.len() as u64;
            block.counts.files += 1;
            write_adjusted(dir, &plan.symbol, &text)?;
        }
    }
    if plan.shape.figures {
        security_rows::write_fundamentals(plan, &changes, ending, fundamentals);
        rows[2] += 1;
    }
    if plan.shape.kind == SecurityType::Etf {
        funds::write_etf(plan, &changes, ending, etfs);
        rows[3] += 1;
        rows[4] += funds::write_holdings(plan, &changes, ending, holdings);
    }
    block.counts.bars += ending.bars;
    Ok(())
}

fn write_adjusted(dir: &Path, symbol: &str, text: &[u8]) -> anyhow::Result<()> {
    let folder = dir.join(ADJUSTED);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{symbol}.csv"));
    create(&path)?.write_all(text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = std::env::temp_dir().join(format!("generate-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (target, link) = (folder.join("target"), folder.join("dividends.csv"));
        fs::write(&target, "of another program").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let created = create(&link);
        let text = fs::read_to_string(&target).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((created.is_err(), text.as_str()), (true, "of another program"));
    }
}
