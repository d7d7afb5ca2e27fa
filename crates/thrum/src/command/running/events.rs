//! Server-sent events of an answer, one after the other.

use std::io::{self, BufRead, BufReader, Read};

/// Media type of such an answer.
pub(crate) const EVENTS: &str = "text/event-stream";

/// An event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    /// Its lines of data.
    pub(crate) data: String,
}

impl Event {
    fn add_line(&mut self, line: &str) {
        if !self.data.is_empty() {
            self.data.push('\n');
        }
        self.data.push_str(line);
    }
}

/// The events of an answer, as they come.
pub(crate) struct Events<R> {
    lines: io::Lines<BufReader<R>>,
}

impl<R: Read> Events<R> {
    pub(crate) fn of(body: R) -> Self {
        let lines = BufReader::new(body).lines();
        Self { lines }
    }
}

impl<R: Read> Iterator for Events<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut event = Event::default();
        loop {
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            // A line that begins with a colon only shows that the broker is there.
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event.name),
                Some(("data", data)) => event.add_line(data),
                _ if line.is_empty() && event != Event::default() => return Some(Ok(event)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_its_name_and_data_and_lines_between_are_left_out() {
        let body = ": trace of thrum\n\nevent: packet\ndata: {\"a\": 1}\n\n: nothing new\n\n\
                    event: end\ndata: x\ndata: y\n\nevent: cut";
        let events: Vec<Event> = Events::of(body.as_bytes()).map(Result::unwrap).collect();
        let of = |name: &str, data: &str| Event {
            name: name.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(events, [of("packet", "{\"a\": 1}"), of("end", "x\ny")]);
    }
}
