//! "Did you mean": the known name nearest to an unknown one.

/// The candidate with the fewest edits to `name`, if it is near enough to be a suggestion.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let edits = candidates
        .into_iter()
        .map(|candidate| (edit_distance(candidate, name), candidate));
    edits
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove, replace or swap with their neighbour, ignoring case.
pub fn edit_distance(left: &str, right: &str) -> usize {
    strsim::osa_distance(&left.to_lowercase(), &right.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_without_regard_to_case() {
        for (left, right, edits) in [
            ("", "abc", 3),
            ("hold", "HOLD", 0),
            ("rate", "rtae", 1),
            ("hold", "hodl", 1),
            ("a", "bc", 2),
            ("", "", 0),
            ("abc", "", 3),
            ("bind", "bnid", 1),
            ("queue", "que", 2),
            ("a", "b", 1),
        ] {
            assert_eq!(edit_distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let known = ["clients", "client_id", "publish"];
        assert_eq!(nearest("cleints", known), Some("clients"));
        assert_eq!(nearest("colour", known), None);
        let known = ["max_packet", "max_qos", "memory"];
        assert_eq!(nearest("max_paket", known), Some("max_packet"));
        assert_eq!(nearest("memroy", known), Some("memory"));
        assert_eq!(nearest("colour", known), None);
    }
}
