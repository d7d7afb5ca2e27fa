//! One request of HTTP/1.1 over a stream, and its answer, read bit by bit.

use std::io::{self, Read, Write};
use std::time::Duration;

/// Longest time without a byte of the answer; the broker answers with an error earlier.
pub(super) const TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of an answer that is read as a whole: a page has some MiB if client identifiers are very
/// long.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Fields of the head of an answer.
const FIELDS_MAX: usize = 64;
/// Bytes of the head of an answer, and of the line before a chunk.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// The status of an answer that has no body, and does not announce its length.
const NO_CONTENT: u16 = 204;

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    /// Path with its query.
    pub(crate) path: &'a str,
    /// Media types that the answer may have.
    pub(crate) accept: &'a str,
    /// Empty without body.
    pub(crate) body: &'a [u8],
    /// Media type of the body.
    pub(crate) body_type: &'a str,
}

/// Where requests go, as far as their heads name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressee<'a> {
    /// Value of the field `Host`.
    pub(super) host: &'a str,
    /// An API key; none at a control socket.
    pub(super) token: Option<&'a str>,
}

/// An answer whose body is still to be read.
pub(crate) struct Answer<S> {
    pub(crate) status: u16,
    /// Media type of the body, without its parameters.
    pub(crate) kind: String,
    pub(crate) body: Body<S>,
}

/// Sends a request and reads the head of the answer.
pub(super) fn ask<S: Read + Write>(
    mut stream: S,
    to: Addressee<'_>,
    request: &Request<'_>,
) -> io::Result<Answer<S>> {
    // In one piece: a broker that refuses a request without its body would reset the connection.
    let mut bytes = head(to, request).into_bytes();
    bytes.extend_from_slice(request.body);
    match stream.write_all(&bytes).and_then(|()| stream.flush()) {
        // A broker that refuses a long body answers before it has read all of it.
        Err(error) if is_end(&error) => read_head(Buffered::new(stream)).map_err(|_| error),
        Err(error) => Err(error),
        Ok(()) => read_head(Buffered::new(stream)),
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn head(to: Addressee<'_>, request: &Request<'_>) -> String {
    let Request {
        method,
        path,
        accept,
        body,
        body_type,
    } = request;
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n",
        method.name(),
        to.host
    );
    if let Some(token) = to.token {
        head.extend(["Authorization: Bearer ", token, "\r\n"]);
    }
    if !body.is_empty() {
        let len = body.len();
        head.extend([format!(
            "Content-Type: {body_type}\r\nContent-Length: {len}\r\n"
        )]);
    } else if *method != Method::Get && *method != Method::Delete {
        head.push_str("Content-Length: 0\r\n");
    }
    head.push_str("Connection: close\r\n\r\n");
    head
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The connection ended within the answer.
fn cut() -> io::Error {
    broken("the connection ended within the answer")
}

fn read_head<S: Read>(mut stream: Buffered<S>) -> io::Result<Answer<S>> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = head
            .parse(stream.unread())
            .map_err(|_| broken("the answer is not HTTP"))?;
        if let (httparse::Status::Complete(len), Some(status)) = (parsed, head.code) {
            let value = |name: &str| {
                let mut fields = head.headers.iter();
                let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
                Some(String::from_utf8_lossy(field.value).trim().to_owned())
            };
            let length = value("content-length").map(|text| text.parse());
            let length = length.transpose().map_err(|_| broken("a wrong length"))?;
            let is_chunked = value("transfer-encoding")
                .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
            let left = match (status, length, is_chunked) {
                (NO_CONTENT, _, _) => Left::Length(0),
                (_, _, true) => Left::Chunk(0),
                (_, Some(length), false) => Left::Length(length),
                (_, None, false) => return Err(broken("the answer has no length")),
            };
            let kind = value("content-type").unwrap_or_default();
            let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
            stream.take(len);
            let body = Body {
                stream,
                left,
                is_first_chunk: true,
            };
            return Ok(Answer { status, kind, body });
        }
        if stream.unread().len() > HEAD_BYTES_MAX {
            return Err(broken("the head of the answer is too long"));
        }
        if stream.fill()? == 0 {
            return Err(cut());
        }
    }
}

impl<S: Read> Answer<S> {
    /// The whole body.
    pub(super) fn read(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.body).take(ANSWER_BYTES_MAX);
        limited.read_to_end(&mut bytes)?;
        if bytes.len() as u64 == ANSWER_BYTES_MAX {
            return Err(broken("the answer has more than 64 MiB"));
        }
        Ok(bytes)
    }
}

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Bytes of the whole body.
    Length(u64),
    /// Bytes of a chunk; others follow.
    Chunk(u64),
    /// Nothing.
    Nothing,
}

/// The body of an answer.
pub(crate) struct Body<S> {
    stream: Buffered<S>,
    left: Left,
    is_first_chunk: bool,
}

impl<S: Read> Body<S> {
    /// Reads the line before a chunk.
    fn begin_chunk(&mut self) -> io::Result<()> {
        if !self.is_first_chunk && !self.stream.line()?.is_empty() {
            return Err(broken("a chunk has another length than it says"));
        }
        self.is_first_chunk = false;
        let line = self.stream.line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| broken("a chunk without a length"))?;
        if size > 0 {
            self.left = Left::Chunk(size);
            return Ok(());
        }
        // Fields may follow the last chunk.
        while !self.stream.line()?.is_empty() {}
        self.left = Left::Nothing;
        Ok(())
    }
}

impl<S: Read> Read for Body<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == Left::Chunk(0) {
            self.begin_chunk()?;
        }
        let (Left::Length(left) | Left::Chunk(left)) = self.left else {
            return Ok(0);
        };
        if left == 0 || into.is_empty() {
            return Ok(0);
        }
        if self.stream.unread().is_empty() && self.stream.fill()? == 0 {
            return Err(cut());
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        let unread = self.stream.unread();
        let count = most.min(unread.len());
        into[..count].copy_from_slice(&unread[..count]);
        self.stream.take(count);
        let left = left - count as u64;
        self.left = match self.left {
            Left::Length(_) => Left::Length(left),
            Left::Chunk(_) | Left::Nothing => Left::Chunk(left),
        };
        Ok(count)
    }
}

/// A stream with bytes that were read and not yet used.
struct Buffered<S> {
    stream: S,
    bytes: Vec<u8>,
    used: usize,
}

impl<S: Read> Buffered<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
            used: 0,
        }
    }

    fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    fn take(&mut self, count: usize) {
        self.used += count;
        if self.used == self.bytes.len() {
            self.bytes.clear();
            self.used = 0;
        }
    }

    /// Reads more; 0 at the end of the stream.
    fn fill(&mut self) -> io::Result<usize> {
        self.bytes.drain(..self.used);
        self.used = 0;
        let before = self.bytes.len();
        self.bytes.resize(before + READ_BYTES, 0);
        let read = loop {
            match self.stream.read(&mut self.bytes[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.bytes
            .truncate(before + read.as_ref().copied().unwrap_or(0));
        read
    }

    /// A line without its end.
    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.unread().iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&self.unread()[..end]).into_owned();
                self.take(end + 1);
                return Ok(line.trim_end_matches('\r').to_owned());
            }
            if self.unread().len() > HEAD_BYTES_MAX {
                return Err(broken("a line of the answer is too long"));
            }
            if self.fill()? == 0 {
                return Err(cut());
            }
        }
    }
}

/// Text as a part of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend([format!("%{byte:02X}")]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status and the body of an answer that comes in pieces of so many bytes.
    fn read(bytes: &[u8], piece: usize) -> io::Result<(u16, Vec<u8>)> {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(into.len());
                into[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let answer = read_head(Buffered::new(Pieces(bytes, piece)))?;
        Ok((answer.status, answer.read()?))
    }

    #[test]
    fn an_incomplete_answer_is_an_error() {
        let whole = b"HTTP/1.1 404 Not Found\r\ncontent-type: a\r\nContent-Length: 2\r\n\r\n{}";
        for piece in [1, 7, 1000] {
            assert_eq!(read(whole, piece).unwrap(), (404, b"{}".to_vec()));
        }
        for end in 0..whole.len() {
            assert!(read(&whole[..end], 1000).is_err(), "{end} bytes");
        }
        assert!(read(b"SSH-2.0\r\n\r\n", 1000).is_err());
        assert!(read(b"HTTP/1.1 200 OK\r\n\r\n{}", 1000).is_err());
        let empty = read(b"HTTP/1.1 204 No Content\r\n\r\n", 1000).unwrap();
        assert_eq!(empty, (204, Vec::new()));
    }

    #[test]
    fn chunks_are_put_together_and_a_missing_one_is_noticed() {
        let whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
            3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
        for piece in [1, 7, 1000] {
            assert_eq!(read(whole, piece).unwrap().1, b"abc0123456789");
        }
        for end in 0..whole.len() {
            assert!(read(&whole[..end], 1000).is_err(), "{end} bytes");
        }
        let wrong = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n";
        assert!(read(wrong, 1000).is_err());
    }

    #[test]
    fn the_head_has_the_key_and_the_length_of_the_body() {
        let request = Request {
            method: Method::Post,
            path: "/api/v1/keys",
            accept: "application/json",
            body: b"{}",
            body_type: "application/json",
        };
        let to = Addressee {
            host: "h:8080",
            token: Some("secret"),
        };
        assert_eq!(
            head(to, &request),
            "POST /api/v1/keys HTTP/1.1\r\nHost: h:8080\r\nAccept: application/json\r\n\
             Authorization: Bearer secret\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\
             Connection: close\r\n\r\n"
        );
        let empty = Request {
            body: b"",
            ..request
        };
        assert!(head(to, &empty).contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn a_refusal_is_read_although_the_body_was_not_taken() {
        struct Refusing(&'static [u8]);
        impl Write for Refusing {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Read for Refusing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0.read(into)
            }
        }
        let to = Addressee {
            host: "h",
            token: None,
        };
        let request = Request {
            method: Method::Post,
            path: "/",
            accept: "*/*",
            body: b"long",
            body_type: "text/plain",
        };
        let refusal = Refusing(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno");
        let answer = ask(refusal, to, &request).ok().unwrap();
        assert_eq!(
            (answer.status, answer.read().unwrap()),
            (400, b"no".to_vec())
        );
        let gone = ask(Refusing(b""), to, &request).err().unwrap();
        assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn text_keeps_its_meaning_in_a_path() {
        assert_eq!(encoded("a-1.B_~"), "a-1.B_~");
        assert_eq!(encoded("a/b c%\u{fc}?&"), "a%2Fb%20c%25%C3%BC%3F%26");
    }
}
