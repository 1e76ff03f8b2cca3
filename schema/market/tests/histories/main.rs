//! Tests on whole histories that were written by hand: derived figures, served rows and explanations.

mod absence;
mod actions;
mod adjusted_feeds;
mod around;
mod bases;
mod basis;
mod currencies;
mod decided;
mod depth;
mod exchange_rates;
mod explained;
mod figures;
mod held;
mod income;
mod levels;
mod lives;
#[path = "../../../../tests/harness/older_dates.rs"]
#[expect(unreachable_pub, reason = "the harness of the tests exports the function")]
mod older_dates;
mod parts_of_day;
mod readings;
mod reckoned;
mod renamed;
mod rows;
mod second_set;
mod served;
mod shapes;
mod tables;
mod told;
mod units;
mod windows;
