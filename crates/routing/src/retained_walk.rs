//! A walk over the topics with a retained message, along the branches that a filter can match.

use alloc::boxed::Box;
use alloc::collections::btree_map::Range;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Included};

use crate::levels::LevelId;
use crate::retained::{Edge, Retained, root_of};

/// The end of a page, valid in every process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    root: u32,
    /// The levels down to the last visited node; `None` before the first.
    path: Option<Box<str>>,
}

impl Position {
    /// The position in a walk of the filter after the node at these topic levels.
    pub fn of(filter: &str, path: &str) -> Self {
        Self {
            root: root_of(filter),
            path: Some(path.into()),
        }
    }

    /// The topic levels that the walk has reached; `None` at its start.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    pub(crate) const fn start_of(root: u32) -> Self {
        Self { root, path: None }
    }

    pub(crate) const fn root(&self) -> u32 {
        self.root
    }
}

/// One level of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its edge from the root; from another node it has the same order and level.
    Literal(Edge),
    SingleLevel,
    MultiLevel,
}

/// Visits the nodes that a filter can match, parents first, children in the order of their edges.
pub(crate) struct Walk<'a, M> {
    retained: &'a Retained<M>,
    steps: Vec<Step>,
    /// The nodes from the root down to the current one.
    path: Vec<Place<'a>>,
}

/// A node on the path, and its children that are still to be visited.
struct Place<'a> {
    node: u32,
    children: Children<'a>,
}

enum Children<'a> {
    All,
    These(Range<'a, Edge, u32>),
    None,
}

impl Place<'_> {
    const fn new(node: u32) -> Self {
        Self {
            node,
            children: Children::All,
        }
    }
}

impl<'a, M> Walk<'a, M> {
    /// Creates a walk; `None` if a level of the filter occurs in no topic.
    pub(crate) fn new(retained: &'a Retained<M>, filter: &str) -> Option<Self> {
        let step = |level: &str| match level {
            "#" => Some(Step::MultiLevel),
            "+" => Some(Step::SingleLevel),
            text => {
                let level = retained.levels.find(text.as_bytes())?;
                Some(Step::Literal(Edge::new(0, text, level)))
            }
        };
        let steps = filter.split('/').map(step).collect::<Option<Vec<_>>>()?;
        Some(Self::from_root(retained, steps, root_of(filter)))
    }

    /// A walk over every topic below a root.
    pub(crate) fn of_all(retained: &'a Retained<M>, root: u32) -> Self {
        Self::from_root(retained, vec![Step::MultiLevel], root)
    }

    fn from_root(retained: &'a Retained<M>, steps: Vec<Step>, root: u32) -> Self {
        Self {
            retained,
            steps,
            path: vec![Place::new(root)],
        }
    }

    /// Moves to the position of another walk, or, if its topics were removed, to the last existing
    /// node before it.
    pub(crate) fn resume(&mut self, position: &Position) {
        let path = position.path.as_deref().into_iter();
        for text in path.flat_map(|path| path.split('/')) {
            let step = self.step();
            let level = self.retained.levels.find(text.as_bytes());
            let edge = Edge::new(self.current(), text, level.unwrap_or(LevelId::FIRST));
            self.leave_behind(edge, step);
            let child = level.and_then(|_| self.retained.edges.get(&edge));
            match child.filter(|_| may_enter(step, edge)) {
                Some(&child) => self.path.push(Place::new(child)),
                None => return,
            }
        }
    }

    /// Restricts the current node's children to those after an edge.
    fn leave_behind(&mut self, edge: Edge, step: Option<Step>) {
        let edges = &self.retained.edges;
        let Some(here) = self.path.last_mut() else {
            return;
        };
        here.children = match step {
            Some(Step::Literal(literal)) if literal.below(here.node) > edge => Children::All,
            Some(Step::Literal(_)) | None => Children::None,
            Some(Step::SingleLevel | Step::MultiLevel) => {
                Children::These(edges.range((Excluded(edge), Included(Edge::last(here.node)))))
            }
        };
    }

    pub(crate) fn position(&self) -> Position {
        let mut path = String::new();
        for (depth, place) in self.path.iter().skip(1).enumerate() {
            if depth > 0 {
                path.push('/');
            }
            let level = self.retained.nodes[place.node].level;
            path.push_str(self.retained.levels.text(level));
        }
        Position {
            root: self.path.first().map_or(0, |root| root.node),
            path: (self.depth() > 0).then(|| path.into()),
        }
    }

    fn current(&self) -> u32 {
        self.path.last().map_or(0, |place| place.node)
    }

    /// Number of levels from the root to the current node.
    fn depth(&self) -> usize {
        self.path.len() - 1
    }

    /// The filter level for the children of the current node.
    fn step(&self) -> Option<Step> {
        let last = self.steps.last().copied();
        let beyond = last.filter(|&step| step == Step::MultiLevel);
        self.steps.get(self.depth()).copied().or(beyond)
    }

    /// Moves to the next node; returns `false` at the end.
    pub(crate) fn advance(&mut self) -> bool {
        loop {
            if let Some(child) = self.next_child() {
                self.path.push(Place::new(child));
                return true;
            }
            if self.depth() == 0 {
                return false;
            }
            self.path.pop();
        }
    }

    fn next_child(&mut self) -> Option<u32> {
        let step = self.step();
        let Retained { nodes, edges, .. } = self.retained;
        let here = self.path.last_mut()?;
        if let Children::These(left) = &mut here.children {
            return left.next().map(|(_, &child)| child);
        }
        let before = core::mem::replace(&mut here.children, Children::None);
        if matches!(before, Children::None) || nodes[here.node].children == 0 {
            return None;
        }
        if let Step::Literal(literal) = step? {
            return edges.get(&literal.below(here.node)).copied();
        }
        let mut children = edges.range(Edge::first(here.node)..=Edge::last(here.node));
        let first = children.next().map(|(_, &child)| child);
        here.children = Children::These(children);
        first
    }

    /// The message of the current node, if the whole filter matches its topic.
    pub(crate) fn message(&self) -> Option<&'a M> {
        let depth = self.depth();
        let is_whole = match self.steps.last() {
            // `#` also matches the parent level.
            Some(Step::MultiLevel) => depth + 1 >= self.steps.len(),
            _ => depth == self.steps.len(),
        };
        if is_whole {
            self.retained.nodes[self.current()].message.as_ref()
        } else {
            None
        }
    }
}

fn may_enter(step: Option<Step>, edge: Edge) -> bool {
    match step {
        Some(Step::Literal(literal)) => literal.below(edge.parent) == edge,
        Some(Step::SingleLevel | Step::MultiLevel) => true,
        None => false,
    }
}
