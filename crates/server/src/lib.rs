//! The server room: PostgreSQL's wire protocol 3.0 over the runtime's sockets.
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
pub mod scram;
mod shared;
pub mod tls;
mod wire;

pub use shared::PasswordSource;

use connection::Connection;
use runtime::net::{Accepted, Address, Listener};
use shared::Shared;
use sql::database::Database;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What a server is started with.
pub struct Options {
    /// Where connections are accepted.
    pub addresses: Vec<Address>,
    /// TLS to offer, from [`tls::load`].
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The passwords clients must prove; none where every client is believed.
    pub passwords: Option<PasswordSource>,
    /// How long a client may take to log in.
    pub login_limit: Duration,
}

/// A running server; it accepts until [`Server::stop`].
pub struct Server {
    listeners: Vec<Listener>,
}

/// An address that could not be listened on.
#[derive(Debug)]
pub struct ListenError {
    /// The address.
    pub address: Address,
    /// What the system said.
    pub fault: io::Error,
}

impl Server {
    /// Accepts connections on every address of `options` and serves `database` to them.
    pub fn start(database: Database, options: Options) -> Result<Self, ListenError> {
        let runtime = Arc::clone(database.runtime());
        let Options { addresses, tls, passwords, login_limit } = options;
        let shared = Shared::new(database, tls, passwords, login_limit);
        let mut listeners = Vec::new();
        for address in addresses {
            let shared = Arc::clone(&shared);
            let accept = move |_: &Accepted| {
                Some(Box::new(Connection::new(Arc::clone(&shared))) as Box<dyn runtime::net::Serve>)
            };
            match runtime::net::listen(&runtime, address.clone(), Arc::new(accept)) {
                Ok(listener) => listeners.push(listener),
                Err(fault) => return Err(ListenError { address, fault }),
            }
        }
        Ok(Self { listeners })
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
