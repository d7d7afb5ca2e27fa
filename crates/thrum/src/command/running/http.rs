//! One request of HTTP/1.1 over a Unix socket.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest time without a byte of the answer; the broker answers with an error earlier.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes of an answer: a page has some MiB if client identifiers are very long.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Fields of the head of an answer.
const FIELDS_MAX: usize = 64;
/// The status of an answer that has no body, and does not announce its length.
const NO_CONTENT: u16 = 204;

/// Method of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Path with its query.
    pub(super) path: &'a str,
    /// JSON; empty without body.
    pub(super) body: &'a str,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends a request and reads the complete answer, which ends with the connection.
pub(super) fn ask(mut stream: UnixStream, request: &Request<'_>) -> io::Result<Answer> {
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    let method = match request.method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Delete => "DELETE",
    };
    let Request { path, body, .. } = request;
    let body_fields = if body.is_empty() {
        String::new()
    } else {
        let len = body.len();
        format!("Content-Type: application/json\r\nContent-Length: {len}\r\n")
    };
    // In one piece: a broker that refuses a request without its body would reset the connection.
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: thrum\r\nAccept: application/json\r\n{body_fields}Connection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    read(&bytes)
}

fn read(bytes: &[u8]) -> io::Result<Answer> {
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head
        .parse(bytes)
        .map_err(|_| broken("the answer is not HTTP"))?;
    let (httparse::Status::Complete(len), Some(status)) = (parsed, head.code) else {
        return Err(broken("the connection ended within the answer"));
    };
    let mut fields = head.headers.iter();
    let announced = fields.find(|field| field.name.eq_ignore_ascii_case("content-length"));
    let announced = announced.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok());
    let body = &bytes[len..];
    let announced = if status == NO_CONTENT {
        Some(0)
    } else {
        announced
    };
    if announced != Some(body.len()) {
        return Err(broken("the connection ended within the answer"));
    }
    Ok(Answer {
        status,
        body: body.to_vec(),
    })
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

    #[test]
    fn an_incomplete_answer_is_an_error() {
        let whole = b"HTTP/1.1 404 Not Found\r\ncontent-type: a\r\nContent-Length: 2\r\n\r\n{}";
        let answer = read(whole).unwrap();
        assert_eq!((answer.status, &*answer.body), (404, &b"{}"[..]));
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end} bytes");
        }
        assert!(read(b"SSH-2.0\r\n\r\n").is_err());
        let empty = read(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert_eq!((empty.status, empty.body.len()), (204, 0));
    }

    #[test]
    fn text_keeps_its_meaning_in_a_path() {
        assert_eq!(encoded("a-1.B_~"), "a-1.B_~");
        assert_eq!(encoded("a/b c%\u{fc}?&"), "a%2Fb%20c%25%C3%BC%3F%26");
    }
}
