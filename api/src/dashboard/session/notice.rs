//! Notices that a page shows after an action. The query parameter `done` selects one of several fixed messages.

use market::text_enum;

use crate::dashboard::session::form::Form;

text_enum! {
    /// Action that has just been completed.
    pub enum PageNotice {
        KeyDeleted = "key-deleted",
        PortfolioSaved = "portfolio-saved",
        PortfolioDeleted = "portfolio-deleted",
        Upgraded = "upgraded",
        Downgraded = "downgraded",
        Cancelled = "cancelled",
        Asked = "asked",
        SessionEnded = "session-ended",
        PasswordChanged = "password-changed",
        AddressChanged = "address-changed",
    }
}

impl PageNotice {
    /// Message that the parameter `done` in a query string selects; `None` if `done` is absent or unknown.
    pub(crate) fn message_for_query(query: &str) -> Option<&'static str> {
        let notice: Self = Form::from_query(query).text("done").parse().ok()?;
        Some(match notice {
            Self::KeyDeleted => "The key is deleted. Calls with it are refused from now on.",
            Self::PortfolioSaved => "The portfolio is saved.",
            Self::PortfolioDeleted => "The portfolio is deleted, and its addresses have ended.",
            Self::Upgraded => "The plan is changed. The next call has the new limits.",
            Self::Downgraded => "The change is noted. It holds when the paid month ends.",
            Self::Cancelled => "The plan is cancelled. It holds until the paid month ends.",
            Self::Asked => "The operator was asked. The plan changes when they agree.",
            Self::SessionEnded => "The session is ended.",
            Self::PasswordChanged => "The password is changed, and every other session is ended.",
            Self::AddressChanged => "The address is changed. Sign in with it from now on.",
        })
    }

    /// Adds the query parameter `done` with this notice to the path of a page.
    pub(crate) fn add_to_path(self, path: &str) -> String {
        format!("{path}?done={self}")
    }
}
