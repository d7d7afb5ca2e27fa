//! Text with `*`, which stands for any characters.

/// A text in which `*` stands for any characters, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WildcardText(Box<str>);

impl WildcardText {
    /// Accepts any text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether it matches a text. Costs at most the product of both lengths.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let (mut at, mut of) = (0, 0);
        // The position behind the last `*`, and the position in the text that it is compared with.
        let mut star: Option<(usize, usize)> = None;
        while at < text.len() {
            match (pattern.get(of), star) {
                (Some(b'*'), _) => {
                    of += 1;
                    star = Some((of, at));
                }
                (Some(byte), _) if *byte == text[at] => {
                    at += 1;
                    of += 1;
                }
                (_, Some((behind, from))) => {
                    star = Some((behind, from + 1));
                    (of, at) = (behind, from + 1);
                }
                (_, None) => return false,
            }
        }
        pattern[of..].iter().all(|byte| *byte == b'*')
    }

    /// Bytes of the pattern, which the cost of a comparison depends on.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, text, expected) in [
            ("meter-1", "meter-1", true),
            ("meter-1", "meter-10", false),
            ("meter-*", "meter-", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*-7", "a-7-7", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "acb", false),
            ("**a", "ba", true),
            ("fl\u{fc}*", "fl\u{fc}r", true),
            ("a*aa", "aa", false),
        ] {
            assert_eq!(
                WildcardText::new(pattern).matches(text),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
