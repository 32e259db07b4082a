//! The ranges that the parsers of files check, recorded while they read, for the JSON Schemas. Without the feature
//! `schema` nothing is recorded.

/// A field's path, the least and the largest value that the parser takes there.
#[cfg(feature = "schema")]
pub type Seen = (String, f64, f64);

#[cfg(feature = "schema")]
thread_local! {
    static SEEN: std::cell::RefCell<Option<Vec<Seen>>> = const { std::cell::RefCell::new(None) };
}

/// What is checked while `read` runs, in its order.
#[cfg(feature = "schema")]
pub fn recorded(read: impl FnOnce()) -> Vec<Seen> {
    SEEN.set(Some(Vec::new()));
    read();
    SEEN.take().unwrap_or_default()
}

/// Records a check, if it is asked for.
#[cfg(feature = "schema")]
pub(crate) fn note(path: &str, low: f64, high: f64) {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.push((path.to_owned(), low, high));
        }
    });
}

/// Records nothing.
#[cfg(not(feature = "schema"))]
pub(crate) fn note(_: &str, _: f64, _: f64) {}
