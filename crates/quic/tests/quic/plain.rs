//! A client of plain QUIC, for actions that the crate's own client never takes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connecting, Connection, Endpoint, RecvStream, SendStream};
use tokio::runtime::{Builder, Runtime};

use crate::fixture::{Fixture, NAME, PATIENCE};

pub(crate) struct Plain {
    runtime: Runtime,
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Plain {
    pub(crate) fn new(fixture: &Fixture) -> Self {
        Self::of(fixture, false)
    }

    pub(crate) fn with_early_data(fixture: &Fixture) -> Self {
        Self::of(fixture, true)
    }

    fn of(fixture: &Fixture, early_data: bool) -> Self {
        let mut tls = fixture.authority.client(None);
        tls.alpn_protocols = vec![thrum_quic::ALPN.to_vec()];
        tls.enable_early_data = early_data;
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        let mut threads = Builder::new_multi_thread();
        let runtime = threads.worker_threads(1).enable_all().build().unwrap();
        let guard = runtime.enter();
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(crypto)));
        let address = fixture.address();
        drop(guard);
        Self {
            runtime,
            endpoint,
            address,
        }
    }

    pub(crate) fn run(&self, test: impl Future<Output = ()>) {
        let patience = PATIENCE + Duration::from_secs(5);
        self.runtime
            .block_on(async { tokio::time::timeout(patience, test).await.unwrap() });
    }

    pub(crate) fn connecting(&self) -> Connecting {
        self.endpoint.connect(self.address, NAME).unwrap()
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.connecting().await.unwrap()
    }

    pub(crate) async fn open(&self) -> (Connection, SendStream, RecvStream) {
        let connection = self.connect().await;
        let (send, receive) = connection.open_bi().await.unwrap();
        (connection, send, receive)
    }
}
