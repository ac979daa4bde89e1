//! Any bytes are messages between server and keeper, or an error; and what is
//! understood is said again in the same words.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weighlock_exec::check_protocol(bytes));
