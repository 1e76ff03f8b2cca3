//! Filter of a change stream: kinds, symbols and notices.
//!
//! After a rename during the stream, a symbol can belong to another security. The client then gets all rows of the new
//! security, and removals of the rows of the former security.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::auth::Tier;
use crate::parameters::{ChangeKind, SymbolList};
use crate::read::changes::{Change, ListedSecurities, NoticeSelection};

/// Required tier and feature name of a stream for the whole market.
pub(super) const MARKET: (Tier, &str) = (Tier::Professional, "market_changes");

/// Filter of a change stream.
#[derive(Debug)]
pub(super) struct StreamFilter {
    pub(super) kinds: Vec<ChangeKind>,
    pub(super) notices: NoticeSelection,
    /// Symbols of the filter; `None` for the whole market.
    symbols: Option<SymbolFilter>,
}

/// Symbols whose changes a change stream delivers.
#[derive(Debug)]
struct SymbolFilter {
    /// Symbols of the request.
    list: SymbolList,
    /// All spellings of the symbols in the request.
    spellings: BTreeSet<String>,
    /// Canonical symbols of the securities of which the client may already have rows.
    followed: BTreeSet<String>,
}

/// Change that a stream delivers.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) change: Arc<Change>,
    /// True if none of the requested symbols belongs to the security any more. The client must then remove the changed
    /// row from its copy.
    pub(super) is_removal: bool,
}

impl StreamFilter {
    /// Creates a filter for changes of these kinds. `list` has the symbols to select; `None` selects the whole market.
    pub(super) fn new(kinds: Vec<ChangeKind>, notices: NoticeSelection, list: Option<SymbolList>) -> Self {
        let symbols = list.map(|list| {
            let spellings = list.0.iter().flat_map(|symbol| symbol.candidates.iter().cloned()).collect();
            SymbolFilter { list, spellings, followed: BTreeSet::new() }
        });
        Self { kinds, notices, symbols }
    }

    /// Symbols of the request; `None` for the whole market.
    pub(super) fn symbols(&self) -> Option<&SymbolList> {
        self.symbols.as_ref().map(|symbols| &symbols.list)
    }

    /// Adds securities whose rows the client may already have. If a rename removes the requested symbol of a security,
    /// later changes of the security become removals.
    pub(super) fn follow(&mut self, securities: &ListedSecurities) {
        if let Some(symbols) = &mut self.symbols {
            symbols.followed.extend(securities.all());
        }
    }

    /// Applies the filter to a change; `None` if the change is filtered out. The filter compares all symbols of the
    /// security, so the field `other_symbols` of the change must be filled. It is filled in every change that was read
    /// for the whole market, for example in the changes of the ring.
    pub(super) fn admit(&mut self, change: Arc<Change>) -> Option<Delivery> {
        let is_named = match &mut self.symbols {
            Some(symbols) => symbols.names(&change)?,
            None => true,
        };
        let is_removal = !is_named;
        let is_of_kind = self.kinds.contains(&change.key.kind);
        (is_of_kind && self.admits_notice(&change, is_removal)).then_some(Delivery { change, is_removal })
    }

    /// Applies the filter to a change from a journal page, which has only changes of the filter's kinds and symbols. The
    /// change of a former security becomes a removal. `securities` is `None` for the whole market.
    pub(super) fn admit_of_page(
        &self,
        change: Change,
        securities: Option<&ListedSecurities>,
    ) -> Option<Delivery> {
        let is_removal = securities.is_some_and(|listed| listed.former.contains(&change.key.symbol));
        let is_admitted = self.admits_notice(&change, is_removal);
        is_admitted.then(|| Delivery { change: Arc::new(change), is_removal })
    }

    /// False for a notice that is not selected, or of a security that no longer has a requested symbol.
    fn admits_notice(&self, change: &Change, is_removal: bool) -> bool {
        change.notice().is_none_or(|notice| !is_removal && self.notices.admits(notice))
    }
}

impl SymbolFilter {
    /// `Some(true)` if one of the requested symbols belongs to the changed security. `Some(false)` if none of the
    /// requested symbols belongs to the security, but the client may have rows of it. `None` if the change does not
    /// concern the client.
    ///
    /// Calls must be in the order of delivery, because a call may add the security to `followed`.
    fn names(&mut self, change: &Change) -> Option<bool> {
        let security = &change.key.symbol;
        if self.spellings.contains(security)
            || change.other_symbols.iter().any(|symbol| self.spellings.contains(symbol))
        {
            if !self.followed.contains(security) {
                self.followed.insert(security.clone());
            }
            return Some(true);
        }
        self.followed.contains(security).then_some(false)
    }
}
