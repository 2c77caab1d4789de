#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cutlist_fuzz::lsp(bytes));
