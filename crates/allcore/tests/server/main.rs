//! Black-box tests: the real `allcore` command and real clients. One binary, so that the clients
//! are linked once and tests of all files share two threads.
#![allow(missing_docs, reason = "tests")]

mod activity;
mod balance;
mod bench;
mod bombs;
mod bounds;
mod buffers;
mod common;
mod copy;
mod counters;
mod crash;
mod damage;
mod deep;
mod differential;
mod drivers;
mod entrance;
mod formats;
mod history;
mod interleaved;
mod irregular_files;
mod isolation;
mod limits;
mod lock_profile;
mod log_damage;
mod memory;
mod metrics;
mod out_of_line;
mod pgbench;
mod pipelines;
mod plans;
mod portals;
mod protocol;
mod psql;
mod reload;
mod roles;
mod serve;
mod shares;
mod soak;
mod specs;
mod starting;
mod stop_points;
mod sysbench;
mod system_calls;
mod top;
mod wire_fuzz;
