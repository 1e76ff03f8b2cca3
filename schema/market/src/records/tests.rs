use proptest::prelude::*;

use super::*;
use crate::event::{Kind, Split};

fn record() -> impl Strategy<Value = String> {
    let dividend =
        (1u32..9999, 0i32..20_000, prop::option::of(0i32..20_000)).prop_map(|(amount, ex, paid)| {
            let date = |day: i32| crate::bars::date_of(700_000 + day);
            let paid = paid.map(|day| format!(",\"payment_date\":\"{}\"", date(day))).unwrap_or_default();
            format!("{{\"symbol\":\"AAA\",\"amount\":\"{amount}.50\",\"ex_date\":\"{}\"{paid}}}", date(ex))
        });
    // Texts that are no plain object, and dates that are none.
    let others =
        ["", "{}", "[1,2]", "{ \"a\":1}", "{\"a\\n\":1}", "{\"d\":\"2024-02-30\"}", "{\"d\":\"+2024-1-1\"}"];
    prop_oneof![4 => dividend, 1 => prop::sample::select(others.to_vec()).prop_map(str::to_owned)]
}

/// A split in texts of every form: plain, with spaces, with escapes in a name or a value.
fn split_record() -> impl Strategy<Value = String> {
    let begin =
        prop::sample::select(vec!["{\"", "{ \"", "{\"not\\u0065\":1,\"", "{\"type\":\"a \\\"note\\\"\",\""]);
    (begin, 1u32..9999, 0i32..20_000, prop::option::of(0i32..20_000)).prop_map(|(begin, to, ex, paid)| {
        let date = |day: i32| crate::bars::date_of(700_000 + day);
        let paid = paid.map_or("null".to_owned(), |day| format!("\"{}\"", date(day)));
        format!(
            "{begin}symbol\":\"AAA\",\"from\":\"1\",\"to\":\"{to}.5\",\"ex_date\":\"{}\",\"payable_date\":{paid}}}",
            date(ex)
        )
    })
}

fn observation() -> impl Strategy<Value = RawObservation> {
    let text = || prop::option::of("[a-c]{1,2}");
    (text(), text(), -1i64..3, any::<bool>(), 0i64..4, 0u64..4, 0u8..3, record()).prop_map(
        |(id, security_ref, revision, retracted, observed_at, line, frame, record)| RawObservation {
            id,
            security_ref,
            revision,
            retracted,
            observed_at,
            line,
            frame: [frame; 16],
            record,
        },
    )
}

fn observations() -> impl Strategy<Value = Vec<RawObservation>> {
    prop::collection::vec(observation(), 0..20)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Dividend, Kind::Security])
}

proptest! {
    #[test]
    fn packing_loses_nothing(kind in kind(), observations in observations()) {
        let records = Records::new(kind, observations);
        prop_assert_eq!(Records::unpack(kind, &records.pack().unwrap()).unwrap(), records);
    }

    #[test]
    fn records_are_read_as_their_texts_are(splits in prop::collection::vec(split_record(), 0..20)) {
        let observations = splits.into_iter().enumerate().map(|(line, record)| RawObservation {
            line: line as u64,
            record,
            ..session("2024-06-24", 0, 7, false)
        });
        let records = Records::new(Kind::Split, observations.collect());
        let expected: Vec<Split> =
            records.observations().iter().map(|raw| serde_json::from_str(&raw.record).unwrap()).collect();
        let found: Vec<Split> = read("a", &records.pack().unwrap()).unwrap().into_iter().map(|said| said.record).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_order_and_any_cut_give_the_same_bytes(
        kind in kind(), observations in observations(), cut in 0usize..20, turn in 0usize..20
    ) {
        let whole = Records::new(kind, observations.clone());
        let mut other = observations.clone();
        other.rotate_left(turn.min(observations.len()));
        let (first, second) = other.split_at(cut.min(other.len()));
        let merged = Records::new(kind, first.to_vec()).merge(second.to_vec()).merge(observations);
        prop_assert_eq!(merged.pack().unwrap(), whole.pack().unwrap());
    }

    #[test]
    fn nothing_that_was_said_is_lost_and_the_last_time_is_kept(kind in kind(), observations in observations()) {
        let records = Records::new(kind, observations.clone());
        for said in &observations {
            let same: Vec<_> =
                records.observations().iter().filter(|kept| kept.compare_said(said, kind).is_eq()).collect();
            prop_assert_eq!(same.len(), 1);
            prop_assert!(same[0].seen() >= said.seen());
        }
        prop_assert!(records.observations().iter().all(|kept| observations.contains(kept)));
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Records::unpack(Kind::Dividend, &bytes);
        let _ = Records::unpack(Kind::Dividend, &[&[1], bytes.as_slice()].concat());
    }
}

#[test]
fn a_reused_ticker_stays_two_securities() {
    let of = |reference: &str| RawObservation {
        id: None,
        security_ref: Some(reference.to_owned()),
        revision: 0,
        retracted: false,
        observed_at: 0,
        line: 1,
        frame: [0; 16],
        record: "{}".to_owned(),
    };
    let both = vec![of("one"), of("two")];
    assert_eq!(Records::new(Kind::Security, both.clone()).observations().len(), 2);
    assert_eq!(Records::new(Kind::Dividend, both.clone()).observations().len(), 1);
    // What has an id is known by it, whatever else is said of the security.
    let named = both.into_iter().map(|row| RawObservation { id: Some("x".to_owned()), ..row }).collect();
    let kept = Records::new(Kind::Security, named);
    assert_eq!(kept.observations().len(), 1);
    assert_eq!(kept.observations()[0].security_ref.as_deref(), Some("two"));
}

#[test]
fn forty_years_of_dividends_take_few_bytes_each() {
    let dividend = |quarter: i32| {
        let date = |days: i32| crate::bars::date_of(720_000 + quarter * 91 + days);
        let (ex, record, paid) = (date(0), date(1), date(20));
        RawObservation {
            id: None,
            security_ref: None,
            revision: 0,
            retracted: false,
            observed_at: 1_700_000_000_000_000,
            line: u64::from(quarter.unsigned_abs()) + 2,
            frame: [7; 16],
            record: format!(
                "{{\"symbol\":\"AAA\",\"amount\":\"{}.25\",\"currency\":\"USD\",\"type\":\"regular\",\
                 \"amount_basis\":\"raw\",\"ex_date\":\"{ex}\",\"record_date\":\"{record}\",\"payment_date\":\"{paid}\"}}",
                quarter / 4
            ),
        }
    };
    let records = Records::new(Kind::Dividend, (0..160).map(dividend).collect());
    let bytes = records.pack().unwrap().len();
    assert!(bytes < 160 * 45, "{bytes} bytes");
}

/// A session of a revision and second, withdrawn or not.
fn session(day: &str, revision: i64, observed_at: i64, retracted: bool) -> RawObservation {
    let record = format!("{{\"date\":\"{day}\"}}");
    RawObservation {
        id: None,
        security_ref: None,
        revision,
        retracted,
        observed_at,
        line: 7,
        frame: [0xa5; 16],
        record,
    }
}

#[test]
fn the_newest_session_is_the_newest_that_was_not_withdrawn() {
    let newest = |sessions: &[RawObservation]| {
        newest_session(&Records::new(Kind::Session, sessions.to_vec())).unwrap().map(|day| day.to_string())
    };
    let (monday, tuesday) = (session("2024-06-24", 0, 5, false), session("2024-06-25", 0, 5, false));
    assert_eq!(newest(&[]), None);
    assert_eq!(newest(&[tuesday.clone(), monday.clone()]).as_deref(), Some("2024-06-25"));
    let withdrawn = session("2024-06-25", 0, 6, true);
    assert_eq!(newest(&[withdrawn.clone(), tuesday.clone(), monday.clone()]).as_deref(), Some("2024-06-24"));
    // An older withdrawal, and a revision after it, change nothing.
    assert_eq!(newest(&[session("2024-06-25", 0, 4, true), tuesday, monday]).as_deref(), Some("2024-06-25"));
    assert_eq!(newest(&[withdrawn, session("2024-06-25", 1, 2, false)]).as_deref(), Some("2024-06-25"));
}

#[test]
fn a_kept_row_is_read_as_it_was_said() {
    let told = |raw: &RawObservation| {
        let packed = Records::new(Kind::Session, vec![raw.clone()]).pack().unwrap();
        read::<crate::event::Session>("a", &packed)
    };
    let raw = RawObservation {
        id: Some("x".into()),
        security_ref: Some("ref".into()),
        ..session("2024-06-24", 3, 1_500_000, true)
    };
    let read = told(&raw).unwrap().remove(0);
    assert_eq!(
        (read.source.as_str(), read.id.as_deref(), read.security_ref.as_deref()),
        ("a", Some("x"), Some("ref"))
    );
    assert_eq!((read.revision, read.line, read.action), (3, 7, crate::event::Action::Retract));
    assert_eq!((read.observed_at.timestamp_micros(), read.frame), (1_500_000, [0xa5; 16]));
    assert_eq!(read.record.date.to_string(), "2024-06-24");
    assert_eq!(told(&session("2024-06-24", 0, 5, false)).unwrap()[0].action, crate::event::Action::Put);
    assert!(told(&session("2024-06-24", 0, i64::MAX, false)).is_err());
}

#[test]
fn what_was_seen_twice_is_kept_as_it_was_seen_last() {
    let seen = |observed_at, line, frame| RawObservation {
        line,
        frame: [frame; 16],
        ..session("2024-06-24", 0, observed_at, false)
    };
    let kept = |rows: [RawObservation; 2]| {
        let records = Records::new(Kind::Session, rows.to_vec());
        assert_eq!((records.kind(), records.observations().len()), (Kind::Session, 1));
        let row = &records.observations()[0];
        (row.observed_at, row.line, row.frame[0])
    };
    assert_eq!(kept([seen(1, 9, 9), seen(2, 1, 1)]), (2, 1, 1));
    assert_eq!(kept([seen(1, 2, 9), seen(1, 3, 1)]), (1, 3, 1));
    assert_eq!(kept([seen(1, 2, 8), seen(1, 2, 9)]), (1, 2, 9));
}
