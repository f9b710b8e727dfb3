//! PostgreSQL's wire protocol, versions 3.0 and 3.2, over the runtime's sockets.
//!
//! [`Server::start`] listens. Each connection is a [`connection::Connection`], a state machine that
//! the runtime serves when bytes have come. This crate knows messages, logins and places, and how
//! rows are written into the send buffer. `sql` knows what a statement means.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod client;
mod connection;
pub mod decode;
mod encode;
pub mod login;
pub mod message;
mod metrics;
mod places;
mod record;
pub mod scram;
mod secret;
mod shared;
mod starting;
mod throttle;
pub mod tls;
mod wire;

pub use metrics::metrics;
pub use shared::{PasswordSource, Policy};
pub use starting::starting;

use connection::Connection;
use runtime::net::{Accepted, Address, Bound, Listener};
use shared::Shared;
use sql::database::Database;
use std::io;
use std::sync::Arc;

/// Settings with which a server starts.
pub struct Options {
    /// Addresses at which connections are accepted.
    pub places: Vec<Bound>,
    /// The clients that may connect, and how.
    pub policy: Policy,
}

/// A running server; it accepts until [`Server::stop`].
pub struct Server {
    listeners: Vec<Listener>,
    shared: Arc<Shared>,
}

impl Server {
    /// Accepts connections at every address of `options` and serves `database` to them.
    pub fn start(database: Database, options: Options) -> io::Result<Self> {
        let runtime = Arc::clone(database.runtime());
        let Options { places, policy } = options;
        let shared = Shared::new(database, policy);
        let mut listeners = Vec::new();
        for place in places {
            let door = Arc::clone(&shared);
            let local = matches!(place.address(), Address::Unix { .. });
            let most = shared.limits().connections(local);
            let accept = move |accepted: &Accepted| {
                if accepted.sessions + 1 == most {
                    record::crowded(&accepted.peer, most);
                }
                let place = door.arrive(&accepted.peer);
                Box::new(Connection::new(Arc::clone(&door), place)) as Box<dyn runtime::net::Serve>
            };
            listeners.push(runtime.listen_at(place, most, Arc::new(accept))?);
        }
        Ok(Self { listeners, shared })
    }

    /// Sets another policy for later connections.
    pub fn reload(&self, policy: Policy) {
        self.shared.set_policy(policy);
    }

    /// The addresses where it listens, with the ports it got.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().map(Listener::address)
    }

    /// Stops accepting. Present connections go on until the runtime shuts down.
    pub fn stop(self) {
        drop(self.listeners);
    }
}
