//! Colour in texts for terminals.

/// The emphasis of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours; the caller turns them off for `NO_COLOR` and without a terminal.
    pub colour: bool,
}

/// The kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// A warning.
    Warning,
    /// A heading.
    Heading,
}

impl Style {
    /// The text, set off as what it is; unchanged without colour.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Warning => "33",
            Tone::Heading => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_only_there_when_asked_for() {
        assert_eq!(Style { colour: false }.paint(Tone::Bad, "x"), "x");
        assert_eq!(
            Style { colour: true }.paint(Tone::Bad, "x"),
            "\u{1b}[31mx\u{1b}[0m"
        );
    }
}
