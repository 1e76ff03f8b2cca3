use chrono::NaiveDate;
use codec::bars::pack_superseded;
use codec::records::{EncodedRecord, RawObservation};
use market::bars::{Bar, BarVersion, MISSING};
use market::event::Split;
use proptest::prelude::*;

use super::*;

const SYMBOL: &str = "AAA";

fn observation(
    (id, observed_at, ratio, is_own): (Option<u8>, i64, u8, bool),
    batch: BatchId,
) -> RawObservation {
    let record = Split {
        symbol: Symbol::from_stored(if is_own { SYMBOL } else { "BBB" }),
        ex_date: NaiveDate::from_ymd_opt(2020, 3, 2).expect("a day"),
        from: 1u8.into(),
        to: ratio.into(),
        declaration_date: None,
        payable_date: None,
        r#type: None,
    };
    RawObservation {
        id: id.map(|id| id.to_string()),
        security_ref: None,
        revision: 0,
        retracted: false,
        observed_at,
        line: 1,
        frame: batch,
        record: EncodedRecord::encode(&record).expect("a record"),
    }
}

fn bars(rows: &[(i32, i64, i64)], batch: BatchId) -> Vec<Bars> {
    let of_row = |(day, close, observed_at): &(i32, i64, i64)| {
        let version = BarVersion { observed_at: *observed_at, frame: batch, ..BarVersion::UNKNOWN };
        let mut bars = Bars { versions: vec![version], ..Bars::default() };
        let [open, high, low, volume, vwap, trade_count] = [MISSING; 6];
        bars.push(Bar { day: *day, open, high, low, close: *close, volume, vwap, trade_count }, 0);
        bars
    };
    rows.iter().map(of_row).collect()
}

/// Record batches of a log. Each record batch is a pair of two lists. The first list has split records as (id,
/// observation time, ratio, `is_own`). The second list has bars of one year as (day, close, observation time).
type Batches = Vec<(Vec<(Option<u8>, i64, u8, bool)>, Vec<(i32, i64, i64)>)>;

fn log() -> impl Strategy<Value = Batches> {
    let records = prop::collection::vec((prop::option::of(0u8..3), 0i64..4, 1u8..4, any::<bool>()), 0..4);
    let rows = prop::collection::vec((0i32..6, 1i64..9, 0i64..4), 0..5);
    prop::collection::vec((records, rows), 1..9)
}

proptest! {
    #[test]
    fn facts_at_a_sequence_are_those_of_the_log_up_to_it(log in log(), per_commit in 1usize..4) {
        let batch = |number: usize| [u8::try_from(number).expect("few batches"); 16];
        let numbered: Vec<_> = (1usize..).zip(&log).collect();
        let (mut records, mut splits) = (RecordSet::new(Kind::Split, Vec::new()), StoredRecords::default());
        let mut stored = StoredYear::default();
        for commit in numbered.chunks(per_commit) {
            let (mut added, mut added_bars) = (Vec::new(), Vec::new());
            for (number, (rows, prices)) in commit {
                added.extend(rows.iter().map(|row| observation(*row, batch(*number))));
                added_bars.extend(bars(prices, batch(*number)));
            }
            added.extend(records.known(|_| true));
            let (union, superseded) = RecordSet::divide(Kind::Split, SYMBOL, added, |_| true).expect("divides");
            records = union;
            splits.superseded.extend(superseded.iter().map(|set| set.pack().expect("packs")));
            let before = stored.current.take().map(|(_, packed)| packed.unpack().expect("unpacks"));
            added_bars.splice(0..0, before);
            let (merged, replaced) = Bars::merge_keeping_superseded(added_bars).expect("merges");
            let packed = PackedBars::pack(&merged).expect("packs");
            stored.current = (!merged.is_empty()).then(|| (packed.digest(), packed));
            let replaced = SupersededBars::of_merge(replaced, &merged).expect("packs");
            let bytes = pack_superseded(&replaced).expect("packs");
            stored.superseded.push(unpack_superseded(&bytes).expect("unpacks"));
        }
        splits.current = Some(records.pack().expect("packs"));
        let key = RecordsKey { symbol: SYMBOL.to_owned(), kind: Kind::Split, source: String::new() };
        for end in 0..=log.len() {
            let known = |id: &BatchId| usize::from(id[0]) <= end;
            let rows = numbered.iter().take(end).flat_map(|(number, (rows, _))| {
                rows.iter().map(|row| observation(*row, batch(*number)))
            });
            let fresh = RecordSet::new(Kind::Split, rows.collect()).of_symbol(SYMBOL).expect("records");
            let found = splits.at(&key.symbol, key.kind, known).expect("reads");
            let expected = (!fresh.is_empty()).then(|| fresh.pack().expect("packs"));
            // If all batches are known, `StoredRecords::at` returns the stored row unchanged, even with other symbols.
            if log.iter().skip(end).any(|(rows, _)| !rows.is_empty()) {
                prop_assert_eq!(found, expected);
            }
            let prices = numbered.iter().take(end).flat_map(|(number, (_, rows))| bars(rows, batch(*number)));
            let fresh = Bars::merge_all(prices.collect()).expect("merges");
            let expected = (!fresh.is_empty()).then(|| PackedBars::pack(&fresh).expect("packs"));
            let found = stored.at(known).expect("reads").map(|(_, packed)| packed);
            prop_assert_eq!(found, expected);
        }
    }
}
