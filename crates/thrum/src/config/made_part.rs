//! Parts of the guide that are made from the code, between two marks.

use std::path::Path;

/// Set to write the page instead of comparing it.
const UPDATE: &str = "UPDATE_DOCS";

/// Compares the part of a page of the guide between its marks with what it should be.
pub(super) fn check(page: &str, (begin, end): (&str, &str), fresh: &str) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let path = guide.join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has the begin mark");
    let (_, after) = rest.split_once(end).expect("the page has the end mark");
    let fresh = format!("{before}{begin}{fresh}\n{end}{after}");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(path, fresh).unwrap();
        return;
    }
    assert!(
        text == fresh,
        "{page} is out of date: {UPDATE}=1 cargo test -p thrum --bin thrum the_guide_lists"
    );
}
