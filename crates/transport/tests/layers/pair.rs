//! A client and a server with the wire between them.

use thrum_transport::{Connector, Endpoint, LayerError, Layers, TlsOptions};

use crate::authority::Authority;
use crate::server::Server;

/// Rounds after which both must have stopped sending.
const ROUNDS_MAX: usize = 20;

/// One connection; bytes arrive in pieces of `piece_bytes`.
pub(crate) struct Pair {
    pub(crate) client: Layers,
    pub(crate) server: Server,
    /// MQTT that the client has received.
    pub(crate) received: Vec<u8>,
    to_server: Vec<u8>,
    piece_bytes: usize,
}

impl Pair {
    pub(crate) fn new(client: Layers, server: Server, piece_bytes: usize) -> Self {
        Self {
            client,
            server,
            received: Vec::new(),
            to_server: Vec::new(),
            piece_bytes,
        }
    }

    /// Connects and lets both do their handshakes.
    pub(crate) fn open(&mut self) -> Result<(), LayerError> {
        assert!(!self.client.is_open());
        self.client.start(&mut self.to_server)?;
        self.carry()
    }

    /// Carries bytes both ways until neither end sends more.
    pub(crate) fn carry(&mut self) -> Result<(), LayerError> {
        for _round in 0..ROUNDS_MAX {
            if self.to_server.is_empty() {
                return Ok(());
            }
            let mut to_client = Vec::new();
            for piece in std::mem::take(&mut self.to_server).chunks(self.piece_bytes) {
                to_client.extend(self.server.receive(piece));
            }
            self.deliver(&to_client)?;
        }
        panic!("the handshake does not end");
    }

    /// Carries bytes to the client only.
    pub(crate) fn deliver(&mut self, to_client: &[u8]) -> Result<(), LayerError> {
        let mut bytes = to_client.to_vec();
        let mut pieces = bytes.chunks_mut(self.piece_bytes);
        pieces.try_for_each(|piece| {
            self.client
                .receive(piece, &mut self.received, &mut self.to_server)
        })
    }

    /// Carries the client's last bytes, such as an alert.
    pub(crate) fn flush(&mut self) {
        let last = std::mem::take(&mut self.to_server);
        self.server.receive(&last);
    }

    pub(crate) fn client_sends(&mut self, plain: &[u8]) -> Result<(), LayerError> {
        self.client.send(plain, &mut self.to_server)?;
        self.carry()
    }

    pub(crate) fn server_sends(&mut self, plain: &[u8]) -> Result<(), LayerError> {
        let bytes = self.server.send(plain);
        self.deliver(&bytes)?;
        self.carry()
    }

    pub(crate) fn client_closes(&mut self) {
        self.client.close(&mut self.to_server);
    }
}

pub(crate) fn layers(endpoint: &str, options: &TlsOptions) -> Layers {
    let endpoint = Endpoint::parse(endpoint).unwrap();
    Connector::new(&endpoint, options)
        .unwrap()
        .layers()
        .unwrap()
}

/// Options that trust this authority.
pub(crate) fn trusting(authority: &Authority) -> TlsOptions {
    TlsOptions {
        ca_file: Some(authority.file()),
        ..TlsOptions::default()
    }
}

/// A client and a server that trust each other, for each scheme that has layers.
pub(crate) fn pair(scheme: &str, piece_bytes: usize) -> Pair {
    let (mut server, mut options) = (Server::default(), TlsOptions::default());
    if matches!(scheme, "mqtts" | "wss") {
        let authority = Authority::new();
        server = server.with_tls(authority.sign("localhost").server(None));
        options = trusting(&authority);
    }
    if matches!(scheme, "ws" | "wss") {
        server = server.with_websocket();
    }
    let client = layers(&format!("{scheme}://localhost"), &options);
    Pair::new(client, server, piece_bytes)
}

/// The same after the handshakes.
pub(crate) fn opened(scheme: &str, piece_bytes: usize) -> Pair {
    let mut pair = pair(scheme, piece_bytes);
    pair.open().unwrap();
    assert!(pair.client.is_open());
    pair
}
