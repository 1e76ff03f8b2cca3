//! Price rules (R10–R12, R22, R23, R30): adjustment, ranges, returns and risk from the raw bars of one security.

pub mod adjustment;
pub mod growth_of_amount;
pub mod range;
pub mod risk;
pub(crate) mod series;
pub mod total_return;
