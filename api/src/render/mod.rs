//! Rendering: conversion of rows to JSON or CSV, calendar files, the envelope, the cache of rendered bodies and the body channel.

pub(crate) mod body_channel;
pub(crate) mod cache;
pub(crate) mod envelope;
pub(crate) mod icalendar;
mod row_cells;
pub(crate) mod rows;
