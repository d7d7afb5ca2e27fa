//! Command lines taken apart as a shell would: quotes, backslashes, comments, several commands.

/// Most characters of a text with command lines.
pub(super) const TEXT_MAX: usize = 64 * 1_024;

/// The commands of a text, each as its words. A command ends with its line, `;`, `&`, `&&`, `|` or
/// `||`.
///
/// None if a quote is not closed.
pub(super) fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut reader = Reader::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                // The command continues on the next line.
                Some('\n') | None => {}
                Some(escaped) => reader.push(escaped),
            },
            quote @ ('\'' | '"') => reader.quoted(quote, &mut letters)?,
            // A `#` begins a comment only where a word could begin: `a/#` is a topic filter.
            '#' if reader.word.is_none() && reader.words.is_empty() => {
                while letters.next_if(|next| *next != '\n').is_some() {}
            }
            '\n' | ';' | '&' | '|' => reader.end_command(),
            letter if letter.is_whitespace() => reader.end_word(),
            letter => reader.push(letter),
        }
    }
    reader.end_command();
    Some(reader.commands)
}

#[derive(Default)]
struct Reader {
    word: Option<String>,
    words: Vec<String>,
    commands: Vec<Vec<String>>,
}

impl Reader {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    /// Takes in everything up to the closing quote; none if it is missing.
    fn quoted(&mut self, quote: char, letters: &mut impl Iterator<Item = char>) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match letters.next()? {
                letter if letter == quote => return Some(()),
                '\\' if quote == '"' => self.push(letters.next()?),
                letter => self.push(letter),
            }
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&[&str]]) {
        assert_eq!(commands(text).unwrap(), expected);
    }

    #[test]
    fn words_are_those_of_a_shell() {
        check(
            "a -t 'b c' \"d\\\"e\" f\\ g ''",
            &[&["a", "-t", "b c", "d\"e", "f g", ""]],
        );
        check("a \\\n  -b", &[&["a", "-b"]]);
    }

    #[test]
    fn commands_are_distinguished() {
        check(
            "a 1 & b 2\n\n# c\nd; e && f",
            &[&["a", "1"], &["b", "2"], &["d"], &["e"], &["f"]],
        );
    }

    #[test]
    fn a_wildcard_is_no_comment() {
        check(
            "sub -t bench/# -t #",
            &[&["sub", "-t", "bench/#", "-t", "#"]],
        );
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert_eq!(commands("a 'b"), None);
        assert_eq!(commands("a \"b\\"), None);
    }
}
