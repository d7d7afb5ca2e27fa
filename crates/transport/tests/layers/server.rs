//! The server's end in memory: TLS by rustls, WebSocket by the framing of the codec.

use std::io::{Read, Write};
use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ServerConfig, ServerConnection};
use thrum_codec::websocket::{FrameReader, Opcode, Role, encode_frame};

/// One accepted connection.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) tls: Option<ServerConnection>,
    pub(crate) websocket: Option<WebSocketServer>,
    /// MQTT that has arrived.
    pub(crate) received: Vec<u8>,
    /// The error of TLS.
    pub(crate) failure: Option<rustls::Error>,
}

/// The WebSocket part of a server.
pub(crate) struct WebSocketServer {
    /// The head of the request, until it is complete.
    pub(crate) head: Vec<u8>,
    pub(crate) upgraded: bool,
    reader: FrameReader,
    /// Control frames that have arrived.
    pub(crate) controls: Vec<String>,
}

impl Server {
    pub(crate) fn with_tls(mut self, config: ServerConfig) -> Self {
        self.tls = Some(ServerConnection::new(Arc::new(config)).unwrap());
        self
    }

    pub(crate) fn with_websocket(mut self) -> Self {
        self.websocket = Some(WebSocketServer {
            head: Vec::new(),
            upgraded: false,
            reader: FrameReader::new(Role::Server, 1 << 20),
            controls: Vec::new(),
        });
        self
    }

    /// Takes bytes of the client; the bytes to send back.
    pub(crate) fn receive(&mut self, wire_in: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.tls.is_none() {
            self.receive_plain(wire_in, &mut out);
            return out;
        }
        let mut input = wire_in;
        while !input.is_empty() && self.failure.is_none() {
            let plain = self.decrypt(&mut input);
            let mut answers = Vec::new();
            self.receive_plain(&plain, &mut answers);
            self.encrypt(&answers, &mut out);
        }
        out
    }

    fn decrypt(&mut self, input: &mut &[u8]) -> Vec<u8> {
        let tls = self.tls.as_mut().unwrap();
        tls.read_tls(input).unwrap();
        let mut plain = Vec::new();
        match tls.process_new_packets() {
            Ok(state) => {
                plain.resize(state.plaintext_bytes_to_read(), 0);
                tls.reader().read_exact(&mut plain).unwrap();
            }
            Err(error) => self.failure = Some(error),
        }
        plain
    }

    fn encrypt(&mut self, mut plain: &[u8], out: &mut Vec<u8>) {
        let tls = self.tls.as_mut().unwrap();
        loop {
            let count = tls.writer().write(plain).unwrap_or(plain.len());
            plain = &plain[count..];
            while tls.wants_write() {
                tls.write_tls(out).unwrap();
            }
            if plain.is_empty() {
                return;
            }
        }
    }

    fn receive_plain(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        match &mut self.websocket {
            Some(websocket) => websocket.receive(plain, &mut self.received, out),
            None => self.received.extend_from_slice(plain),
        }
    }

    /// MQTT in its form on the wire.
    pub(crate) fn send(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut frames = Vec::new();
        if self.websocket.is_some() {
            encode_frame(Opcode::Binary, None, plain, &mut frames);
        } else {
            frames.extend_from_slice(plain);
        }
        self.send_raw(&frames)
    }

    /// Bytes below MQTT in their form on the wire.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.tls.is_none() {
            return bytes.to_vec();
        }
        let mut out = Vec::new();
        self.encrypt(bytes, &mut out);
        out
    }
}

impl WebSocketServer {
    fn receive(&mut self, bytes: &[u8], received: &mut Vec<u8>, out: &mut Vec<u8>) {
        let mut input = bytes;
        if !self.upgraded {
            self.head.extend_from_slice(bytes);
            if !self.head.ends_with(b"\r\n\r\n") {
                return;
            }
            self.upgraded = true;
            out.extend_from_slice(self.answer().as_bytes());
            input = &[];
        }
        while let Some(control) = self.reader.read(&mut input, received).unwrap() {
            self.controls.push(format!("{control:?}"));
        }
    }

    fn answer(&self) -> String {
        let head = str::from_utf8(&self.head).unwrap();
        let key = head
            .lines()
            .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
            .unwrap();
        let hashed = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, hashed.as_bytes());
        let accept = STANDARD.encode(hash);
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
        )
    }
}
