use chrono::NaiveDate;
use proptest::option::of;
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::json;

use super::*;
use market::event::{
    DecidedRow, Decision, DecisionVerdict, Dividend, DividendType, Etf, FormerSymbol, Frequency, Holding,
    HoldingSnapshot, Kind, MarketSession, Security, ShareBasis, Split,
};
use market::symbol::Symbol;

fn date() -> impl Strategy<Value = NaiveDate> {
    (0i32..20_000).prop_map(|day| market::day::date_of(700_000 + day))
}

fn decimal() -> impl Strategy<Value = Decimal> {
    (any::<i64>(), 0u32..11).prop_map(|(digits, scale)| Decimal::new(digits, scale))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-c]{1,3}", "[^\0]{0,8}"]
}

fn dividend() -> impl Strategy<Value = Dividend> {
    let days = (of(date()), of(date()), of(date()), of(date()));
    let symbol = prop::sample::select(vec!["AAA", "BRK.B"]);
    let words = (prop::sample::select(DividendType::ALL), of(prop::sample::select(Frequency::ALL)));
    (symbol, decimal(), prop::collection::vec(decimal(), 0..3), days, words).prop_map(
        |(
            symbol,
            amount,
            beside,
            (ex_date, record_date, payment_date, declaration_date),
            (r#type, frequency),
        )| Dividend {
            symbol: Symbol::parse(symbol).unwrap(),
            amount,
            currency: "USD".into(),
            r#type,
            amount_basis: ShareBasis::Raw,
            sibling_amounts: beside,
            ex_date,
            record_date,
            payment_date,
            declaration_date,
            frequency,
            basis_as_of: None,
        },
    )
}

fn snapshot() -> impl Strategy<Value = HoldingSnapshot> {
    let holding =
        (text(), decimal(), of(text()), of(decimal())).prop_map(|(name, weight, sector, shares)| {
            let holding = json!({ "name": name, "weight": weight, "shares": shares, "sector": sector });
            serde_json::from_value::<Holding>(holding).unwrap()
        });
    (date(), prop::collection::vec(holding, 0..4)).prop_map(|(as_of, holdings)| HoldingSnapshot {
        symbol: Symbol::parse("FUND").unwrap(),
        as_of,
        holdings,
    })
}

fn security() -> impl Strategy<Value = Security> {
    let former = (of(date()), of(date())).prop_map(|(from, to)| FormerSymbol {
        symbol: Symbol::parse("OLD").unwrap(),
        from,
        to,
    });
    let lists = (prop::collection::vec(former, 0..3), prop::collection::vec(text(), 0..3));
    (text(), lists, of(text()), of(any::<i64>()), of(any::<i32>())).prop_map(
        |(name, (former_symbols, indexes), description, employees, streak_seed_through)| {
            let security = json!({ "symbol": "AAA", "name": name, "type": "stock", "currency": "USD", "status": "active",
                "description": description, "employees": employees, "streak_seed_through": streak_seed_through });
            let security = serde_json::from_value::<Security>(security).unwrap();
            Security { former_symbols, indexes, ..security }
        },
    )
}

fn fund() -> impl Strategy<Value = Etf> {
    (of(any::<bool>()), of(any::<bool>()), of(date())).prop_map(|(is_leveraged, is_inverse, nav_date)| {
        let fund = json!({ "symbol": "FUND", "as_of": "2024-03-29", "is_leveraged": is_leveraged, "is_inverse": is_inverse,
            "nav_date": nav_date });
        serde_json::from_value(fund).unwrap()
    })
}

/// Returns the record after a round trip through packed bytes.
fn again<T: RecordLayout>(record: &T) -> T {
    let raw = RawObservation {
        record: EncodedRecord::encode(record).unwrap(),
        ..session("2024-06-24", 0, 7, false)
    };
    let records = RecordSet::new(Kind::Security, vec![raw]);
    read("a", &records.pack().unwrap()).unwrap().remove(0).record
}

fn encoded(record: &impl RecordLayout) -> EncodedRecord {
    EncodedRecord::encode(record).unwrap()
}

fn observation() -> impl Strategy<Value = RawObservation> {
    let text = || of("[a-c]{1,2}");
    (text(), text(), -1i64..3, any::<bool>(), 0i64..4, 0u64..4, 0u8..3, dividend()).prop_map(
        |(id, security_ref, revision, retracted, observed_at, line, frame, record)| RawObservation {
            id,
            security_ref,
            revision,
            retracted,
            observed_at,
            line,
            frame: [frame; 16],
            record: encoded(&record),
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
        let records = RecordSet::new(kind, observations);
        prop_assert_eq!(RecordSet::unpack(kind, &records.pack().unwrap()).unwrap(), records);
    }

    #[test]
    fn records_are_read_as_they_were_written(
        dividend in dividend(), snapshot in snapshot(), security in security(), fund in fund()
    ) {
        prop_assert_eq!(again(&dividend), dividend);
        prop_assert_eq!(again(&snapshot), snapshot);
        prop_assert_eq!(again(&security), security);
        prop_assert_eq!(again(&fund), fund);
    }

    #[test]
    fn any_order_and_any_cut_give_the_same_bytes(
        kind in kind(), observations in observations(), cut in 0usize..20, turn in 0usize..20
    ) {
        let whole = RecordSet::new(kind, observations.clone());
        let mut other = observations.clone();
        other.rotate_left(turn.min(observations.len()));
        let (first, second) = other.split_at(cut.min(other.len()));
        let merged = RecordSet::new(kind, first.to_vec()).merge(second.to_vec()).merge(observations);
        prop_assert_eq!(merged.pack().unwrap(), whole.pack().unwrap());
    }

    #[test]
    fn nothing_that_was_said_is_lost_and_the_last_time_is_kept(kind in kind(), observations in observations()) {
        let records = RecordSet::new(kind, observations.clone());
        for said in &observations {
            let same: Vec<_> =
                records.observations().iter().filter(|kept| kept.compare_content(said, kind).is_eq()).collect();
            prop_assert_eq!(same.len(), 1);
            prop_assert!(same[0].provenance() >= said.provenance());
        }
        prop_assert!(records.observations().iter().all(|kept| observations.contains(kept)));
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = RecordSet::unpack(Kind::Dividend, &bytes);
        let bytes = [&[1], bytes.as_slice()].concat();
        let _ = RecordSet::unpack(Kind::Dividend, &bytes);
        let _ = read::<Dividend>("a", &bytes);
        let _ = read::<HoldingSnapshot>("a", &bytes);
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
        record: encoded(&MarketSession { date: NaiveDate::MAX, note: None }),
    };
    let both = vec![of("one"), of("two")];
    assert_eq!(RecordSet::new(Kind::Security, both.clone()).observations().len(), 2);
    assert_eq!(RecordSet::new(Kind::Dividend, both.clone()).observations().len(), 1);
    // Observations with the same id are versions of one record, even if their security references differ.
    let named = both.into_iter().map(|row| RawObservation { id: Some("x".to_owned()), ..row }).collect();
    let kept = RecordSet::new(Kind::Security, named);
    assert_eq!(kept.observations().len(), 1);
    assert_eq!(kept.observations()[0].security_ref.as_deref(), Some("two"));
}

#[test]
fn forty_years_of_dividends_take_few_bytes_each() {
    let dividend = |quarter: i32| {
        let date = |days: i32| market::day::date_of(720_000 + quarter * 91 + days);
        let (ex, record, paid) = (date(0), date(1), date(20));
        RawObservation {
            id: None,
            security_ref: None,
            revision: 0,
            retracted: false,
            observed_at: 1_700_000_000_000_000,
            line: u64::from(quarter.unsigned_abs()) + 2,
            frame: [7; 16],
            record: encoded(&Dividend {
                symbol: Symbol::parse("AAA").unwrap(),
                amount: Decimal::new(i64::from(quarter / 4) * 100 + 25, 2),
                currency: "USD".into(),
                r#type: DividendType::Regular,
                amount_basis: ShareBasis::Raw,
                sibling_amounts: Vec::new(),
                ex_date: Some(ex),
                record_date: Some(record),
                payment_date: Some(paid),
                declaration_date: None,
                frequency: Some(Frequency::Quarterly),
                basis_as_of: None,
            }),
        }
    };
    let records = RecordSet::new(Kind::Dividend, (0..160).map(dividend).collect());
    let bytes = records.pack().unwrap().len();
    assert!(bytes < 160 * 45, "{bytes} bytes");
}

/// Builds an observation of a market session. `observed_at` is in microseconds.
fn session(day: &str, revision: i64, observed_at: i64, retracted: bool) -> RawObservation {
    let record = encoded(&MarketSession { date: day.parse().unwrap(), note: None });
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
fn a_kept_row_is_read_as_it_was_said() {
    let reread = |raw: &RawObservation| {
        let packed = RecordSet::new(Kind::Session, vec![raw.clone()]).pack().unwrap();
        read::<MarketSession>("a", &packed)
    };
    let raw = RawObservation {
        id: Some("x".into()),
        security_ref: Some("ref".into()),
        ..session("2024-06-24", 3, 1_500_000, true)
    };
    let read = reread(&raw).unwrap().remove(0);
    assert_eq!(
        (read.source.as_str(), read.id.as_deref(), read.security_ref.as_deref()),
        ("a", Some("x"), Some("ref"))
    );
    assert_eq!((read.revision, read.line, read.action), (3, 7, market::event::Action::Retract));
    assert_eq!((read.observed_at.timestamp_micros(), read.frame), (1_500_000, [0xa5; 16]));
    assert_eq!(read.record.date.to_string(), "2024-06-24");
    assert_eq!(reread(&session("2024-06-24", 0, 5, false)).unwrap()[0].action, market::event::Action::Put);
    assert!(reread(&session("2024-06-24", 0, i64::MAX, false)).is_err());
}

#[test]
fn what_was_seen_twice_is_kept_as_it_was_seen_last() {
    let seen = |observed_at, line, frame| RawObservation {
        line,
        frame: [frame; 16],
        ..session("2024-06-24", 0, observed_at, false)
    };
    let kept = |rows: [RawObservation; 2]| {
        let records = RecordSet::new(Kind::Session, rows.to_vec());
        assert_eq!((records.kind, records.observations().len()), (Kind::Session, 1));
        let row = &records.observations()[0];
        (row.observed_at, row.line, row.frame[0])
    };
    assert_eq!(kept([seen(1, 9, 9), seen(2, 1, 1)]), (2, 1, 1));
    assert_eq!(kept([seen(1, 2, 9), seen(1, 3, 1)]), (1, 3, 1));
    assert_eq!(kept([seen(1, 2, 8), seen(1, 2, 9)]), (1, 2, 9));
}

#[test]
fn every_kind_of_record_is_read_as_it_was_written() {
    let split = json!({ "symbol": "AAA", "ex_date": "2012-08-13", "from": "1", "to": "2", "type": "stock \"split\"" });
    let split: Split = serde_json::from_value(split).unwrap();
    assert_eq!(again(&split), split);
    let decision = Decision {
        symbol: Symbol::parse("AAA").unwrap(),
        verdict: DecisionVerdict::Release,
        row: DecidedRow {
            kind: Kind::Dividend,
            source: "a".to_owned(),
            row_id: None,
            date: None,
            value: "0.46".parse().unwrap(),
        },
        reason: "amount_outlier".to_owned(),
        note: String::new(),
    };
    assert_eq!(again(&decision), decision);
    let session = MarketSession { date: "2024-06-28".parse().unwrap(), note: Some("half a day".to_owned()) };
    assert_eq!(again(&session), session);
}

#[test]
fn a_record_without_its_newest_field_is_read_and_one_with_a_field_more_is_refused() {
    let of = |fields: &[&[u8]]| {
        let raw = RawObservation {
            record: EncodedRecord::join(fields.iter().map(|field| Ok(*field))).unwrap(),
            ..session("2024-06-24", 0, 7, false)
        };
        let packed = RecordSet::new(Kind::Session, vec![raw]).pack().unwrap();
        read::<MarketSession>("a", &packed).map(|read| read[0].record.note.clone())
    };
    let date = encoded(&MarketSession { date: "2024-06-24".parse().unwrap(), note: None });
    let date = date.fields().next().unwrap().unwrap();
    assert_eq!(of(&[date]).unwrap(), None);
    assert_eq!(of(&[date, b"half"]).unwrap().as_deref(), Some("half"));
    assert!(matches!(of(&[date, b"half", b"more"]), Err(PackedRecordsError::UnknownField)));
    assert!(of(&[]).is_err() && of(&[b""]).is_err() && of(&[&[1, 2]]).is_err());
    assert!(of(&[date, &[0xfe]]).is_err());
}

#[test]
fn a_text_that_postgres_cannot_store_is_refused() {
    let session = |note: &str| MarketSession { date: NaiveDate::MIN, note: Some(note.to_owned()) };
    assert!(matches!(EncodedRecord::encode(&session("a\0")), Err(PackedRecordsError::NulCharacter)));
    assert!(EncodedRecord::encode(&session("a")).is_ok());
}

/// Stored rows must stay readable. The expected bytes may change only together with the version in the first byte.
#[test]
fn the_packed_form_stays_as_it_is() {
    let dividend = json!({ "symbol": "AAA", "amount": "0.25", "currency": "USD", "type": "regular", "amount_basis": "raw",
        "ex_date": "2024-06-03", "frequency": "quarterly" });
    let dividend: Dividend = serde_json::from_value(dividend).unwrap();
    let raw = RawObservation {
        id: Some("d-1".into()),
        record: encoded(&dividend),
        ..session("2024-06-24", 3, 7, true)
    };
    let packed = RecordSet::new(Kind::Dividend, vec![raw]).pack().unwrap();
    let expected = [
        &[1, 1][..],
        &[0xa5; 16],
        &[1, 14, 7, 3],
        b"AAA",
        &[2, 2, 50, 3],
        b"USD",
        &[7],
        b"regular",
        &[3],
        b"raw",
        &[3],
        &[0xc0, 0x9b, 0x5a],
        &[9],
        b"quarterly",
        &[1, 1, 3],
        b"d-1",
        &[0, 6, 1, 0, 7, 0, 0xdf, 8, 7, 0, 1, 2, 3, 4, 5, 6],
    ];
    assert_eq!(packed, expected.concat());
}
