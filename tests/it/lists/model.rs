//! Reference model of a list: the expected answer, computed from all rows by a plain filter and sort.

use std::cmp::Ordering;

use rust_decimal::Decimal;

use super::table::{Cell, Row};

/// Condition that a request parameter puts on a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The column equals the parameter or one of the parameter's comma-separated values, in upper or lower case.
    Is,
    AtLeast,
    AtMost,
    /// Like `AtLeast` for an amount in US dollars. Distributions of shares never match, because they pay no cash.
    CashAtLeast,
    /// The value in the column equals one of the parameter's comma-separated values.
    Among,
    NoneOf,
    /// The text in the column contains the parameter, or the row's symbol begins with the parameter.
    Named,
    /// The list in the column contains the parameter.
    Has,
    /// Rows with the status `projected` match only if the parameter is `true`.
    WithProjected,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) parameter: &'static str,
    pub(super) column: &'static str,
    pub(super) rule: Rule,
}

/// Model of a list endpoint. `sql` selects all rows that a request of the list can return.
#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) path: String,
    pub(super) sql: String,
    pub(super) filters: &'static [Filter],
    /// Values that the API uses for parameters that a request omits.
    pub(super) defaults: Vec<(&'static str, String)>,
    /// Parameters that every request must contain.
    pub(super) always: Vec<(&'static str, String)>,
    /// Columns by which a request may sort.
    pub(super) keys: &'static [&'static str],
    /// Order for a request without `sort`: pairs of a column, and `true` for descending order.
    pub(super) order: &'static [(&'static str, bool)],
    pub(super) ties: &'static [&'static str],
    pub(super) most: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Ask {
    pub(super) parameters: Vec<(&'static str, String)>,
    pub(super) sort: Vec<(&'static str, bool)>,
}

impl Rule {
    fn keeps(self, row: &Row, column: &str, value: &str) -> bool {
        let cell = &row[column];
        let number = || value.parse::<Decimal>().expect("a number");
        let text = cell.written().to_lowercase();
        let named = || value.split(',').any(|item| item.to_lowercase() == text);
        match self {
            Rule::Is => *cell != Cell::Null && (text == value.to_lowercase() || named()),
            Rule::AtLeast | Rule::AtMost if matches!(cell, Cell::Text(_)) => {
                // ISO dates sort like their text.
                if self == Rule::AtLeast { text.as_str() >= value } else { text.as_str() <= value }
            }
            Rule::AtLeast => matches!(cell, Cell::Number(held) if *held >= number()),
            Rule::AtMost => matches!(cell, Cell::Number(held) if *held <= number()),
            Rule::CashAtLeast => {
                let is_cash = !["stock", "spin_off"].contains(&row["type"].written().as_str());
                let least = |units: &Decimal| number() * units;
                is_cash
                    && matches!((cell, &row["units_for_a_dollar"]), (Cell::Number(held), Cell::Number(units)) if *held >= least(units))
            }
            Rule::Among => named(),
            Rule::NoneOf => !named(),
            Rule::Named => {
                let wanted = value.to_lowercase();
                text.contains(&wanted) || row["symbol"].written().to_lowercase().starts_with(&wanted)
            }
            Rule::Has => text.contains(&format!("\"{}\"", value.to_lowercase())),
            Rule::WithProjected => value == "true" || text != "projected",
        }
    }
}

impl List {
    fn filter(&self, parameter: &str) -> &Filter {
        self.filters.iter().find(|filter| filter.parameter == parameter).expect("a parameter of the list")
    }

    pub(super) fn expected<'r>(&self, rows: &'r [Row], ask: &Ask) -> Vec<&'r Row> {
        let given = |name: &str| ask.parameters.iter().any(|(other, _)| *other == name);
        let silent = self.defaults.iter().filter(|(name, _)| !given(name));
        let all: Vec<_> = ask.parameters.iter().chain(silent).collect();
        let keeps = |row: &&Row| {
            all.iter().all(|(name, value)| {
                let filter = self.filter(name);
                filter.rule.keeps(row, filter.column, value)
            })
        };
        let mut kept: Vec<&Row> = rows.iter().filter(keeps).collect();
        let order = if ask.sort.is_empty() { self.order } else { &ask.sort };
        kept.sort_by(|a, b| {
            let keys = order.iter().map(|(key, descending)| by_key(&a[*key], &b[*key], key, *descending));
            let ties =
                self.ties.iter().map(|column| unknown_first(&a[*column]).cmp(&unknown_first(&b[*column])));
            keys.chain(ties).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        kept
    }
}

/// Replaces null by an empty text, so that null sorts first. For example, projected dividends have no id.
fn unknown_first(cell: &Cell) -> Cell {
    if *cell == Cell::Null { Cell::Text(String::new()) } else { cell.clone() }
}

/// Nulls are last in both directions. Names are compared without regard to upper and lower case.
fn by_key(a: &Cell, b: &Cell, key: &str, descending: bool) -> Ordering {
    let folded = |cell: &Cell| match cell {
        Cell::Text(text) if matches!(key, "name" | "sector") => Cell::Text(text.to_lowercase()),
        other => other.clone(),
    };
    match (a == &Cell::Null, b == &Cell::Null) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ if descending => folded(b).cmp(&folded(a)),
        _ => folded(a).cmp(&folded(b)),
    }
}
