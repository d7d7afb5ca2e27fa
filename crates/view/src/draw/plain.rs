//! The last step of a frame: characters that the terminal cannot show are replaced, cell by cell.

use ratatui::buffer::Buffer;
use ratatui::style::Color;

use crate::view::{Glyphs, Look, Palette};

/// Bits of a character that is full of dots.
const ALL_DOTS: u32 = 0xff;

/// First and last character with dots.
const BRAILLE: (char, char) = ('\u{2800}', '\u{28ff}');

pub(crate) fn apply(buffer: &mut Buffer, look: Look) {
    for cell in &mut buffer.content {
        if look.palette == Palette::Plain {
            cell.set_fg(Color::Reset).set_bg(Color::Reset);
        }
        if look.glyphs == Glyphs::Ascii && !cell.symbol().is_ascii() {
            let mut letters = cell.symbol().chars();
            let plain = letters.next().map_or(' ', ascii);
            cell.set_char(plain);
        }
    }
}

/// The closest ASCII character.
fn ascii(letter: char) -> char {
    match letter {
        '─' | '–' | '┈' => '-',
        '│' | '┊' => '|',
        '\u{2500}'..='\u{257f}' => '+',
        '▁' => '_',
        '▂' => '.',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => '*',
        '▇' => '%',
        '\u{2588}'..='\u{258f}' => '#',
        '·' => '.',
        '…' => '~',
        '→' => '>',
        '✓' => 'v',
        '✗' | '×' => 'x',
        '▼' => 'v',
        '≤' => '<',
        'µ' | 'μ' => 'u',
        _ if (BRAILLE.0..=BRAILLE.1).contains(&letter) => of_dots(letter),
        _ => '?',
    }
}

/// A character with its ink where the dots are.
fn of_dots(letter: char) -> char {
    let dots = u32::from(letter) - u32::from(BRAILLE.0);
    if dots == ALL_DOTS {
        return '#';
    }
    let upper = dots & 0b0001_1011 != 0;
    let lower = dots & 0b1110_0100 != 0;
    match (upper, lower) {
        (true, true) => ':',
        (true, false) => '\'',
        (false, true) => '.',
        (false, false) => ' ',
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    fn applied(text: &str, look: Look) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 30, 1));
        buffer.set_string(0, 0, text, Style::new().fg(Color::Red));
        apply(&mut buffer, look);
        buffer
    }

    #[test]
    fn everything_is_ascii_where_nothing_else_is_shown() {
        let look = Look {
            glyphs: Glyphs::Ascii,
            palette: Palette::Colour,
        };
        let buffer = applied("┌─┬ 41µs ✓ ✗ ▁█▌ ⠁⣀⣿ 温 →…×", look);
        let text: String = buffer
            .content
            .iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect();
        assert_eq!(text.trim_end(), "+-+ 41us v x _## '.# ?  >~x");
    }

    #[test]
    fn no_colour_is_left_where_none_is_wanted() {
        let look = Look {
            glyphs: Glyphs::Unicode,
            palette: Palette::Plain,
        };
        let buffer = applied("text", look);
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
        assert_eq!(buffer.content[0].symbol(), "t");
    }
}
