//! Mapping of vendors' column names to canonical columns.

use market::event::Kind;

use crate::format::normalize_column_name;

/// Vendors' normalized column names (without case, blanks and punctuation), with the canonical columns per kind.
const PRICE: [(&str, &str); 50] = [
    ("symbol", "symbol"),
    ("ticker", "symbol"),
    ("tic", "symbol"),
    ("instrument", "symbol"),
    ("stock", "symbol"),
    ("stocksymbol", "symbol"),
    ("tickersymbol", "symbol"),
    ("scrip", "symbol"),
    ("kuerzel", "symbol"),
    ("date", "date"),
    ("datetime", "date"),
    ("timestamp", "date"),
    ("time", "date"),
    ("tradedate", "date"),
    ("tradingdate", "date"),
    ("day", "date"),
    ("datum", "date"),
    ("fecha", "date"),
    ("dtyyyymmdd", "date"),
    ("open", "open"),
    ("openingprice", "open"),
    ("erffnung", "open"),
    ("erster", "open"),
    ("o", "open"),
    ("high", "high"),
    ("hoch", "high"),
    ("tageshoch", "high"),
    ("h", "high"),
    ("low", "low"),
    ("tief", "low"),
    ("tagestief", "low"),
    ("l", "low"),
    ("close", "close"),
    ("closelast", "close"),
    ("closingprice", "close"),
    ("last", "close"),
    ("price", "close"),
    ("schluss", "close"),
    ("schlusskurs", "close"),
    ("c", "close"),
    ("vwap", "vwap"),
    ("actsymbol", "symbol"),
    ("t", "date"),
    ("erffn", "open"),
    ("zuletzt", "close"),
    ("apertura", "open"),
    ("mximo", "high"),
    ("mnimo", "low"),
    ("ltimo", "close"),
    ("cierre", "close"),
];
const VOLUME: [(&str, &str); 9] = [
    ("volume", "volume"),
    ("vol", "volume"),
    ("v", "volume"),
    ("volumen", "volume"),
    ("stcke", "volume"),
    ("tradedvolume", "volume"),
    ("sharestraded", "volume"),
    ("umsatz", "volume"),
    ("tottrdqty", "volume"),
];
const DIVIDEND: [(&str, &str); 30] = [
    ("symbol", "symbol"),
    ("ticker", "symbol"),
    ("stock", "symbol"),
    ("exdate", "ex_date"),
    ("exdividenddate", "ex_date"),
    ("exdiv", "ex_date"),
    ("exeffdate", "ex_date"),
    ("extag", "ex_date"),
    ("date", "ex_date"),
    ("datum", "ex_date"),
    ("recorddate", "record_date"),
    ("paymentdate", "payment_date"),
    ("paydate", "payment_date"),
    ("payabledate", "payment_date"),
    ("zahltag", "payment_date"),
    ("declarationdate", "declaration_date"),
    ("dividend", "amount"),
    ("dividends", "amount"),
    ("dividende", "amount"),
    ("amount", "amount"),
    ("cashamount", "amount"),
    ("currency", "currency"),
    ("actsymbol", "symbol"),
    ("exdivdate", "ex_date"),
    ("exdividend", "ex_date"),
    ("dividendexdate", "ex_date"),
    ("exoreffdate", "ex_date"),
    ("dividendrate", "amount"),
    ("dividendamount", "amount"),
    ("announcementdate", "declaration_date"),
];
const SPLIT: [(&str, &str); 20] = [
    ("symbol", "symbol"),
    ("ticker", "symbol"),
    ("date", "ex_date"),
    ("exdate", "ex_date"),
    ("split", "ratio"),
    ("splits", "ratio"),
    ("stocksplits", "ratio"),
    ("ratio", "ratio"),
    ("actsymbol", "symbol"),
    ("executiondate", "ex_date"),
    ("splitratio", "ratio"),
    ("splitfactor", "ratio"),
    ("newshares", "to"),
    ("tofactor", "to"),
    ("numerator", "to"),
    ("splitto", "to"),
    ("oldshares", "from"),
    ("forfactor", "from"),
    ("denominator", "from"),
    ("splitfrom", "from"),
];

/// Kind of a table, from its columns: a close indicates prices.
pub(super) fn kind_of(names: &[String]) -> Kind {
    let has = |kind, column| names.iter().any(|name| canonical_column(kind, name) == Some(column));
    if has(Kind::Price, "close") {
        Kind::Price
    } else if has(Kind::Dividend, "amount") {
        Kind::Dividend
    } else if has(Kind::Split, "ratio") || has(Kind::Split, "from") && has(Kind::Split, "to") {
        Kind::Split
    } else {
        Kind::Price
    }
}

/// Canonical column of a name, in rows of a kind.
pub(super) fn canonical_column(kind: Kind, name: &str) -> Option<&'static str> {
    let tables: &[&[(&str, &'static str)]] = match kind {
        Kind::Dividend => &[&DIVIDEND],
        Kind::Split => &[&SPLIT],
        _ => &[&PRICE, &VOLUME],
    };
    let name = normalize_column_name(name);
    tables.iter().flat_map(|table| table.iter()).find(|(word, _)| *word == name).map(|(_, column)| *column)
}
