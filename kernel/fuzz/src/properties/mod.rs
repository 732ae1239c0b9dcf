//! What must hold of the kernel for any bytes: each takes bytes, makes a case of them, and panics where it does not hold.
//!
//! The fuzz targets (`targets/`) and the tests (`tests/properties.rs`) both call these.

mod batches;
mod deltas;
mod fields;
mod json;
mod lane;
mod lines;
mod messages;

use arbitrary::{Arbitrary, Unstructured};

pub use batches::batches;
pub use deltas::deltas;
pub use fields::fields;
pub use json::json;
pub use lane::lane;
pub use lines::lines;
pub use messages::messages;

/// A case made of bytes, if there are enough of them.
fn made<'a, T: Arbitrary<'a>>(raw: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(raw)).ok()
}
