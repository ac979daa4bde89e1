//! Afterwards: what must hold, whatever has happened.

pub(super) mod left;
pub(super) mod records;
pub(super) mod rest;
