//! From the configured listeners to the open sockets: the sockets that stay, open and close. Either
//! all changes are made or none.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_transport::{Acceptor, ServerCertificate};

use super::http::{self, HttpAddress, HttpPlace, HttpPort, HttpSettings};
use super::quic::{QuicAddress, QuicPlace, Renewal};
use super::{
    Gate, GateParts, Gates, Listener, Listening, NamedListener, Numbered, Sockets, StartError,
    layers, tcp,
};
use crate::config::{Bind, CertificateName, Config, ListenerConfig, Transport};
use crate::node::Node;

/// An address with open sockets.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Name of its listener.
    pub(crate) name: String,
    /// As configured.
    asked: Bind,
    /// With the real port where 0 was asked for.
    pub(crate) real: Bind,
    /// Number of the sockets, the same in all workers.
    number: u32,
    /// The listener's gate.
    gate: Arc<Numbered>,
}

/// The open addresses and gates.
#[derive(Debug, Default)]
pub(crate) struct OpenListeners {
    places: Vec<Place>,
    /// The gate of each listener.
    gates: Vec<(String, Arc<Numbered>)>,
    quic: Vec<QuicPlace>,
    http: Vec<HttpPlace>,
    /// Threads that close QUIC addresses: they accept no connection, and the last clients receive a
    /// DISCONNECT.
    ending_quic: Vec<JoinHandle<()>>,
    configs: Vec<(String, ListenerConfig)>,
    numbers: u32,
}

/// A change of the sockets of one worker.
#[derive(Debug)]
pub(crate) enum Change {
    /// Opens one more socket, with that number.
    Open(u32, Listener),
    /// Later connections through the socket use that gate.
    SetGate(u32, u16),
    /// Closes the socket; its connections stay.
    Close(u32),
    /// Disconnects the clients of these gates: they have no sockets of their own that could stay.
    Disconnect(Vec<u16>),
    /// These gates have no connections any longer, and their numbers will be reused.
    Forget(Vec<u16>),
}

/// The steps to put a configuration in force.
#[derive(Debug)]
pub(crate) struct Plan {
    standing: OpenListeners,
    opened: Vec<Opened>,
    /// Files of Unix sockets among them.
    made: SocketFiles,
    regated: Vec<(u32, u16)>,
    closed: Vec<Place>,
    /// Gates that stay, with their new acceptors.
    renewed: Vec<(Arc<Gate>, Acceptor)>,
    /// Addresses of QUIC that stay, by number, with the names of their listeners.
    renewed_quic: Vec<(u32, String, Renewal)>,
    /// Addresses of HTTP that stay.
    renewed_http: Vec<(HttpPlace, HttpSettings)>,
    /// `limits.tcp_keepalive`.
    keepalive: Duration,
    /// Addresses over TCP that go from one kind of listener to another.
    parting: Vec<Bind>,
}

/// New sockets of an address, one for each worker.
#[derive(Debug)]
struct Opened {
    number: u32,
    gate: u16,
    sockets: Vec<OwnedFd>,
    /// See [`Sockets::takes_over`].
    takes_over: bool,
}

/// Files that are removed with this, unless the plan is carried out.
#[derive(Debug, Default)]
struct SocketFiles(Vec<PathBuf>);

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            if let Err(error) = std::fs::remove_file(path) {
                tracing::debug!(%error, path = %path.display(), "the socket's file was gone already");
            }
        }
    }
}

/// The next gate of a listener.
struct ItsGate {
    gate: Arc<Numbered>,
    /// Its new acceptor, if it stays.
    acceptor: Option<Acceptor>,
}

impl OpenListeners {
    /// The addresses that the broker listens on.
    pub(crate) fn addresses(&self) -> Vec<Listening> {
        let address = |place: &Place| {
            let config = self.configs.iter().find(|(name, _)| *name == place.name);
            config.map(|(name, config)| Listening::new(name, config, &place.real))
        };
        let of_quic = self.quic.iter().filter_map(|place| {
            let config = self.configs.iter().find(|(name, _)| *name == place.name)?;
            Some(place.addresses(&config.1))
        });
        let of_http = self.http_ports().into_iter();
        let of_http = of_http.map(|port| port.listening().clone());
        let streams = self.places.iter().filter_map(address);
        streams.chain(of_quic.flatten()).chain(of_http).collect()
    }

    /// The open addresses of HTTP listeners.
    pub(crate) fn http_ports(&self) -> Vec<HttpPort> {
        let port = |place: &HttpPlace| {
            let config = self.configs.iter().find(|(name, _)| *name == place.name)?;
            Some(place.port(&config.1))
        };
        self.http.iter().filter_map(port).collect()
    }

    /// The gate of each listener, by name.
    pub(crate) fn gates(&self) -> Vec<Arc<Gate>> {
        let gates = self.gates.iter();
        let mut gates: Vec<_> = gates.map(|(_, gate)| Arc::clone(&gate.gate)).collect();
        gates.sort_by(|one, other| one.name.cmp(&other.name));
        gates
    }

    /// Removes the files of Unix sockets, and ends QUIC, once no worker listens.
    pub(crate) fn clean_up(&mut self) {
        for place in &self.places {
            remove_socket_file(place);
        }
        // All at the same time.
        let ending = self.quic.drain(..).filter_map(|place| place.close().1);
        self.ending_quic.extend(ending);
        for thread in self.ending_quic.drain(..) {
            if thread.join().is_err() {
                tracing::error!("the end of a QUIC listener was a panic");
            }
        }
    }

    /// Closes the addresses of a listener, without reading a file of any; returns the changes of
    /// each worker.
    pub(crate) fn close(&mut self, name: &str, workers: usize) -> Vec<Vec<Change>> {
        let places = std::mem::take(&mut self.places).into_iter();
        let (closed, kept): (Vec<Place>, Vec<Place>) = places.partition(|one| one.name == name);
        self.places = kept;
        closed.iter().for_each(remove_socket_file);
        let (http, kept) = std::mem::take(&mut self.http)
            .into_iter()
            .partition(|one: &HttpPlace| one.name == name);
        self.http = kept;
        let http: Vec<HttpPlace> = http;
        http.iter().for_each(HttpPlace::close);
        let quic = std::mem::take(&mut self.quic).into_iter();
        let (quic, kept): (Vec<QuicPlace>, _) = quic.partition(|one| one.name == name);
        self.quic = kept;
        let mut parting = Vec::new();
        for place in quic {
            let (gates, thread) = place.close();
            parting.extend(gates);
            self.ending_quic.extend(thread);
        }
        let changes = (0..workers).map(|_| {
            let closed = closed.iter().map(|place| Change::Close(place.number));
            let parting = (!parting.is_empty()).then(|| Change::Disconnect(parting.clone()));
            closed.chain(parting).collect()
        });
        changes.collect()
    }

    /// The open addresses that one listener of the next configuration has, over HTTP instead of
    /// another stream, or the other way round.
    fn parting(&self, config: &Config) -> Vec<Bind> {
        let wanted = |address: &Bind, over_http: bool| {
            let all = config.listeners.values();
            let streams = all.filter(|listener| listener.transport != Transport::Quic);
            let mut at = streams.filter(|listener| listener.bind.contains(address));
            let one = at.next().filter(|_| at.next().is_none());
            // Each socket at port 0 would get a port of its own.
            let is_fixed = !matches!(address, Bind::Address(address) if address.port() == 0);
            is_fixed && one.is_some_and(|one| (one.transport == Transport::Http) == over_http)
        };
        let streams = self.places.iter().map(|place| &place.asked);
        let streams = streams.filter(|asked| wanted(asked, true));
        let http = self.http.iter().map(|place| &place.asked);
        let http = http.filter(|asked| wanted(asked, false));
        streams.chain(http).cloned().collect()
    }

    fn gate(&self, name: &str) -> Option<&Arc<Numbered>> {
        let (_, gate) = self.gates.iter().find(|(known, _)| known == name)?;
        Some(gate)
    }

    /// The gate of a listener: the one it has, if nothing has changed but the files of TLS, which
    /// are read again.
    fn gate_for(
        &self,
        config: &Config,
        of: NamedListener<'_>,
        gates: &Arc<Gates>,
    ) -> Result<ItsGate, StartError> {
        let NamedListener {
            name,
            config: listener,
        } = of;
        let before = self.gate(name);
        let tls = layers::tls_of(config, listener);
        let username = tls.map_or(CertificateName::None, |tls| tls.username);
        let is_same =
            |(known, config): &(String, ListenerConfig)| known == name && config == listener;
        if let Some(before) = before
            && before.gate.username == username
            && self.configs.iter().any(is_same)
        {
            let acceptor = match tls {
                // The listener whose TLS it uses may have no TLS any more.
                None if listener.tls_from.is_empty() => None,
                None | Some(_) => Some(self.renewed(config, of)?),
            };
            return Ok(ItsGate {
                gate: Arc::clone(before),
                acceptor,
            });
        }
        let parts = GateParts {
            config: listener,
            acceptor: self.renewed(config, of)?,
            username,
        };
        let gate = Gate::new(name, parts, before.map(|before| &*before.gate));
        Ok(ItsGate {
            gate: numbered(gates, name, gate)?,
            acceptor: None,
        })
    }

    /// TLS and WebSocket of a listener, from its files as they are now.
    fn renewed(&self, config: &Config, of: NamedListener<'_>) -> Result<Acceptor, StartError> {
        let standing = self.gate(of.name).map(|numbered| numbered.gate.acceptor());
        let acceptor = layers::acceptor(config, of, standing.as_ref())?;
        for warning in acceptor.warnings() {
            tracing::warn!(listener = of.name, "{warning}");
        }
        Ok(acceptor)
    }

    /// Reads the files of a listener's TLS again, for its next connections.
    ///
    /// # Errors
    /// The file that cannot be used, and why; then no setting changes.
    pub(crate) fn renew_tls(&self, config: &Config, name: &str) -> Result<(), StartError> {
        let (Some(numbered), Some(listener)) = (self.gate(name), config.listeners.get(name)) else {
            return Ok(());
        };
        let of = NamedListener {
            name,
            config: listener,
        };
        let acceptor = self.renewed(config, of)?;
        for place in self.quic.iter().filter(|place| place.name == name) {
            let renewed = place.renew_tls(&acceptor);
            renewed.map_err(|cause| StartError::Listener {
                listener: name.to_owned(),
                cause,
            })?;
        }
        for place in self.http.iter().filter(|place| place.name == name) {
            place.renew_tls(config, of)?;
        }
        numbered.gate.renew(acceptor);
        Ok(())
    }

    /// The certificates that a listener shows.
    pub(crate) fn certificates(&self, name: &str) -> Vec<ServerCertificate> {
        if let Some(place) = self.http.iter().find(|place| place.name == name) {
            return place.acceptor().certificates().to_vec();
        }
        let gate = self.gate(name);
        gate.map_or_else(Vec::new, |numbered| {
            numbered.gate.acceptor().certificates().to_vec()
        })
    }
}

/// The gate with a number of its own.
pub(super) fn numbered(
    gates: &Arc<Gates>,
    name: &str,
    gate: Gate,
) -> Result<Arc<Numbered>, StartError> {
    let numbered = gates.register(Arc::new(gate));
    numbered.ok_or_else(|| StartError::Listener {
        listener: name.to_owned(),
        cause: "65,536 earlier forms of the listeners still have clients; restart the broker"
            .to_owned(),
    })
}

impl Plan {
    /// Binds new addresses. If it fails, no listener changes.
    pub(crate) fn new(
        config: &Config,
        standing: &OpenListeners,
        node: &Arc<Node>,
    ) -> Result<Self, StartError> {
        let wanted = Sockets {
            count: node.workers(),
            keepalive: config.limits.tcp_keepalive,
            takes_over: false,
        };
        let mut left = standing.places.clone();
        let mut left_quic: Vec<&QuicPlace> = standing.quic.iter().collect();
        let mut plan = Self {
            standing: OpenListeners {
                places: Vec::new(),
                gates: Vec::new(),
                quic: Vec::new(),
                http: Vec::new(),
                ending_quic: Vec::new(),
                configs: config.listeners.clone().into_iter().collect(),
                numbers: standing.numbers,
            },
            opened: Vec::new(),
            made: SocketFiles::default(),
            regated: Vec::new(),
            closed: Vec::new(),
            renewed: Vec::new(),
            renewed_quic: Vec::new(),
            renewed_http: Vec::new(),
            keepalive: config.limits.tcp_keepalive,
            parting: standing.parting(config),
        };
        let mut left_http: Vec<&HttpPlace> = standing.http.iter().collect();
        for (name, listener) in &config.listeners {
            let of = NamedListener {
                name,
                config: listener,
            };
            let ItsGate { gate, acceptor } = standing.gate_for(config, of, &node.gates)?;
            let renewed = acceptor.map(|acceptor| (Arc::clone(&gate.gate), acceptor));
            plan.renewed.extend(renewed);
            plan.standing.gates.push((name.clone(), Arc::clone(&gate)));
            if listener.transport == Transport::Quic {
                let its = &gate.gate;
                plan.keep_or_open_quic(
                    node,
                    of,
                    |before| Renewal::new(node, config, of, its, before),
                    &mut left_quic,
                )?;
                continue;
            }
            if listener.transport == Transport::Http {
                http::check(config, of)?;
                plan.keep_or_open_http(
                    node,
                    of,
                    |before| HttpSettings::new(config, of, &gate, before),
                    &mut left_http,
                )?;
                continue;
            }
            for address in &listener.bind {
                let known = left.iter().position(|place| place.asked == *address);
                let place = match known {
                    Some(known) => plan.keep(left.swap_remove(known), name, &gate),
                    None => plan.open(name, address, &gate, wanted)?,
                };
                plan.standing.places.push(place);
            }
        }
        plan.closed = left;
        Ok(plan)
    }

    /// `left` holds the open addresses that are not kept yet.
    fn keep_or_open_quic(
        &mut self,
        node: &Arc<Node>,
        of: NamedListener<'_>,
        renewal: impl Fn(Option<&QuicPlace>) -> Result<Renewal, StartError>,
        left: &mut Vec<&QuicPlace>,
    ) -> Result<(), StartError> {
        let name = of.name;
        for address in &of.config.bind {
            if let Some(known) = left.iter().position(|place| place.asked == *address) {
                let place = left.swap_remove(known);
                let renewed = (place.number, name.to_owned(), renewal(Some(place))?);
                self.renewed_quic.push(renewed);
                continue;
            }
            let renewal = renewal(None)?;
            let number = self.standing.numbers;
            self.standing.numbers += 1;
            let address = QuicAddress {
                name,
                asked: address,
                number,
            };
            let place = QuicPlace::open(node, address, &renewal)?;
            self.standing.quic.push(place);
        }
        Ok(())
    }

    /// `left` holds the open addresses that are not kept yet.
    fn keep_or_open_http(
        &mut self,
        node: &Arc<Node>,
        of: NamedListener<'_>,
        settings: impl Fn(Option<&HttpPlace>) -> Result<HttpSettings, StartError>,
        left: &mut Vec<&HttpPlace>,
    ) -> Result<(), StartError> {
        let keepalive = self.keepalive;
        for asked in &of.config.bind {
            if let Some(known) = left.iter().position(|place| place.asked == *asked) {
                let place = left.swap_remove(known);
                let kept = place.renamed(of.name);
                self.renewed_http
                    .push((kept.clone(), settings(Some(place))?));
                self.standing.http.push(kept);
                continue;
            }
            let number = self.standing.numbers;
            self.standing.numbers += 1;
            let settings = settings(None)?;
            let address = HttpAddress {
                name: of.name,
                asked,
                number,
                keepalive,
                takes_over: self.parting.contains(asked),
            };
            self.standing
                .http
                .push(HttpPlace::open(node, address, settings)?);
        }
        Ok(())
    }

    fn keep(&mut self, before: Place, name: &str, gate: &Arc<Numbered>) -> Place {
        if before.gate.number != gate.number {
            self.regated.push((before.number, gate.number));
        }
        Place {
            name: name.to_owned(),
            gate: Arc::clone(gate),
            ..before
        }
    }

    fn open(
        &mut self,
        name: &str,
        address: &Bind,
        gate: &Arc<Numbered>,
        wanted: Sockets,
    ) -> Result<Place, StartError> {
        let wanted = Sockets {
            takes_over: self.parting.contains(address),
            ..wanted
        };
        let (sockets, real) = super::bind(address, wanted).map_err(|source| StartError::Bind {
            listener: name.to_owned(),
            address: address.clone(),
            source,
        })?;
        if let Bind::Unix(path) = &real {
            self.made.0.push(path.clone());
        }
        let number = self.standing.numbers;
        self.standing.numbers += 1;
        self.opened.push(Opened {
            number,
            gate: gate.number,
            sockets,
            takes_over: wanted.takes_over,
        });
        Ok(Place {
            name: name.to_owned(),
            asked: address.clone(),
            real,
            number,
            gate: Arc::clone(gate),
        })
    }

    /// Replaces the open addresses; returns the changes of each worker.
    pub(crate) fn carry_out(
        mut self,
        standing: &mut OpenListeners,
        workers: usize,
    ) -> Vec<Vec<Change>> {
        // They stay.
        self.made.0.clear();
        for (gate, acceptor) in self.renewed.drain(..) {
            gate.renew(acceptor);
        }
        let mut changes: Vec<Vec<Change>> = (0..workers).map(|_| Vec::new()).collect();
        self.listen_where_it_takes_over();
        for opened in self.opened.drain(..) {
            let Opened { number, gate, .. } = opened;
            for (socket, changes) in opened.sockets.into_iter().zip(&mut changes) {
                changes.push(Change::Open(number, Listener::new(socket, gate)));
            }
        }
        for changes in &mut changes {
            let regated = self.regated.iter();
            changes.extend(regated.map(|&(number, gate)| Change::SetGate(number, gate)));
            let closed = self.closed.iter();
            changes.extend(closed.map(|place| Change::Close(place.number)));
        }
        for place in &self.closed {
            remove_socket_file(place);
        }
        for (place, settings) in self.renewed_http.drain(..) {
            place.renew(settings);
        }
        let stays = |place: &HttpPlace| {
            let mut kept = self.standing.http.iter();
            kept.any(|kept| kept.number() == place.number())
        };
        let gone = standing.http.iter().filter(|place| !stays(place));
        gone.for_each(HttpPlace::close);
        let parting = self.carry_out_quic(standing);
        if !parting.is_empty() {
            for changes in &mut changes {
                changes.push(Change::Disconnect(parting.clone()));
            }
        }
        for (_, numbered) in &self.standing.gates {
            numbered.gate.put_in_force();
        }
        *standing = self.standing;
        changes
    }

    /// Earlier, connections would go to sockets that nobody may ever read.
    fn listen_where_it_takes_over(&self) {
        for opened in self.opened.iter().filter(|opened| opened.takes_over) {
            let mut places = self.standing.places.iter();
            let place = places.find(|place| place.number == opened.number);
            let name = place.map_or("", |place| &place.name);
            for socket in &opened.sockets {
                http::log_unheard(name, tcp::listen(socket));
            }
        }
        let http = self.standing.http.iter();
        http.filter(|place| self.parting.contains(&place.asked))
            .for_each(HttpPlace::listen);
    }

    /// Returns the gates whose clients have to be disconnected.
    fn carry_out_quic(&mut self, standing: &mut OpenListeners) -> Vec<u16> {
        let mut parting = Vec::new();
        let ending = standing.ending_quic.drain(..);
        let ending = ending.filter(|thread| !thread.is_finished());
        self.standing.ending_quic.extend(ending);
        for mut place in standing.quic.drain(..) {
            let mut renewed = self.renewed_quic.iter();
            let renewed = renewed.position(|(number, ..)| *number == place.number);
            let Some(renewed) = renewed else {
                let (gates, thread) = place.close();
                parting.extend(gates);
                self.standing.ending_quic.extend(thread);
                continue;
            };
            let (_, name, renewal) = self.renewed_quic.swap_remove(renewed);
            if let Err(error) = place.renew(name, &renewal) {
                tracing::error!(
                    listener = place.name,
                    error,
                    "new certificates are not in force for QUIC"
                );
            }
            self.standing.quic.push(place);
        }
        parting
    }
}

fn remove_socket_file(place: &Place) {
    if let Bind::Unix(path) = &place.real
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::debug!(%error, path = %path.display(), "the socket's file was gone already");
    }
}
