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

/// Longest line, and longest data of an event: more than the broker sends at once.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The events of an answer, as they come.
pub(crate) struct Events<R> {
    body: BufReader<R>,
}

impl<R: Read> Events<R> {
    pub(crate) fn of(body: R) -> Self {
        let body = BufReader::new(body);
        Self { body }
    }
}

impl<R: Read> Events<R> {
    /// The next line without its end; none at the end of the answer.
    fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.body).take(LINE_BYTES_MAX as u64 + 1);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(too_long());
        }
        let end = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = str::from_utf8(end.strip_suffix(b"\r").unwrap_or(end));
        let text = text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some(text.to_owned()))
    }
}

impl<R: Read> Iterator for Events<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut event = Event::default();
        loop {
            let line = match self.next_line().transpose()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            if event.data.len() + line.len() > LINE_BYTES_MAX {
                return Some(Err(too_long()));
            }
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

fn too_long() -> io::Error {
    let what = format!("an event has more than {LINE_BYTES_MAX} bytes");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_an_end_is_refused() {
        for line in ["data: x", "data: x\n"] {
            let endless = line.as_bytes().iter().copied().cycle();
            let refused = Events::of(Endless(endless)).next().unwrap().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{line}");
        }
    }

    /// A body that repeats these bytes.
    struct Endless<I>(I);

    impl<I: Iterator<Item = u8>> Read for Endless<I> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            into.fill_with(|| self.0.next().unwrap());
            Ok(into.len())
        }
    }

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
