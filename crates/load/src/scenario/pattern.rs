//! Texts that differ from client to client: `test/{i}`.

/// Fills in the places of a pattern for client number `number` of its group, counted from 1.
///
/// `{i}` is the number, `{i%20}` the number cycling from 1 to 20, `{run}` the text `run`.
/// Everything else stays unchanged, also `{p}`, which stands for many texts.
pub fn fill(pattern: &str, number: u32, run: &str) -> String {
    let mut filled = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let place = rest.find('}').map(|close| &rest[..=close]);
        let Some((place, text)) =
            place.and_then(|place| Some((place, filled_place(place, number, run)?)))
        else {
            filled.push('{');
            rest = &rest[1..];
            continue;
        };
        filled.push_str(&text);
        rest = &rest[place.len()..];
    }
    filled.push_str(rest);
    filled
}

/// The first place of a pattern that nothing can be filled into.
pub(super) fn unknown_place<'a>(pattern: &'a str, known: &[&str]) -> Option<&'a str> {
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        rest = &rest[open..];
        let place = rest.find('}').map_or(rest, |close| &rest[..=close]);
        if !known.contains(&place) && modulus(place).is_none() {
            return Some(place);
        }
        rest = &rest[place.len()..];
    }
    None
}

/// The largest number that a pattern counts round to: the texts that it needs to take all its
/// forms.
pub(super) fn forms(pattern: &str) -> u32 {
    let places = pattern.split_inclusive('}');
    let places = places.filter_map(|text| modulus(&text[text.find('{')?..]));
    places.max().unwrap_or(1)
}

fn filled_place(place: &str, number: u32, run: &str) -> Option<String> {
    match place {
        "{i}" => Some(number.to_string()),
        "{run}" => Some(run.to_owned()),
        _ => modulus(place).map(|modulus| (number.saturating_sub(1) % modulus + 1).to_string()),
    }
}

fn modulus(place: &str) -> Option<u32> {
    let digits = place.strip_prefix("{i%")?.strip_suffix('}')?;
    digits.parse().ok().filter(|modulus| *modulus > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_and_other_text_stays() {
        for (pattern, filled) in [
            ("test/{i}", "test/21"),
            ("{i%20}/{i%7}", "1/7"),
            ("b{run}-{i}", "bxy-21"),
            ("test/{p}", "test/{p}"),
            ("{\"id\":{i}}", "{\"id\":21}"),
            ("{i%0}{i%}{", "{i%0}{i%}{"),
            ("plain", "plain"),
        ] {
            assert_eq!(fill(pattern, 21, "xy"), filled, "{pattern}");
        }
        assert_eq!(fill("{i%20}", 20, ""), "20");
    }

    #[test]
    fn a_pattern_has_as_many_forms_as_it_counts_to() {
        for (pattern, count) in [("a/{i%5}/{i%20}", 20), ("a/{i}", 1), ("a", 1), ("{i%0}", 1)] {
            assert_eq!(forms(pattern), count, "{pattern}");
        }
    }

    #[test]
    fn an_unknown_place_is_found() {
        assert_eq!(unknown_place("a/{i}/{i%5}", &["{i}"]), None);
        assert_eq!(unknown_place("a/{n}/{i}", &["{i}"]), Some("{n}"));
        assert_eq!(unknown_place("a/{i%0}", &["{i}"]), Some("{i%0}"));
        assert_eq!(unknown_place("a/{i", &["{i}"]), Some("{i"));
    }
}
