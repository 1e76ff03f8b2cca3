//! Rendering: conversion of rows to JSON or CSV, the envelope, the cache of rendered bodies and the body channel.

pub(crate) mod body_channel;
pub(crate) mod cache;
pub(crate) mod envelope;
mod row_cells;
pub(crate) mod rows;
