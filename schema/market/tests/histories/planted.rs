//! Precision and recall of the readings on 1,000 synthetic payers with planted faults (R34).

use std::collections::BTreeMap;

use chrono::{Datelike, Days, Months, NaiveDate};
use market::metrics::Rules;
use market::metrics::dividends::schedule::{Schedule, ScheduleRow};
use market::row::AmountReading;
use rust_decimal::Decimal;

/// Share of rows with a fault: one in this many.
const ONE_IN: u64 = 60;
/// Rows at either end without a planted fault: their neighbours are unknown.
const MARGIN: usize = 5;

/// Small deterministic generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Extra,
    Combined,
    Dip,
    Missing,
}

/// A payer without a fault: quarterly, monthly, semi-annual or annual, with a raise in most years and rare cuts.
fn payer(random: &mut Random) -> (u32, Vec<ScheduleRow>) {
    let per_year = [4, 4, 4, 4, 12, 2, 1][random.below(7) as usize];
    let years = 12 + random.below(18) as u32;
    let month = 1 + random.below(u64::from(12 / per_year)) as u32;
    let first = NaiveDate::from_ymd_opt(1994, month, 6 + random.below(18) as u32).expect("a day");
    let raise_slot = random.below(u64::from(per_year)) as u32;
    let mut amount = 200 + random.below(6_000) as i64;
    let rows = (0..years * per_year).map(|slot| {
        if slot % per_year == raise_slot {
            amount = match random.below(40) {
                0 => (amount / 2).max(10),
                1..8 => amount,
                _ => amount + 1 + amount * (1 + random.below(15) as i64) / 100,
            };
        }
        let day = first.checked_add_months(Months::new(12 / per_year * slot)).expect("a day");
        let ex_date = day + Days::new(random.below(7)) - Days::new(3);
        ScheduleRow { ex_date, amount: Decimal::new(amount, 4), tag: None, is_unconfirmed: false }
    });
    (per_year, rows.collect())
}

/// Plants faults at least five rows apart; returns the expected readings by ex-date and the missing slots.
fn plant(
    random: &mut Random,
    per_year: u32,
    sound: &[ScheduleRow],
) -> (Vec<ScheduleRow>, Vec<(Fault, NaiveDate)>) {
    let (mut rows, mut faults, mut free_from) = (Vec::new(), Vec::new(), MARGIN);
    for (index, row) in sound.iter().enumerate() {
        let is_free = index >= free_from && index + MARGIN < sound.len();
        // A cut or a large raise next to a fault hides it.
        let around = &sound[index.saturating_sub(2)..(index + 3).min(sound.len())];
        let is_calm = around.windows(2).all(|pair| {
            pair[1].amount >= pair[0].amount && pair[1].amount <= pair[0].amount * Decimal::new(12, 1)
        });
        if !is_free || !is_calm || !random.one_in(ONE_IN / u64::from(per_year).max(1) + 3) || per_year == 1 {
            rows.push(*row);
            continue;
        }
        free_from = index + MARGIN;
        match random.below(4) {
            0 => {
                let period = 365 / u64::from(per_year);
                let ex_date = row.ex_date + Days::new(period / 5 + random.below(period / 4));
                let amount = row.amount * Decimal::from(2 + random.below(6));
                rows.push(*row);
                rows.push(ScheduleRow { ex_date, amount, ..*row });
                faults.push((Fault::Extra, ex_date));
            }
            1 => {
                let amount = row.amount * Decimal::new(15 + random.below(80) as i64, 1);
                rows.push(ScheduleRow { amount, ..*row });
                faults.push((Fault::Combined, row.ex_date));
            }
            2 => {
                let amount = row.amount / Decimal::TWO;
                rows.push(ScheduleRow { amount, ..*row });
                faults.push((Fault::Dip, row.ex_date));
            }
            _ if per_year >= 4 => faults.push((Fault::Missing, row.ex_date)),
            _ => rows.push(*row),
        }
    }
    (rows, faults)
}

#[test]
fn planted_faults_are_read_and_sound_rows_are_not() {
    let mut random = Random(7);
    let (mut found, mut planted) = (BTreeMap::new(), BTreeMap::new());
    let (mut sound_rows, mut false_readings) = (0u64, Vec::new());
    for _ in 0..1_000 {
        let (per_year, sound) = payer(&mut random);
        let (rows, faults) = plant(&mut random, per_year, &sound);
        let schedule = Schedule::read(&rows, &Rules::DEFAULT);
        let mut expected: BTreeMap<NaiveDate, Fault> = BTreeMap::new();
        for (fault, ex_date) in &faults {
            *planted.entry(*fault).or_insert(0u64) += 1;
            if *fault == Fault::Missing {
                let year = ex_date.year();
                let is_noticed = schedule.missing.iter().any(|slot| (slot.year - year).abs() <= 1);
                *found.entry(*fault).or_insert(0u64) += u64::from(is_noticed);
            } else {
                expected.insert(*ex_date, *fault);
            }
        }
        for reading in &schedule.readings {
            let fault = match reading.kind {
                AmountReading::Regular => None,
                AmountReading::Special => Some(Fault::Extra),
                AmountReading::Combined => Some(Fault::Combined),
                AmountReading::Dip => Some(Fault::Dip),
            };
            match (expected.get(&reading.ex_date), fault) {
                (Some(expected), Some(fault)) if *expected == fault => *found.entry(fault).or_insert(0) += 1,
                (_, Some(fault)) => false_readings.push((per_year, reading.ex_date, fault)),
                (_, None) => {}
            }
        }
        sound_rows += rows.len() as u64 - expected.len() as u64;
    }
    for (fault, count) in &planted {
        let recalled = found.get(fault).copied().unwrap_or_default();
        assert!(recalled * 100 >= count * 95, "{fault:?}: {recalled} of {count}");
    }
    let share = false_readings.len() as u64 * 1_000;
    assert!(share <= sound_rows, "{} of {sound_rows} sound rows: {false_readings:?}", false_readings.len());
}
