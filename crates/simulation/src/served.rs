//! The server of a simulation and its clients' threads.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use runtime::Critical;
use runtime::net::{Address, Bound};
use server::{Policy, Server};
use sql::database::{Database, Options};
use sync::atomic::{AtomicUsize, Ordering};

use crate::client::Client;

/// Calls `body` with the address of a server on the database, which is closed then. Its pool has
/// this many bytes. Returns the number of pages that were evicted.
pub fn with_server(cores: usize, buffers: usize, body: impl FnOnce(&Address)) -> u64 {
    let options = Options { cores: Some(cores), memory: Some(buffers), ..Options::default() };
    let database = Database::open(Path::new("/data"), options).expect("the database opens");
    let place = Bound::new(Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 5432))));
    let places = vec![place.expect("the address is free")];
    let address = places[0].address().clone();
    let options = server::Options { places, policy: Policy::default() };
    let server = Server::start(database.clone(), options).expect("the server starts");
    body(&address);
    server.stop();
    let evicted = database.folder().evictions();
    database.shutdown().expect("the database closes");
    evicted
}

/// Starts a client on a virtual thread. Its panic ends the process.
pub fn start(address: &Address, left: &Arc<AtomicUsize>, body: impl FnOnce(&mut Client) + Send + 'static) {
    let (address, left) = (address.clone(), Arc::clone(left));
    let client = move || {
        let critical = Critical::begin("a client of the simulation panicked");
        body(&mut Client::connect(&address));
        critical.end();
        // Release: the main thread sees what was done.
        left.fetch_sub(1, Ordering::Release);
    };
    runtime::spawn_thread("client", client).expect("a virtual thread");
}
