//! Connections of one address, each served by a task.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use thrum_broker::HttpPort;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::connection::{Arrived, Shared, serve};

/// Pause of accepting when the system has no more files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Pause before another attempt to accept at all.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);

/// Accepts connections until it is aborted.
pub(super) async fn accept(port: HttpPort, shared: Arc<Shared>) {
    let address = port.listening().address.clone();
    let listener = loop {
        match listener(&port) {
            Ok(listener) => break listener,
            Err(error) => {
                tracing::error!(%address, %error, "cannot accept at the HTTP port; trying again");
                sleep(LISTEN_PAUSE).await;
            }
        }
    };
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let is_proxy = port.is_proxy(address.ip());
                let Some(place) = shared.places.take(address.ip(), is_proxy) else {
                    port.count_over_limit();
                    continue;
                };
                let arrived = Arrived {
                    stream,
                    address,
                    place: Arc::new(place),
                };
                tokio::spawn(serve(arrived, port.for_connection(), Arc::clone(&shared)));
            }
            // The peer disconnected while it waited.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%address, %error, "cannot accept at the HTTP port; trying again in 100 ms");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn listener(port: &HttpPort) -> io::Result<TcpListener> {
    let socket = port.socket()?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}
