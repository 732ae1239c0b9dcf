#![no_main]

libfuzzer_sys::fuzz_target!(|raw: &[u8]| shoal_kernel_fuzz::properties::batches(raw));
