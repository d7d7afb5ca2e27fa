//! Lines made of dots, eight of them in a character.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use thrum_figures::{fraction, whole};

/// Dots of a cell.
const DOTS: (usize, usize) = (2, 4);

/// A dot, counted from the upper left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    x: usize,
    y: usize,
}

/// Dots, eight in a cell.
pub(super) struct Canvas {
    /// In dots.
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

/// One cell.
#[derive(Clone, Copy)]
struct Cell {
    /// One for each dot.
    bits: u8,
    /// Of the curve that was drawn last.
    style: Style,
}

impl Canvas {
    pub(super) fn new(area: Rect) -> Self {
        let (columns, rows) = (usize::from(area.width), usize::from(area.height));
        let empty = Cell {
            bits: 0,
            style: Style::new(),
        };
        Self {
            width: columns * DOTS.0,
            height: rows * DOTS.1,
            cells: vec![empty; columns * rows],
        }
    }

    /// The dot at a part of the width and of the height, the latter counted from below.
    pub(super) fn dot(&self, across: f64, up: f64) -> Dot {
        Dot {
            x: place(across, self.width),
            y: place(1.0 - up, self.height),
        }
    }

    /// Connects two dots, column by column.
    pub(super) fn line(&mut self, from: Dot, to: Dot, style: Style) {
        let across = to.x.saturating_sub(from.x).max(1);
        let mut before = from.y;
        for column in 0..=across {
            let part = fraction(column as u64) / fraction(across as u64);
            let (start, end) = (fraction(from.y as u64), fraction(to.y as u64));
            let y = usize::try_from(whole(start + (end - start) * part)).unwrap_or(0);
            let x = (from.x + column).min(to.x);
            for y in before.min(y)..=before.max(y) {
                self.set(Dot { x, y }, style);
            }
            before = y;
        }
    }

    fn set(&mut self, Dot { x, y }: Dot, style: Style) {
        let columns = self.width / DOTS.0;
        let cell = y / DOTS.1 * columns + x / DOTS.0;
        if let Some(cell) = self.cells.get_mut(cell) {
            cell.bits |= bit(x % DOTS.0, y % DOTS.1);
            cell.style = style;
        }
    }

    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        for (position, cell) in area.positions().zip(&self.cells) {
            if cell.bits != 0 {
                buffer[position]
                    .set_char(cell.letter())
                    .set_style(cell.style);
            }
        }
    }

    /// All cells one after the other: those of a canvas of one row.
    pub(super) fn text(&self) -> String {
        self.cells.iter().map(Cell::letter).collect()
    }
}

impl Cell {
    fn letter(&self) -> char {
        match self.bits {
            0 => ' ',
            bits => char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '),
        }
    }
}

/// Bit of a dot in a character with eight dots.
const fn bit(x: usize, y: usize) -> u8 {
    match (x, y) {
        (0, 0) => 0x01,
        (0, 1) => 0x02,
        (0, 2) => 0x04,
        (0, _) => 0x40,
        (_, 0) => 0x08,
        (_, 1) => 0x10,
        (_, 2) => 0x20,
        (_, _) => 0x80,
    }
}

/// Place of a part of 1 among a number of places.
pub(super) fn place(part: f64, places: usize) -> usize {
    let last = places.saturating_sub(1);
    usize::try_from(whole(part * fraction(last as u64)))
        .unwrap_or(last)
        .min(last)
}
