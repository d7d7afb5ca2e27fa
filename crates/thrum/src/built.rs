//! Which parts this program was built with.

/// Parts by the names of their Cargo features, and whether this program has them.
const PARTS: [(&str, bool); 9] = [
    ("bench", cfg!(feature = "bench")),
    ("http-auth", cfg!(feature = "http-auth")),
    ("ldap", cfg!(feature = "ldap")),
    ("management", cfg!(feature = "management")),
    ("png", cfg!(feature = "png")),
    ("quic", cfg!(feature = "quic")),
    ("redis", cfg!(feature = "redis")),
    ("sql", cfg!(feature = "sql")),
    ("tui", cfg!(feature = "tui")),
];

/// The line of the version that names what was left out; none of a complete program.
pub(crate) fn left_out() -> Option<String> {
    line(&PARTS)
}

fn line(parts: &[(&str, bool)]) -> Option<String> {
    let missing = parts.iter().filter(|(_, is_built)| !is_built);
    let names: Vec<&str> = missing.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("built without: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_parts_are_listed() {
        assert_eq!(line(&[("a", true), ("b", true)]), None);
        let said = line(&[("a", false), ("b", true), ("c", false)]);
        assert_eq!(said.as_deref(), Some("built without: a, c"));
    }
}
