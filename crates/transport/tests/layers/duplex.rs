//! A client and an accepted connection with the wire between them.

use thrum_transport::{
    Acceptor, ClientFault, Connector, Endpoint, LayerError, Layers, ServerLayers, ServerTlsOptions,
    TlsOptions, WebSocketOptions,
};

use crate::authority::{Authority, Identity};
use crate::pair::trusting;

/// Rounds after which both must have stopped sending.
const ROUNDS_MAX: usize = 20;

/// One connection; bytes arrive in pieces of `piece_bytes`.
pub(crate) struct Duplex {
    pub(crate) client: Layers,
    pub(crate) server: ServerLayers,
    /// The configuration of the server's end.
    pub(crate) acceptor: Acceptor,
    /// MQTT that the client has received.
    pub(crate) to_client: Vec<u8>,
    /// MQTT that the server has received.
    pub(crate) to_server: Vec<u8>,
    client_out: Vec<u8>,
    server_out: Vec<u8>,
    piece_bytes: usize,
}

/// The last error of either end.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) client: Option<LayerError>,
    pub(crate) server: Option<LayerError>,
}

impl Duplex {
    pub(crate) fn new(client: Layers, acceptor: &Acceptor, piece_bytes: usize) -> Self {
        Self {
            client,
            server: acceptor.layers().unwrap(),
            acceptor: acceptor.clone(),
            to_client: Vec::new(),
            to_server: Vec::new(),
            client_out: Vec::new(),
            server_out: Vec::new(),
            piece_bytes,
        }
    }

    /// Lets both do their handshakes.
    pub(crate) fn open(&mut self) -> Faults {
        self.client.start(&mut self.client_out).unwrap();
        self.carry()
    }

    /// Carries bytes both ways until neither end sends more; an end that has failed sends no more,
    /// but its last bytes are carried.
    pub(crate) fn carry(&mut self) -> Faults {
        let mut faults = Faults::default();
        for _round in 0..ROUNDS_MAX {
            if self.client_out.is_empty() && self.server_out.is_empty() {
                return faults;
            }
            self.carry_to_server(&mut faults);
            self.carry_to_client(&mut faults);
        }
        panic!("the two do not stop sending");
    }

    fn carry_to_server(&mut self, faults: &mut Faults) {
        let mut wire = std::mem::take(&mut self.client_out);
        for piece in wire.chunks_mut(self.piece_bytes) {
            if faults.server.is_some() {
                return;
            }
            let (plain, out) = (&mut self.to_server, &mut self.server_out);
            faults.server = self.server.receive(piece, plain, out).err();
        }
    }

    fn carry_to_client(&mut self, faults: &mut Faults) {
        let mut wire = std::mem::take(&mut self.server_out);
        for piece in wire.chunks_mut(self.piece_bytes) {
            if faults.client.is_some() {
                return;
            }
            let (plain, out) = (&mut self.to_client, &mut self.client_out);
            faults.client = self.client.receive(piece, plain, out).err();
        }
    }

    pub(crate) fn client_sends(&mut self, plain: &[u8]) {
        self.client.send(plain, &mut self.client_out).unwrap();
        self.carry().none();
    }

    pub(crate) fn server_sends(&mut self, pieces: &[&[u8]]) {
        let pieces = pieces.iter().copied();
        self.server.send(pieces, &mut self.server_out).unwrap();
        self.carry().none();
    }

    pub(crate) fn client_closes(&mut self) {
        self.client.close(&mut self.client_out);
    }

    pub(crate) fn server_closes(&mut self) {
        self.server.close(&mut self.server_out);
    }
}

impl Faults {
    #[track_caller]
    pub(crate) fn none(&self) {
        assert!(self.client.is_none() && self.server.is_none(), "{self:?}");
    }

    /// The server's error about its client.
    #[track_caller]
    pub(crate) fn of_client(self) -> ClientFault {
        match self.server {
            Some(LayerError::Client(fault)) => fault,
            other => panic!("the server says {other:?}"),
        }
    }
}

/// Options of a listener with this certificate.
pub(crate) fn serving(identity: &Identity) -> ServerTlsOptions {
    ServerTlsOptions::new(identity.cert_file(), identity.key_file())
}

pub(crate) fn acceptor(options: &ServerTlsOptions) -> Acceptor {
    Acceptor::new(Some(options), None).unwrap()
}

/// A connection to `localhost` over TLS.
pub(crate) fn connect(acceptor: &Acceptor, options: &TlsOptions) -> (Duplex, Faults) {
    let endpoint = Endpoint::parse("mqtts://localhost").unwrap();
    connect_by(&Connector::new(&endpoint, options).unwrap(), acceptor)
}

pub(crate) fn connect_by(connector: &Connector, acceptor: &Acceptor) -> (Duplex, Faults) {
    let mut duplex = Duplex::new(connector.layers().unwrap(), acceptor, usize::MAX);
    let faults = duplex.open();
    (duplex, faults)
}

/// A client and a server that trust each other, for each scheme that has layers.
pub(crate) fn duplex(scheme: &str, piece_bytes: usize) -> Duplex {
    let authority = Authority::new();
    let has_tls = matches!(scheme, "mqtts" | "wss");
    let tls = has_tls.then(|| serving(&authority.sign("localhost")));
    let websocket = matches!(scheme, "ws" | "wss").then(WebSocketOptions::default);
    let acceptor = Acceptor::new(tls.as_ref(), websocket.as_ref()).unwrap();
    let options = if has_tls {
        trusting(&authority)
    } else {
        TlsOptions::default()
    };
    let endpoint = Endpoint::parse(&format!("{scheme}://localhost")).unwrap();
    let client = Connector::new(&endpoint, &options)
        .unwrap()
        .layers()
        .unwrap();
    Duplex::new(client, &acceptor, piece_bytes)
}

/// The same after the handshakes.
pub(crate) fn opened(scheme: &str, piece_bytes: usize) -> Duplex {
    let mut duplex = duplex(scheme, piece_bytes);
    duplex.open().none();
    assert!(
        duplex.client.is_open() && duplex.server.is_open(),
        "{scheme}"
    );
    duplex
}
