//! Any text is a rule file or gets errors that say where they are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weighlock_policy::{Facts, Layer, LayerKind, Place, Reader, example_place, understand};

fuzz_target!(|text: &str| {
    let place: Place = example_place();
    let judge = |text: &str| -> Facts { understand(text, Reader::Either, &[], &place) };
    for kind in [LayerKind::Server, LayerKind::Agent] {
        if let Err(errors) = Layer::load(kind, "rules.toml", text, &judge) {
            assert!(!errors.is_empty(), "refused without a reason");
            errors.iter().for_each(|error| {
                assert!(!error.message.is_empty(), "an error that says nothing");
            });
        }
    }
});
