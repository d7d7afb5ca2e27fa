//! Plain text in columns.

use std::fmt::Write as _;

/// Lines of cells in columns: the first `words` columns to the left, figures to the right.
///
/// Each line starts with two spaces; a line with fewer cells than others ends early.
pub(crate) fn grid(rows: &[Vec<String>], words: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            if column < words {
                write!(line, " {cell}{padding} ").ok();
            } else {
                write!(line, " {padding}{cell} ").ok();
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A table in Markdown: the first row is its head, the first `words` columns to the left.
pub(crate) fn markdown(rows: &[Vec<String>], words: usize) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
        writeln!(text, "| {} |", cells.join(" | ")).ok();
        if index == 0 {
            let rules = (0..row.len()).map(|column| if column < words { "---" } else { "--:" });
            writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | ")).ok();
        }
    }
    text
}

/// Text that stays in its cell and is not taken for markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '|' | '<' | '[' | '`' | '*' | '\\' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |left: &str, right: &str| vec![left.to_owned(), right.to_owned()];
        vec![row("name", "µs"), row("a|b", "1 000")]
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        assert_eq!(grid(&rows(), 1), "  name     µs\n  a|b   1 000\n");
    }

    #[test]
    fn cells_of_markdown_are_escaped() {
        assert_eq!(
            markdown(&rows(), 1),
            "| name | µs |\n| --- | --: |\n| a\\|b | 1 000 |\n"
        );
    }
}
