//! The border to the part in C: the crate's `unsafe` code.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::{ptr, slice};

use crate::Error;

/// A parse's outcome in C, field by field as in `raw_parse.c`.
#[repr(C)]
struct Fields {
    context: *mut c_void,
    tree: *mut u8,
    length: usize,
    capacity: usize,
    message: *const c_char,
    detail: *const c_char,
    hint: *const c_char,
    state: [u8; 5],
    position: c_int,
}

unsafe extern "C" {
    fn raw_parse_begin(text: *const c_char, outcome: *mut Fields);
    fn raw_parse_end(outcome: *mut Fields);
}

/// A parse's outcome. It owns the memory of the parser until it is dropped.
///
/// Its pointers are not [`Send`], so it is dropped on the thread that parsed.
pub(crate) struct Outcome(Fields);

impl Outcome {
    /// Parses a text.
    pub(crate) fn of(text: &CStr) -> Self {
        let mut fields = Fields {
            context: ptr::null_mut(),
            tree: ptr::null_mut(),
            length: 0,
            capacity: 0,
            message: ptr::null(),
            detail: ptr::null(),
            hint: ptr::null(),
            state: [0; 5],
            position: 0,
        };
        // SAFETY: the text ends with a null byte and outlives the call, and `fields` has the layout
        // of the structure that the call fills in. All state of the parser belongs to the thread.
        // An error of the parser jumps within the call alone, and the call never runs code in Rust.
        unsafe { raw_parse_begin(text.as_ptr(), &raw mut fields) };
        Self(fields)
    }

    /// The bytes of the tree, unless the parse failed.
    pub(crate) fn tree(&self) -> Option<&[u8]> {
        if !self.0.message.is_null() {
            return None;
        }
        // SAFETY: without an error the parse wrote `length` bytes there, at least the number of
        // statements. They stay as they are until `self` is dropped.
        Some(unsafe { slice::from_raw_parts(self.0.tree, self.0.length) })
    }

    /// The error of a parse that failed.
    pub(crate) fn error(&self) -> Error {
        let text = |from: *const c_char| {
            if from.is_null() {
                return None;
            }
            // SAFETY: the parse left texts there that end with a null byte. They stay as they are
            // until `self` is dropped.
            Some(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
        };
        Error {
            state: self.0.state,
            message: text(self.0.message).unwrap_or_default(),
            detail: text(self.0.detail),
            hint: text(self.0.hint),
            position: u32::try_from(self.0.position).ok().filter(|position| *position > 0),
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        // SAFETY: the fields are those that `raw_parse_begin` filled in, on this thread. Nothing
        // borrows the parse's memory any more, because those borrows borrow `self`.
        unsafe { raw_parse_end(&raw mut self.0) };
    }
}
