//! From the configured listeners to the sockets there are: what stays, what opens, what closes. All of it or nothing.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Gate, Gates, Listener, Listening, StartError, layers};
use crate::config::{Bind, CertificateName, Config, ListenerConfig};

/// An address that is listened on.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Name of its listener.
    pub(crate) name: String,
    /// As configured.
    asked: Bind,
    /// With the real port where 0 was asked for.
    pub(crate) real: Bind,
    /// The same in all workers.
    number: u32,
    /// The listener's gate, with its number.
    gate: (u16, Arc<Gate>),
}

/// What is listened on now.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    places: Vec<Place>,
    configs: Vec<(String, ListenerConfig)>,
    numbers: u32,
}

/// What one worker does with its sockets.
#[derive(Debug)]
pub(crate) enum Change {
    /// One more socket, of that number.
    Open(u32, Listener),
    /// Who comes in through the socket from now on comes through that gate.
    Regate(u32, u16),
    /// The socket goes; those who came in stay.
    Close(u32),
}

/// What has to be done for a configuration.
#[derive(Debug)]
pub(crate) struct Plan {
    standing: Standing,
    opened: Vec<(u32, u16, Vec<OwnedFd>)>,
    regated: Vec<(u32, u16)>,
    closed: Vec<Place>,
}

impl Standing {
    /// Where clients may come in.
    pub(crate) fn addresses(&self) -> Vec<Listening> {
        let address = |place: &Place| {
            let config = self.configs.iter().find(|(name, _)| *name == place.name);
            config.map(|(name, config)| Listening::new(name, config, &place.real))
        };
        self.places.iter().filter_map(address).collect()
    }

    /// Takes the files of Unix sockets away, once nobody listens any more.
    pub(crate) fn clean_up(&self) {
        for place in &self.places {
            remove_socket_file(place);
        }
    }

    fn gate(&self, name: &str) -> Option<&(u16, Arc<Gate>)> {
        let place = self.places.iter().find(|place| place.name == name)?;
        Some(&place.gate)
    }

    /// The gate of a listener: the one it has, if nothing has changed.
    fn gate_for(
        &self,
        config: &Config,
        (name, listener): (&str, &ListenerConfig),
        gates: &Gates,
    ) -> Result<(u16, Arc<Gate>), StartError> {
        let before = self.gate(name);
        // The files of TLS may have changed.
        let tls = layers::tls_of(config, listener);
        let has_files = tls.is_some();
        let username = tls.map_or(CertificateName::None, |tls| tls.username);
        let is_same =
            |(known, config): &&(String, ListenerConfig)| known == name && config == listener;
        if let Some(before) = before
            && !has_files
            && self.configs.iter().any(|one| is_same(&one))
        {
            return Ok(before.clone());
        }
        let before = before.map(|(_, gate)| gate.as_ref());
        let standing = before.map(|gate| &gate.acceptor);
        let acceptor = layers::acceptor(config, (name, listener), standing)?;
        let gate = Arc::new(Gate::new(name, (listener, acceptor, username), before));
        let number = gates
            .add(Arc::clone(&gate))
            .ok_or_else(|| StartError::Listener {
                listener: name.to_owned(),
                cause: "listeners were changed 65,535 times since the start; restart the broker"
                    .to_owned(),
            })?;
        Ok((number, gate))
    }
}

impl Plan {
    /// Binds what is new. Nothing has changed for anyone if it fails.
    pub(crate) fn new(
        config: &Config,
        standing: &Standing,
        (gates, workers): (&Gates, usize),
    ) -> Result<Self, StartError> {
        let mut left = standing.places.clone();
        let mut plan = Self {
            standing: Standing {
                places: Vec::new(),
                configs: config.listeners.clone().into_iter().collect(),
                numbers: standing.numbers,
            },
            opened: Vec::new(),
            regated: Vec::new(),
            closed: Vec::new(),
        };
        for (name, listener) in &config.listeners {
            let gate = standing.gate_for(config, (name, listener), gates)?;
            for address in &listener.bind {
                let known = left.iter().position(|place| place.asked == *address);
                let place = match known {
                    Some(known) => plan.keep(left.swap_remove(known), name, &gate),
                    None => plan.open(name, address, &gate, workers)?,
                };
                plan.standing.places.push(place);
            }
        }
        plan.closed = left;
        Ok(plan)
    }

    fn keep(&mut self, before: Place, name: &str, gate: &(u16, Arc<Gate>)) -> Place {
        if before.gate.0 != gate.0 {
            self.regated.push((before.number, gate.0));
        }
        Place {
            name: name.to_owned(),
            gate: gate.clone(),
            ..before
        }
    }

    fn open(
        &mut self,
        name: &str,
        address: &Bind,
        gate: &(u16, Arc<Gate>),
        workers: usize,
    ) -> Result<Place, StartError> {
        let (sockets, real) = super::bind(address, workers).map_err(|source| StartError::Bind {
            listener: name.to_owned(),
            address: address.clone(),
            source,
        })?;
        let number = self.standing.numbers;
        self.standing.numbers += 1;
        self.opened.push((number, gate.0, sockets));
        Ok(Place {
            name: name.to_owned(),
            asked: address.clone(),
            real,
            number,
            gate: gate.clone(),
        })
    }

    /// What stands from now on, and what each worker has to do for it.
    pub(crate) fn carry_out(self, workers: usize) -> (Standing, Vec<Vec<Change>>) {
        let mut changes: Vec<Vec<Change>> = (0..workers).map(|_| Vec::new()).collect();
        for (number, gate, sockets) in self.opened {
            for (socket, changes) in sockets.into_iter().zip(&mut changes) {
                changes.push(Change::Open(number, Listener::new(socket, gate)));
            }
        }
        for changes in &mut changes {
            let regated = self.regated.iter();
            changes.extend(regated.map(|&(number, gate)| Change::Regate(number, gate)));
            let closed = self.closed.iter();
            changes.extend(closed.map(|place| Change::Close(place.number)));
        }
        for place in &self.closed {
            remove_socket_file(place);
        }
        (self.standing, changes)
    }
}

fn remove_socket_file(place: &Place) {
    if let Bind::Unix(path) = &place.real
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::debug!(%error, path = %path.display(), "the socket's file was gone already");
    }
}
