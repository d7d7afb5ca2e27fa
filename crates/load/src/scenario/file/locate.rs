//! Finds the place of a value by its path: `groups.pub.publish.rate`, `faults.0.at`.

use std::ops::Range;

use toml_edit::{Array, ArrayOfTables, Item, Key, TableLike, Value};

/// The kinds of parents of a path's step.
enum Node<'a> {
    Table(&'a dyn TableLike),
    Tables(&'a ArrayOfTables),
    List(&'a Array),
    Leaf,
}

/// Bytes of the value at a path, of its key if it is a table, or of the nearest thing above it.
pub(super) fn span_of(root: &Item, path: &str) -> Option<Range<usize>> {
    let mut node = Node::of_item(root);
    let mut span = None;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Some((child, place)) = node.step(name) else {
            break;
        };
        node = child;
        span = place.or(span);
    }
    span
}

/// Whether a path exists.
pub(super) fn is_at(root: &Item, path: &str) -> bool {
    let mut node = Node::of_item(root);
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let Some((child, _)) = node.step(name) else {
            return false;
        };
        node = child;
    }
    true
}

impl<'a> Node<'a> {
    fn of_item(item: &'a Item) -> Self {
        match item {
            Item::None => Self::Leaf,
            Item::Value(value) => Self::of_value(value),
            Item::Table(table) => Self::Table(table),
            Item::ArrayOfTables(tables) => Self::Tables(tables),
        }
    }

    fn of_value(value: &'a Value) -> Self {
        match value {
            Value::InlineTable(table) => Self::Table(table),
            Value::Array(list) => Self::List(list),
            _ => Self::Leaf,
        }
    }

    fn step(&self, name: &str) -> Option<(Self, Option<Range<usize>>)> {
        match self {
            Self::Table(table) => {
                let item = table.get(name)?;
                let key = table.key(name).and_then(Key::span);
                let value = item.as_value().and_then(Value::span);
                Some((Self::of_item(item), value.or(key).or_else(|| item.span())))
            }
            Self::Tables(tables) => {
                let table = tables.get(name.parse().ok()?)?;
                Some((Self::Table(table), table.span()))
            }
            Self::List(list) => {
                let value = list.get(name.parse().ok()?)?;
                Some((Self::of_value(value), value.span()))
            }
            Self::Leaf => None,
        }
    }
}
