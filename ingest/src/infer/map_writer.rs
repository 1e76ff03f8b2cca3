//! Writer of the proposed map as TOML. Each choice has a comment with its reason or with a check for the user.

use std::fmt::Write;

use market::event::Kind;

use super::cell_formats::is_ticker;
use super::column_names::{canonical_column, kind_of};
use super::table_profile::{ColumnContent, TableProfile};
use crate::format::normalize_column_name;

/// Columns of prices in the order that headerless files have them.
const PRICE_ORDER: [&str; 5] = ["open", "high", "low", "close", "volume"];

/// Fields of a wide table, and the pattern of its column names.
struct WideGuess {
    pattern: &'static str,
    /// Vendor's field names with canonical names; empty if every cell is a close.
    fields: Vec<(&'static str, String)>,
}

/// Writes a map.
pub(super) fn write_toml(profile: &TableProfile, label: &str) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_map(&mut text, profile, label);
    text
}

fn write_map(out: &mut String, profile: &TableProfile, label: &str) -> std::fmt::Result {
    let wide = wide_guess(profile);
    let kind = if wide.is_some() { Kind::Price } else { kind_of(&profile.names) };
    let columns = columns(profile, kind, wide.as_ref());
    writeln!(out, "# A first map of {label}. Check every line, then: ingest load … --map THIS --dry-run")?;
    writeln!(
        out,
        "\n# What a row is: price, dividend, split, security, fundamentals, etf, holding or session."
    )?;
    writeln!(out, "kind = \"{kind}\"")?;
    write_file(out, profile)?;
    writeln!(
        out,
        "\n# Canonical column = the file's column, by its name, or by its number from 1.\n[columns]"
    )?;
    for (name, place, sample) in &columns {
        writeln!(out, "{name} = {place}{}", comment(sample))?;
    }
    write_not_taken(out, profile, kind, wide.as_ref())?;
    write_whose(out, profile, &columns, wide.as_ref())?;
    if let Some(wide) = &wide {
        writeln!(
            out,
            "\n# Columns are called by their symbols: a row of the file is a row of each symbol.\n[wide]"
        )?;
        writeln!(out, "name = \"{}\"", wide.pattern)?;
        if wide.fields.is_empty() {
            writeln!(out, "value = \"close\"")?;
        }
        writeln!(out, "# skip = [\"Average\"]")?;
    }
    write_dates(out, profile, &columns)?;
    write_signs(out, profile)?;
    if !profile.absent.is_empty() {
        writeln!(out, "\n[rows]\nabsent = {:?} # words for no value", profile.absent)?;
    }
    if kind == Kind::Price {
        writeln!(out, "\n# Prices are raw, as traded. For prices adjusted for splits, set the basis:")?;
        if is_adjusted(profile, label) {
            writeln!(out, "[constants]\nbasis = \"split_adjusted\" # check: other columns suggest it")?;
        } else {
            writeln!(out, "# [constants]\n# basis = \"split_adjusted\"")?;
        }
        writeln!(out, "\n# Are prices in other units, a factor in quotes brings them to dollars, exactly:")?;
        writeln!(out, "# [scale]\n# close = \"0.0001\"")?;
    } else if kind == Kind::Dividend && !columns.iter().any(|(name, ..)| *name == "currency") {
        writeln!(out, "\n[constants]\ncurrency = \"USD\" # check: what the amounts are in")?;
        if profile.names.iter().any(|name| name == "Dividends") {
            writeln!(out, "amount_basis = \"split_adjusted\" # check: Yahoo's are; as_declared are as paid")?;
        }
    }
    Ok(())
}

/// True if prices are probably adjusted for splits. Vendors with an adjusted close also adjust the close for splits.
/// Yahoo's older layout, with the adjusted close last, does not.
fn is_adjusted(profile: &TableProfile, label: &str) -> bool {
    let place = |words: &[&str]| {
        let called =
            |name: &String| name.split('|').any(|part| words.contains(&normalize_column_name(part).as_str()));
        profile.names.iter().position(called)
    };
    let adjusted = place(&["adjclose"]).filter(|at| place(&["volume"]).is_none_or(|volume| *at < volume));
    adjusted.or_else(|| place(&["adjustedclose", "closeadj"])).is_some()
        || label.to_lowercase().contains("adj")
}

fn write_file(out: &mut String, profile: &TableProfile) -> std::fmt::Result {
    let delimiter =
        if profile.delimiter == b'\t' { "tab".to_owned() } else { char::from(profile.delimiter).to_string() };
    writeln!(out, "\n[file]\ndelimiter = \"{delimiter}\"")?;
    if profile.windows_1252 {
        writeln!(out, "encoding = \"windows-1252\" # the text is not UTF-8")?;
    }
    if profile.first_line > 1 {
        writeln!(out, "first_line = {} # the lines above are not part of the table", profile.first_line)?;
    }
    match profile.header {
        0 => writeln!(out, "header = 0 # no line of names"),
        1 => Ok(()),
        lines => writeln!(out, "header = {lines} # lines of names; those of a column are joined by a bar"),
    }
}

/// Mapped columns: name, place and first cell.
fn columns(
    profile: &TableProfile,
    kind: Kind,
    wide: Option<&WideGuess>,
) -> Vec<(&'static str, String, String)> {
    let mut columns: Vec<(&'static str, String, String)> = Vec::new();
    if let Some(wide) = wide {
        let date = profile.contents.iter().position(|content| matches!(content, ColumnContent::Dates(_)));
        columns.extend(date.map(|at| ("date", (at + 1).to_string(), profile.samples[at].clone())));
        columns.extend(wide.fields.iter().map(|(name, word)| (*name, quoted(word), String::new())));
        return columns;
    }
    if profile.header == 0 {
        return by_content(profile);
    }
    for (index, name) in profile.names.iter().enumerate() {
        let Some(column) = canonical_column(kind, name) else { continue };
        if !columns.iter().any(|(known, ..)| *known == column) {
            let twice = profile.names.iter().filter(|other| *other == name).count() > 1;
            let place = if twice { (index + 1).to_string() } else { quoted(name) };
            columns.push((column, place, profile.samples[index].clone()));
        }
    }
    let date = profile.contents.iter().position(|content| matches!(content, ColumnContent::Dates(_)));
    let dated = columns.iter().any(|(name, ..)| matches!(*name, "date" | "ex_date"));
    if let (Some(at), false, Kind::Price) = (date, dated, kind) {
        columns.insert(0, ("date", (at + 1).to_string(), profile.samples[at].clone()));
    }
    columns
}

/// Columns of a headerless table of prices, from their contents.
fn by_content(profile: &TableProfile) -> Vec<(&'static str, String, String)> {
    let mut columns = Vec::new();
    let mut add =
        |name, index: usize| columns.push((name, (index + 1).to_string(), profile.samples[index].clone()));
    let position = |wanted: fn(&ColumnContent) -> bool| profile.contents.iter().position(wanted);
    if let Some(symbol) = position(|content| *content == ColumnContent::Tickers) {
        add("symbol", symbol);
    }
    let date = position(|content| matches!(content, ColumnContent::Dates(_)));
    date.into_iter().for_each(|date| add("date", date));
    let numbers: Vec<usize> = (0..profile.contents.len())
        .filter(|index| profile.contents[*index] == ColumnContent::Numbers && profile.samples[*index] != "0")
        .collect();
    match numbers.as_slice() {
        [] => {}
        [only] => add("close", *only),
        [close, volume] => {
            add("close", *close);
            add("volume", *volume);
        }
        many => PRICE_ORDER.into_iter().zip(many).for_each(|(name, index)| add(name, *index)),
    }
    columns
}

fn write_not_taken(
    out: &mut String,
    profile: &TableProfile,
    kind: Kind,
    wide: Option<&WideGuess>,
) -> std::fmt::Result {
    if profile.header == 0 {
        return writeln!(out, "# Columns were named by their contents: check each.");
    }
    let left = profile.names.iter().filter(|name| wide.is_none() && canonical_column(kind, name).is_none());
    let left: Vec<&str> = left.map(String::as_str).take(30).collect();
    if left.is_empty() { Ok(()) } else { writeln!(out, "# not taken: {}", left.join(", ")) }
}

fn write_whose(
    out: &mut String,
    profile: &TableProfile,
    columns: &[(&'static str, String, String)],
    wide: Option<&WideGuess>,
) -> std::fmt::Result {
    if let Some((_, _, sample)) = columns.iter().find(|(name, ..)| *name == "symbol") {
        if sample.ends_with(".US") {
            writeln!(
                out,
                "\n# The home market is not part of a symbol; rows of other markets are rejected."
            )?;
            writeln!(out, "[symbols]\ncell = \"{{symbol}}.US\"")?;
        }
        return Ok(());
    }
    if wide.is_some() {
        return Ok(());
    }
    let tickers = (0..profile.names.len()).find(|index| profile.contents[*index] == ColumnContent::Tickers);
    if let Some(column) = tickers {
        writeln!(
            out,
            "# symbol = {} # is it the symbol? its cells look so: {}",
            quoted(&profile.names[column]),
            profile.samples[column]
        )?;
    }
    writeln!(out, "\n# Symbol of the rows: the file's name, if the whole name is a symbol (AAPL.csv).")?;
    writeln!(out, "# [symbols]\n# file_name = \"table_{{symbol}}.csv\"")
}

fn write_dates(
    out: &mut String,
    profile: &TableProfile,
    columns: &[(&'static str, String, String)],
) -> std::fmt::Result {
    let formats = profile.contents.iter().find_map(|content| match content {
        ColumnContent::Dates(formats) => Some(formats),
        _ => None,
    });
    if let Some([first, others @ ..]) =
        formats.map(Vec::as_slice).filter(|formats| formats[0] != "YYYY-MM-DD")
    {
        writeln!(out, "\n[dates]")?;
        let doubt = if others.is_empty() {
            String::new()
        } else {
            format!(" # or {}: the dates fit both", others.join(", "))
        };
        return writeln!(out, "format = \"{first}\"{doubt}");
    }
    let date = columns.iter().find(|(name, ..)| matches!(*name, "date" | "ex_date"));
    let digits =
        date.map(|(.., sample)| sample.as_str()).filter(|date| date.bytes().all(|b| b.is_ascii_digit()));
    // Seconds and milliseconds since 1970, for dates from 1973 on.
    match digits.map(str::len) {
        Some(9 | 10) => writeln!(out, "\n[dates]\nformat = \"unix\""),
        Some(12 | 13) => writeln!(out, "\n[dates]\nformat = \"unix_ms\""),
        _ => Ok(()),
    }
}

fn write_signs(out: &mut String, profile: &TableProfile) -> std::fmt::Result {
    let signs = &profile.signs;
    if *signs != super::cell_formats::NumberNotation::default() {
        writeln!(out, "\n[numbers]")?;
        if signs.comma {
            writeln!(out, "decimal = \",\"")?;
        }
        if let Some(sign) = signs.thousands {
            writeln!(out, "thousands = \"{sign}\"")?;
        }
        if !signs.strip.is_empty() {
            writeln!(out, "strip = \"{}\" # characters that are not part of a number", signs.strip)?;
        }
        if signs.suffixes {
            writeln!(out, "suffixes = true # 45.2M is 45200000")?;
        }
    }
    Ok(())
}

/// Pattern of column names that are symbols, if any.
fn wide_guess(profile: &TableProfile) -> Option<WideGuess> {
    let dates = profile.contents.iter().filter(|content| matches!(content, ColumnContent::Dates(_))).count();
    let is_value =
        |index: &usize| matches!(profile.contents[*index], ColumnContent::Numbers | ColumnContent::Empty);
    let values: Vec<&str> =
        (0..profile.names.len()).filter(is_value).map(|index| profile.names[index].as_str()).collect();
    if profile.header == 0 || dates != 1 || values.len() < 2 {
        return None;
    }
    let patterns = [
        ("{field}|{symbol}", '|', true),
        ("{symbol}|{field}", '|', false),
        ("{symbol}.{field}", '.', false),
        ("{symbol}_{field}", '_', false),
        ("{field}_{symbol}", '_', true),
        ("{symbol} {field}", ' ', false),
        ("{symbol}-{field}", '-', false),
    ];
    for (pattern, sign, field_first) in patterns {
        let mut fields: Vec<(&'static str, String)> = Vec::new();
        let fits = values.iter().filter(|name| {
            let parts =
                if field_first { name.split_once(sign) } else { name.rsplit_once(sign).map(|(a, b)| (b, a)) };
            let Some((field, _)) = parts.filter(|(_, symbol)| is_ticker(symbol)) else { return false };
            if let Some(meant) =
                canonical_column(Kind::Price, field).filter(|meant| !["symbol", "date"].contains(meant))
                && !fields.iter().any(|(known, _)| *known == meant)
            {
                fields.push((meant, field.to_owned()));
            }
            true
        });
        if fits.count() * 2 > values.len() && fields.iter().any(|(name, _)| *name == "close") {
            return Some(WideGuess { pattern, fields });
        }
    }
    let small = values.iter().all(|name| !name.contains(|c: char| c.is_ascii_uppercase()));
    let is_symbol = |name: &&str| match small {
        true => name.len() <= 6 && is_ticker(&name.to_ascii_uppercase()),
        false => is_ticker(name),
    };
    let symbols = values.iter().all(|name| is_symbol(name) && canonical_column(Kind::Price, name).is_none());
    symbols.then_some(WideGuess { pattern: "{symbol}", fields: Vec::new() })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn comment(sample: &str) -> String {
    let sample = sample.lines().next().unwrap_or_default();
    if sample.is_empty() { String::new() } else { format!(" # {sample}") }
}
