//! Sections of the proposed map about the notation of values: dates, numbers, units, words, rows and constants.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDateTime;
use market::event::Kind;
use telemetry::counted;

use super::account_rows::RepeatedDays;
use super::cell_formats::{
    NumberNotation, currency_of, dividend_type, plausible_formats, split_currency_unit, split_direction,
};
use super::column_choice::is_unix;
use super::map_writer::{MapWriter, quoted};
use super::table_profile::{ColumnContent, ColumnProfile};
use crate::format::{MONEY, factor_in_name, meaning_of};
use crate::normalize::{UtcTimeInterpretation, from_unix_seconds, interpret_utc_times};

/// Unit of amounts in hundredths of a currency that the name does not tell.
const CENTS: &str = "cents";

impl MapWriter<'_> {
    /// Writes the date formats and the time zone of UTC times. Formats that fit the cells equally well, but give
    /// different dates, are written as a choice.
    pub(super) fn write_dates(&mut self) {
        let (profile, proposal) = (self.profile, self.proposal);
        let (mut choices, mut formats, mut zones) =
            (Vec::<(&[String], Vec<&str>)>::new(), Vec::new(), Vec::new());
        for column in proposal.columns.iter().filter(|column| column.name.ends_with("date")) {
            let column = &profile.columns[column.index];
            match &column.content {
                ColumnContent::Dates(formats) => choices.push((formats, column.texts())),
                ColumnContent::UtcTimes(interpretation) => zones.push(*interpretation),
                _ if is_unix(column.sample()) => {
                    let (format, per_second) =
                        if column.sample().len() > 11 { ("unix_ms", 1000) } else { ("unix", 1) };
                    let ticks = column.cells.iter().filter_map(|cell| cell.parse::<i64>().ok());
                    let times: Vec<NaiveDateTime> =
                        ticks.filter_map(|ticks| from_unix_seconds(ticks / per_second)).collect();
                    formats.push(format.to_owned());
                    zones.push(interpret_utc_times(&times));
                }
                _ => {}
            }
        }
        if let Some(formats) = &profile.dates_across {
            choices.push((formats, profile.columns.iter().map(|column| column.name.as_str()).collect()));
        }
        let certain: BTreeSet<&String> = choices
            .iter()
            .filter_map(|(formats, _)| Some(formats.first()?).filter(|_| formats.len() == 1))
            .collect();
        let mut ambiguous = Vec::new();
        for (found, cells) in &choices {
            // Several formats may fit a column. If exactly one of them is the only fitting format of another column,
            // this format is used. Otherwise, the plausibility of the dates decides.
            let known: Vec<String> =
                found.iter().filter(|format| certain.contains(format)).cloned().collect();
            let is_daily = self.is_kind(Kind::Price);
            let left = if known.len() == 1 { known } else { plausible_formats(found, cells, is_daily) };
            match left.as_slice() {
                [format] if !formats.contains(format) => formats.push(format.clone()),
                [_] => {}
                _ => ambiguous = left,
            }
        }
        let is_uncertain = |zone: &UtcTimeInterpretation| {
            matches!(zone, UtcTimeInterpretation::Uncertain(_) | UtcTimeInterpretation::Times)
        };
        zones.sort_by_key(|zone| !is_uncertain(zone));
        let zone = zones.into_iter().find(|zone| *zone != UtcTimeInterpretation::AsWritten);
        let is_plain = formats.iter().all(|format| format == "YYYY-MM-DD");
        if is_plain && ambiguous.is_empty() && zone.is_none() {
            return;
        }
        self.line("\n[dates]");
        match (ambiguous.as_slice(), formats.as_slice()) {
            ([first, others @ ..], _) => self.line(format!(
                "# format = \"{first}\" # or {}: the dates fit both; choose one",
                others.join(", ")
            )),
            _ if is_plain => {}
            (_, [format]) => self.line(format!("format = \"{format}\"")),
            (_, formats) => self.line(format!("format = {formats:?}")),
        }
        match zone {
            None | Some(UtcTimeInterpretation::AsWritten) => {}
            Some(UtcTimeInterpretation::LocalDays(zone)) => {
                self.line(format!("zone = \"{zone}\" # all UTC times are midnights in this zone; rows get the dates of this zone"))
            }
            Some(UtcTimeInterpretation::Uncertain(zone)) => self.line(format!("# zone = \"{zone}\" # check: the UTC times may be midnights in this zone, or times of day on the written date")),
            Some(UtcTimeInterpretation::Times) => self.line("# zone = \"America/New_York\" # the times are not midnights: set the exchange's time zone"),
        }
    }

    /// Currency units in the cells of prices and amounts, in order of appearance.
    pub(super) fn currency_units(&self) -> Vec<&'static str> {
        let mut units = Vec::new();
        for column in self.value_columns(&MONEY) {
            for unit in column.cells.iter().filter_map(|cell| split_currency_unit(cell).1) {
                if !units.contains(&unit) {
                    units.push(unit);
                }
            }
        }
        units
    }

    /// Columns of the file for these canonical columns. In a wide table, all columns of numbers.
    fn value_columns(&self, names: &[&str]) -> impl Iterator<Item = &ColumnProfile> {
        let is_wide = self.proposal.wide.is_some();
        let mapped: Vec<usize> = names.iter().filter_map(|name| self.proposal.column(name)).collect();
        let columns = self.profile.columns.iter().enumerate();
        columns
            .filter(move |(index, column)| {
                mapped.contains(index) || is_wide && column.content == ColumnContent::Numbers
            })
            .map(|(_, column)| column)
    }

    pub(super) fn write_numbers(&mut self, units: &[&'static str]) {
        let notation = &self.profile.notation;
        let strip = sign_to_strip(units);
        if *notation != NumberNotation::default() || strip.is_some() {
            self.line("\n[numbers]");
            if notation.comma {
                self.line("decimal = \",\"");
            }
            if let Some(sign) = notation.thousands {
                self.line(format!("thousands = \"{sign}\""));
            }
            if let Some(sign) = strip {
                self.line(format!("strip = \"{sign}\" # signs to remove from numbers"));
            }
            if notation.suffixes {
                self.line("suffixes = true # 45.2M is 45200000");
            }
        }
        if !units.is_empty() && strip.is_none() {
            self.line("\n# Unit in the cells = its currency.\n[units]");
            for unit in units {
                self.line(format!("{} = \"{}\"", quoted(unit), currency_of(unit).unwrap_or_default()));
            }
        }
    }

    /// True if every word in the column with the dividend types has a known meaning.
    pub(super) fn has_known_types(&self) -> bool {
        let column = self.column("type");
        column.is_some_and(|column| column.cells.iter().all(|cell| dividend_type(cell).is_some()))
    }

    pub(super) fn write_aliases(&mut self) {
        let (name, meaning_of): (_, fn(&str) -> Option<&'static str>) = match self.proposal.kind {
            Some(Kind::Dividend) if self.has_known_types() => ("type", dividend_type),
            Some(Kind::Split) => ("direction", split_direction),
            _ => return,
        };
        let Some(column) = self.column(name) else { return };
        let words = column.cells.iter().filter_map(|cell| Some((cell.as_str(), meaning_of(cell)?)));
        let meanings: BTreeMap<&str, &str> = words.collect();
        if meanings.iter().all(|(word, meaning)| word.eq_ignore_ascii_case(meaning)) {
            return;
        }
        self.line(format!("\n# Word of the file = canonical word.\n[aliases.{name}]"));
        for (word, meaning) in meanings.iter().take(50) {
            self.line(format!("{} = \"{meaning}\"", quoted(word)));
        }
    }

    /// Writes the selection of rows and the words for missing values.
    pub(super) fn write_rows(&mut self) {
        let (profile, proposal) = (self.profile, self.proposal);
        let all = || (0..profile.columns.len()).collect();
        let mut absent =
            profile.absent_words(&if proposal.wide.is_some() { all() } else { proposal.indexes() });
        // Some words for absent values are also tickers. A word in the symbol column is taken as a ticker, and is not
        // written as a word for absent values.
        if let Some(symbols) = self.column("symbol") {
            absent.retain(|word| !symbols.cells.contains(word));
        }
        let mut required: Vec<&str> = Vec::new();
        let day = proposal.day_column();
        if let Some(index) = proposal.column(day)
            && (profile.has_totals || !profile.absent_words(&[index]).is_empty())
        {
            required.push(day);
        }
        // Some files write a zero for a day without a dividend or split.
        let value = if self.is_kind(Kind::Split) { "ratio" } else { "amount" };
        let is_zero = |cell: &String| cell.bytes().all(|byte| b"-+0.,".contains(&byte));
        if !self.is_kind(Kind::Price)
            && proposal.kind.is_some()
            && self.value_columns(&[value]).any(|column| column.cells.iter().any(is_zero))
        {
            required.push(value);
        }
        let repeated = self.repeated_days();
        if absent.is_empty() && required.is_empty() && proposal.only.is_none() && repeated.is_none() {
            return;
        }
        self.line("\n[rows]");
        if let Some((column, words)) = &proposal.only {
            let name = quoted(&profile.columns[*column].name);
            self.line(format!("only = {{ {name} = {words:?} }} # other rows are skipped"));
        }
        if let Some(repeated) = repeated {
            self.write_repeated_days(&repeated);
        }
        if !absent.is_empty() {
            let absent = absent.iter().collect::<Vec<_>>();
            self.line(format!("absent = {absent:?} # words for a missing value"));
        }
        if !required.is_empty() {
            self.line(format!(
                "skip_without = {required:?} # rows without this value, or with 0, are skipped"
            ));
        }
    }

    /// Writes the choice between rows of one symbol and day whose closes differ.
    fn write_repeated_days(&mut self, repeated: &RepeatedDays) {
        let rows = counted(repeated.rows, "row");
        let who = if self.column("symbol").is_some() { "symbol and day" } else { "day" };
        let conflict = format!("# Another close than an earlier row of the same {who}: {rows}.");
        let Some((name, words)) = &repeated.column else {
            return self.line(format!("{conflict} Does a column name the symbol or the market?"));
        };
        self.line(format!("{conflict} The rows differ in column {name}. Choose:"));
        for word in words.iter().take(10) {
            self.line(format!("# only = {{ {} = {} }}", quoted(name), quoted(word)));
        }
    }

    /// Writes the constants of a map for prices or dividends: adjustment for splits, and currency. Other maps have
    /// none. `units` are the currency units in the cells.
    pub(super) fn write_constants(&mut self, units: &[&'static str]) {
        let is_price = self.is_kind(Kind::Price);
        if !is_price && !self.is_kind(Kind::Dividend) {
            return;
        }
        let (about, key, is_adjusted, reason) = if is_price {
            let about = "raw: prices as traded. For prices adjusted for splits";
            (about, "basis", self.is_adjusted(), "inferred from the columns or the file name")
        } else {
            let about = "as_declared: amounts as paid. For amounts adjusted for later splits";
            let reason = "Yahoo adjusts amounts; for amounts as paid, use as_declared";
            (about, "amount_basis", self.is_yahoo() || self.is_named_adjusted(), reason)
        };
        self.line(format!("\n# The default basis is {about}, set:"));
        if is_adjusted {
            self.line(format!("[constants]\n{key} = \"split_adjusted\" # check: {reason}"));
        } else {
            self.line(format!("# [constants]\n# {key} = \"split_adjusted\""));
        }
        let in_name = self.unit_in_name();
        let sign = sign_to_strip(units);
        let currency = sign.and_then(currency_of).or(in_name.filter(|unit| *unit != CENTS));
        let is_missing = self.column("currency").is_none() && (units.is_empty() || sign.is_some());
        match currency.filter(|_| is_missing) {
            Some(currency) => {
                if !is_adjusted {
                    self.line("[constants]");
                }
                let values = if is_price { "prices" } else { "amounts" };
                self.line(format!("currency = \"{currency}\" # check: is it the currency of the {values}?"));
            }
            None if is_missing && is_price => {
                self.line("# currency = \"GBX\" # for prices in pence: they are converted to pounds");
            }
            None if is_missing => {
                self.line("# currency = \"EUR\" # the file names no currency: the default is the currency of the security");
            }
            None => {}
        }
        if is_price {
            self.line("\n# For prices in another unit (here: ten-thousandths of a dollar), set an exact factor in quotes:");
            self.line("# [scale]\n# close = \"0.0001\"");
        }
        let in_cents = MONEY.into_iter().filter(|name| in_name == Some(CENTS) && self.column(name).is_some());
        let mut scales: Vec<String> =
            in_cents.map(|name| format!("{name} = \"0.01\" # check: the name says cents")).collect();
        for column in &self.proposal.columns {
            let name = &self.profile.columns[column.index].name;
            if let Some(factor) = factor_in_name(column.name, name) {
                scales.push(format!("{} = \"{factor}\" # check: the name is {name}", column.name));
            }
        }
        if !scales.is_empty() {
            self.line("\n[scale]");
            scales.into_iter().for_each(|scale| self.line(scale));
        }
    }

    /// Unit in the name of the amount or the close: EUR for `Dividend (EUR)`, GBX for `close_pence`, and [`CENTS`] for
    /// `Amount (cents)`.
    fn unit_in_name(&self) -> Option<&'static str> {
        let name = &self.column("amount").or_else(|| self.column("close"))?.name;
        let remark = name.split(['(', '[']).nth(1).map(|remark| remark.trim_end_matches([')', ']', ' ']));
        let parts = name.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '$');
        let unit_of = |text: &str| meaning_of("unit in a name", text);
        // A single letter such as p is a unit only as the whole remark.
        let mut words = parts.filter(|part| part.len() > 1 || !part.is_ascii() || *part == "$");
        remark.and_then(unit_of).or_else(|| words.find_map(unit_of))
    }
}

/// Currency sign that the map can remove from all cells: `$`, `€` or `£`. `None` if the cells have no unit, several
/// units or any other unit.
fn sign_to_strip(units: &[&'static str]) -> Option<&'static str> {
    match units {
        [unit] if ["$", "€", "£"].contains(unit) => Some(unit),
        _ => None,
    }
}
