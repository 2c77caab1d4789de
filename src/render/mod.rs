//! SHOW. Values in their serialised form to text, JSON and other forms. Pure: gives strings, writes nothing.

pub mod diagnostics;
