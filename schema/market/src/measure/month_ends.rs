//! What betas are measured against.

/// Month-end returns of a security's adjusted close.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MonthEnds {
    /// Month (year x 12 + month - 1) and return since the month before, in 10^-15, ascending.
    pub(super) returns: Vec<(i32, i128)>,
}
