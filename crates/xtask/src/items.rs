//! Finds items of Rust source by their brackets alone: blocks of methods, structs and functions.
//!
//! All functions expect masked source, in which comments and the contents of literals are blank.

use std::ops::Range;

/// The methods of one `impl Type { … }`, not those of a trait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Methods {
    /// The type, without its path and its parameters.
    pub(crate) of: String,
    pub(crate) at: usize,
    pub(crate) count: usize,
}

/// A type definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) at: usize,
    /// Number of named fields of a struct; 0 for an enum.
    pub(crate) fields: usize,
}

/// A function with its parameters as written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) at: usize,
    /// Whether it is declared `pub`, so that other crates can call it.
    pub(crate) is_public: bool,
    pub(crate) parameters: Vec<String>,
}

/// Words of the source in order, each with its offset.
pub(crate) fn words(masked: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest + masked[rest..].find(is_of_word)?;
        let found = &masked[begin..];
        let length = found
            .find(|letter| !is_of_word(letter))
            .unwrap_or(found.len());
        rest = begin + length;
        Some((begin, &found[..length]))
    })
}

/// The inherent `impl` blocks.
pub(crate) fn methods(masked: &str) -> Vec<Methods> {
    let mut found = Vec::new();
    for (at, _) in words(masked).filter(|(_, word)| *word == "impl") {
        let Some(body) = block_of_item(masked, at) else {
            continue;
        };
        let header = &masked[at + "impl".len()..body.start];
        if let Some(of) = inherent_type(header) {
            let block = &masked[body];
            let count = words(block)
                .filter(|(place, word)| *word == "fn" && is_named(block, *place))
                .filter(|(place, _)| depth_at(block, *place) == 1)
                .count();
            found.push(Methods { of, at, count });
        }
    }
    found
}

/// Structs and enums.
pub(crate) fn definitions(masked: &str) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut all = words(masked).peekable();
    while let Some((at, word)) = all.next() {
        if !matches!(word, "struct" | "enum" | "union") {
            continue;
        }
        let Some((place, name)) = all.peek().copied() else {
            break;
        };
        if !masked[at + word.len()..place].trim().is_empty() {
            continue;
        }
        let fields = if word == "struct" {
            fields_behind(masked, place + name.len())
        } else {
            0
        };
        found.push(Definition {
            name: name.to_owned(),
            at,
            fields,
        });
    }
    found
}

/// Functions and methods, including those of traits.
pub(crate) fn functions(masked: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in words(masked).filter(|(_, word)| *word == "fn") {
        if !is_named(masked, at) {
            continue;
        }
        let Some((place, name)) = words(&masked[at + 2..]).next() else {
            continue;
        };
        let behind = at + 2 + place + name.len();
        let Some(open) = skip_generics(masked, behind) else {
            continue;
        };
        if masked.as_bytes().get(open) != Some(&b'(') {
            continue;
        }
        found.push(Function {
            name: name.to_owned(),
            at,
            is_public: is_public(&masked[..at]),
            parameters: parts(&masked[open + 1..closing(masked, open)]),
        });
    }
    found
}

/// The braces of an item that starts with `impl` at `at`; `None` if the word belongs to a type.
fn block_of_item(masked: &str, at: usize) -> Option<Range<usize>> {
    let before = masked[..at].trim_end();
    let begins_item = before.is_empty() || before.ends_with(['}', ';', '{', ']']);
    let open = at + masked[at..].find(['{', ';'])?;
    let is_block = begins_item && masked.as_bytes()[open] == b'{';
    is_block.then(|| open..masked.len().min(closing(masked, open) + 1))
}

/// The type of `<T> path::Type<T> where …`; `None` if a trait is implemented.
fn inherent_type(header: &str) -> Option<String> {
    let behind = skip_generics(header, 0)?;
    let header = &header[behind..];
    let bounds = words(header).find(|(_, word)| *word == "where");
    let header = bounds.map_or(header, |(at, _)| &header[..at]);
    let path = header.split('<').next()?;
    let is_of_trait =
        words(header).any(|(at, word)| word == "for" && angle_depth(&header[..at]) == 0);
    let name = path.rsplit("::").next()?.trim();
    let is_type = words(name).next().is_some_and(|(_, word)| word == name);
    (!is_of_trait && is_type).then(|| name.to_owned())
}

/// Number of named fields of a struct whose name ends at `behind`.
fn fields_behind(masked: &str, behind: usize) -> usize {
    let Some(open) = masked[behind..].find(['{', ';', '(']) else {
        return 0;
    };
    let open = behind + open;
    if masked.as_bytes()[open] != b'{' {
        return 0;
    }
    let inside = &masked[open + 1..closing(masked, open)];
    let names = inside.match_indices(':').filter(|(at, _)| {
        let is_path = inside[at + 1..].starts_with(':') || inside[..*at].ends_with(':');
        !is_path && depth_at(inside, *at) == 0 && angle_depth(&inside[..*at]) == 0
    });
    names.count()
}

/// Whether the text before `fn` contains `pub`, and not `pub(crate)`.
fn is_public(before: &str) -> bool {
    let mut rest = before.trim_end();
    while let Some(shorter) = ["const", "async", "unsafe", "extern"]
        .iter()
        .find_map(|word| rest.strip_suffix(word))
    {
        rest = shorter.trim_end();
    }
    rest.strip_suffix("pub")
        .is_some_and(|rest| rest.is_empty() || rest.ends_with([' ', '\n', '{', '}', ';', ']']))
}

/// Whether this is `fn name`, and not the type `fn(…)`.
fn is_named(masked: &str, at: usize) -> bool {
    let behind = masked[at + 2..].trim_start();
    behind.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Position after a `<…>` that may start at `at`, and after the blanks that follow.
fn skip_generics(masked: &str, at: usize) -> Option<usize> {
    let begin = at + blanks(&masked[at..]);
    if !masked[begin..].starts_with('<') {
        return Some(begin);
    }
    let mut depth = 0_usize;
    for (place, letter) in masked[begin..].char_indices() {
        let is_arrow = letter == '>' && masked[..begin + place].ends_with('-');
        match letter {
            '<' => depth += 1,
            '>' if !is_arrow => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let end = begin + place + 1;
            return Some(end + blanks(&masked[end..]));
        }
    }
    None
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Position of the bracket that closes the one at `open`.
fn closing(masked: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in masked.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at;
        }
    }
    masked.len()
}

/// Number of brackets other than `<` that are open at a position.
fn depth_at(text: &str, at: usize) -> usize {
    text[..at].bytes().fold(0, |depth: usize, byte| match byte {
        b'{' | b'(' | b'[' => depth + 1,
        b'}' | b')' | b']' => depth.saturating_sub(1),
        _ => depth,
    })
}

/// Number of angle brackets that are open after a text; `->` closes none.
fn angle_depth(text: &str) -> usize {
    let mut before = b' ';
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'<' => depth += 1,
            b'>' if before != b'-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
    }
    depth
}

/// The parts of a list between its commas, outside of all brackets.
fn parts(list: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0_usize;
    let mut before = ' ';
    for letter in list.chars() {
        match letter {
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            '}' | ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = letter;
        if letter == ',' && depth == 0 {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(letter);
        }
    }
    found.retain(|part| !part.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(String, usize)> {
        let blocks = methods(text).into_iter();
        blocks.map(|block| (block.of, block.count)).collect()
    }

    fn named(list: &[(&str, usize)]) -> Vec<(String, usize)> {
        list.iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    #[test]
    fn methods_of_a_type_are_counted_and_those_of_a_trait_are_not() {
        let text = "impl A { fn a() { fn inner() {} } pub(crate) const fn b() {} }\n\
            impl<T: Fn(u8) -> u8> path::B<T> where T: for<'a> C<'a> { fn c(call: fn(u8)) {} }\n\
            impl D for A { fn d() {} }\n\
            impl<T> From<Vec<T>> for A { fn from() {} }\n\
            fn e() -> impl F { let x = 1; }\n";
        assert_eq!(counts(text), named(&[("A", 2), ("B", 1)]));
    }

    #[test]
    fn fields_of_a_struct_are_counted() {
        let text = "#[derive(X)]\npub struct A<T: B> {\n    #[c(d = 1)]\n    a: e::F,\n\
            \x20   pub(crate) b: HashMap<u8, Box<dyn Fn(u8) -> u8>>,\n    c: [u8; 2],\n}\n\
            struct Unit;\nstruct Pair(u8, u8);\nenum Choice { A { a: u8 } }\n";
        let found = definitions(text).into_iter();
        let found: Vec<(String, usize)> = found.map(|one| (one.name, one.fields)).collect();
        let expected = named(&[("A", 3), ("Unit", 0), ("Pair", 0), ("Choice", 0)]);
        assert_eq!(found, expected);
    }

    #[test]
    fn functions_have_their_parameters() {
        let text = "pub fn a<F: Fn(u8) -> u8>(one: F, (two, three): (u8, u8)) {}\n\
            pub(crate) async fn b(call: fn(u8, u8)) {}\npub const fn c() {}\n";
        let found = functions(text);
        let parameters: Vec<usize> = found.iter().map(|one| one.parameters.len()).collect();
        assert_eq!(parameters, [2, 1, 0]);
        let public: Vec<bool> = found.iter().map(|one| one.is_public).collect();
        assert_eq!(public, [true, false, true]);
        assert_eq!(found[0].parameters[1].trim(), "(two, three): (u8, u8)");
    }
}
