//! Functions for worked cases: conversion of inputs, derivation of figures, and comparison.

pub(crate) mod compare;
pub(crate) mod inputs;
pub(crate) mod outputs;
pub(crate) mod tables;
