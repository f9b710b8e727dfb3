//! The server room: PostgreSQL's wire protocol 3.0 and 3.2 over the runtime's sockets.
//!
//! [`Server::start`] listens; every connection is a [`connection::Connection`], a state machine the runtime serves
//! when bytes have come. What a statement means is the SQL room's; this room knows messages, who may come in, and
//! how rows are written into the send buffer.
#![forbid(unsafe_code)]

mod client;
mod connection;
mod decode;
mod encode;
mod login;
mod places;
mod record;
pub mod scram;
mod secret;
mod shared;
mod starting;
mod throttle;
pub mod tls;
mod wire;

pub use shared::{PasswordSource, Policy};
pub use starting::starting;

use connection::Connection;
use runtime::net::{Accepted, Address, Bound, Listener};
use shared::Shared;
use sql::database::Database;
use std::io;
use std::sync::Arc;

/// What a server is started with.
pub struct Options {
    /// Where connections are accepted.
    pub places: Vec<Bound>,
    /// Which clients may connect, and how.
    pub policy: Policy,
}

/// A running server; it accepts until [`Server::stop`].
pub struct Server {
    listeners: Vec<Listener>,
    shared: Arc<Shared>,
}

impl Server {
    /// Accepts connections at every place of `options` and serves `database` to them.
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
            listeners.push(runtime::net::listen_at(&runtime, place, most, Arc::new(accept))?);
        }
        Ok(Self { listeners, shared })
    }

    /// Takes another policy for the connections that come from now on.
    pub fn reload(&self, policy: Policy) {
        self.shared.set_policy(policy);
    }

    /// Where it listens, with the ports that were taken.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().map(Listener::address)
    }

    /// Accepts no more connections; those there go on until the runtime shuts down.
    pub fn stop(self) {
        drop(self.listeners);
    }
}
