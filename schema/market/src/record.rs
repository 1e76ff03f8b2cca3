//! What every kind of record tells of itself. A new kind is one implementation here, and one line of
//! `event_log::body` and of [`crate::history`] where a security's history keeps it.

use chrono::NaiveDate;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::{Decision, Dividend, Etf, Fundamentals, HoldingSnapshot, Kind, Security, Session, Split};
use crate::symbol::Symbol;

/// A record of the log that is kept as an observation.
pub trait Record: Serialize + DeserializeOwned {
    /// The kind of its frames.
    const KIND: Kind;
    /// The symbol it names; `None` when it concerns the whole market.
    fn symbol(&self) -> Option<&Symbol>;
    /// The day on which a security must have held the symbol for the record to be its own; `None`: any day.
    fn date(&self) -> Option<NaiveDate>;
}

impl Record for Security {
    const KIND: Kind = Kind::Security;
    fn symbol(&self) -> Option<&Symbol> {
        Some(&self.symbol)
    }
    fn date(&self) -> Option<NaiveDate> {
        None
    }
}

impl Record for Session {
    const KIND: Kind = Kind::Session;
    fn symbol(&self) -> Option<&Symbol> {
        None
    }
    fn date(&self) -> Option<NaiveDate> {
        Some(self.date)
    }
}

/// It is about one row, whichever day the security held the symbol on.
impl Record for Decision {
    const KIND: Kind = Kind::Decision;
    fn symbol(&self) -> Option<&Symbol> {
        Some(&self.symbol)
    }
    fn date(&self) -> Option<NaiveDate> {
        None
    }
}

/// A record of one symbol that takes effect on one day.
macro_rules! dated {
    ($($record:ident: $kind:ident, |$of:ident| $date:expr;)*) => {
        $(impl Record for $record {
            const KIND: Kind = Kind::$kind;
            fn symbol(&self) -> Option<&Symbol> {
                Some(&self.symbol)
            }
            fn date(&self) -> Option<NaiveDate> {
                let $of = self;
                $date
            }
        })*
    };
}

dated! {
    Dividend: Dividend, |dividend| dividend.ex_date.or(dividend.record_date);
    Split: Split, |split| Some(split.ex_date);
    Fundamentals: Fundamentals, |fundamentals| Some(fundamentals.as_of);
    Etf: Etf, |etf| Some(etf.as_of);
    HoldingSnapshot: Holding, |snapshot| Some(snapshot.as_of);
}
