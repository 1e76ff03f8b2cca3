//! Older bodies as the newest version says them.

use market::same_day::SameDay;

use crate::frame::Body;

/// Brings a body of a version to the newest one of its kind.
///
/// Dividends of version 1 do not name the other payments of their day: those of one frame come from one file, so they are
/// named as far as the frame shows them.
pub(crate) fn upcast(body: &mut Body, version: u32) {
    if let Body::Dividends(rows) = body
        && version < 2
    {
        let mut same_day = SameDay::default();
        rows.iter_mut().for_each(|row| same_day.name(row, ""));
    }
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;
    use market::event::Kind;

    use crate::frame::{Body, Frame, FrameError, schema_names};

    fn headers(schema: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", "0".repeat(32).as_str());
        for (name, value) in
            [("Schema", schema), ("Source", "a"), ("Run", "r"), ("Codec", "json"), ("File", "f")]
        {
            headers.insert(format!("Dds-{name}").as_str(), value);
        }
        for name in ["Chunk", "Rows", "Line"] {
            headers.insert(format!("Dds-{name}").as_str(), "1");
        }
        headers
    }

    fn row(amount: &str) -> serde_json::Value {
        serde_json::json!({ "line": 1, "action": "put", "observed_at": "2005-01-03T00:00:00Z", "record": {
            "symbol": "TEST", "amount": amount, "currency": "USD", "type": "regular", "amount_basis": "raw",
            "ex_date": "2004-12-27",
        } })
    }

    #[test]
    fn dividends_of_the_first_version_name_their_days_payments() {
        let payload = serde_json::json!([row("0.259"), row("0.526")]).to_string();
        let beside = |schema: &str| -> Vec<usize> {
            let frame = Frame::decode(Some(&headers(schema)), payload.as_bytes()).unwrap();
            let Body::Dividends(rows) = frame.body else { panic!("dividends") };
            rows.iter().map(|row| row.record.beside.len()).collect()
        };
        assert_eq!(beside("dividend.v1"), [0, 1]);
        assert_eq!(beside("dividend.v2"), [0, 0]);
    }

    #[test]
    fn a_newer_version_stops_the_reader() {
        let error = Frame::decode(Some(&headers("dividend.v3")), b"[]").unwrap_err();
        assert!(
            matches!(error, FrameError::NewerVersion { kind: Kind::Dividend, found: 3, newest: 2 }),
            "{error}"
        );
        assert!(error.stops_reader());
        assert!(Frame::decode(Some(&headers("split.v2")), b"[]").unwrap_err().stops_reader());
        assert_eq!(schema_names(Kind::Dividend).collect::<Vec<_>>(), ["dividend.v2", "dividend.v1"]);
    }
}
