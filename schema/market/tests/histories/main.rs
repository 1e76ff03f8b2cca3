//! Whole histories, made by hand: what is derived of them over a life, and what of it is served and explained.

mod absence;
mod actions;
mod around;
mod bases;
mod basis;
mod currencies;
mod decided;
mod explained;
mod figures;
mod held;
mod income;
mod levels;
mod lives;
mod readings;
mod reckoned;
mod renamed;
mod rows;
mod served;
mod shapes;
mod tables;
mod told;
mod windows;
