//! Packs again what older programs left in forms that are written no more; done once, by whoever migrates.

mod bars;
mod observations;

pub(crate) use bars::pack_bars;
pub(crate) use observations::pack_observations;
