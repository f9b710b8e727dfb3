//! The server's login policy, made from the settings of `allcore serve` and checked.
//!
//! What must hold:
//!
//! 1. Clients of other machines get in without proof only where two settings say so by name
//!    ([`check_trust`]). A default or an absent setting never opens the server.
//! 2. The password file's stamp is taken before the file is read. A change in between gives another
//!    stamp, so the next login reads the file again.
//! 3. A password file that is missing, damaged or empty leaves the last known passwords in force,
//!    and the log says so. At the start it is an error.
//! 4. Passwords are read beside the core, because a login must not make the core's sessions wait
//!    for the disk.
//! 5. The secret for salts of unknown users lies in the folder and outlives a restart. A new one at
//!    each start would betray which users exist.

use crate::passwords::Passwords;
use crate::settings::{AuthKind, DEFAULT_RESERVED, ServeSettings, TlsKind};
use crate::units::Span;
use runtime::file::{self, Stamp, Unusable};
use runtime::net::Address;
use server::scram::Verifier;
use server::{PasswordSource, Policy};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sync::SpinLock;

/// Refuses to let in clients of other machines without proof, unless both settings ask for it by
/// name.
pub fn check_trust(settings: &ServeSettings, addresses: &[Address]) -> Result<(), String> {
    let beyond = addresses.iter().find(|address| match address {
        Address::Tcp(address) => !address.ip().to_canonical().is_loopback(),
        Address::Unix { .. } => false,
    });
    let Some(address) = beyond.filter(|_| settings.auth() == AuthKind::Trust) else { return Ok(()) };
    if settings.auth.is_some() && settings.i_know == Some(true) {
        return Ok(());
    }
    Err(format!(
        "on {address} everybody who reaches this machine could log in as anybody: use --auth scram, \
         with passwords by 'allcore passwd', or --listen on 127.0.0.1 only, or say '--auth trust --i-know'"
    ))
}

/// TLS with the certificate of the settings; `None` without one.
pub fn tls(settings: &ServeSettings) -> Result<Option<Arc<server::tls::Offer>>, String> {
    match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => {
            server::tls::load(certificate, key).map(Some).map_err(|fault| fault.to_string())
        }
        (None, None) if settings.tls == Some(TlsKind::Required) => {
            Err("--tls required needs --tls-cert and --tls-key".to_owned())
        }
        (None, None) => Ok(None),
        _ => Err("--tls-cert and --tls-key go together".to_owned()),
    }
}

/// Sessions reserved for `postgres`: the number from the settings, or the default if it leaves
/// sessions to others.
pub fn reserved(settings: &ServeSettings, max_connections: usize) -> Result<usize, String> {
    match settings.superuser_reserved_connections {
        Some(wanted) if wanted >= max_connections => Err(format!(
            "--superuser-reserved-connections {wanted} must be less than --max-connections {max_connections}"
        )),
        wanted => Ok(wanted.unwrap_or(DEFAULT_RESERVED.min(max_connections - 1))),
    }
}

/// The policy of the settings, for an open data folder.
pub fn policy(
    settings: &ServeSettings,
    data: &Path,
    tls: Option<Arc<server::tls::Offer>>,
    max_connections: usize,
    max_logins: usize,
) -> Result<Policy, String> {
    for (name, value) in &settings.set {
        sql::session::check_setting(name, value).map_err(|fault| format!("--set {name}={value}: {fault}"))?;
    }
    let (passwords, secret) = match settings.auth() {
        AuthKind::Trust => (None, [0; 32]),
        AuthKind::Scram => (Some(password_source(data)?), secret(data)?),
    };
    Ok(Policy {
        tls,
        tls_required: settings.tls == Some(TlsKind::Required),
        passwords,
        secret,
        login_limit: settings.authentication_timeout.unwrap_or(Span::MINUTE).0,
        max_logins,
        reserved: reserved(settings, max_connections)?,
        settings: settings.set.clone(),
    })
}

/// The passwords as last read. They are read again when the file has changed; a file that cannot be
/// read leaves them as they were.
struct Known {
    data: PathBuf,
    last: SpinLock<(Option<Stamp>, Arc<Passwords>)>,
}

impl Known {
    fn now(&self) -> Arc<Passwords> {
        let stamp = file::stamp(&Passwords::file(&self.data));
        let (seen, passwords) = self.last.lock().clone();
        let new = match stamp {
            Ok(stamp) if seen == Some(stamp) => return passwords,
            Ok(_) => match Passwords::read(&self.data) {
                // A full disk, or a copy in progress, leaves an empty file. Users are added and
                // never removed, so an empty file is a fault.
                Ok(new) if new.is_empty() => {
                    Err(format!("{} is empty", Passwords::file(&self.data).display()))
                }
                read => read,
            },
            Err(ref fault) => Err(format!("cannot read {}: {fault}", Passwords::file(&self.data).display())),
        };
        let passwords = match new {
            Ok(new) => Arc::new(new),
            Err(fault) => {
                log::error!("{fault}; the passwords stay as they were");
                passwords
            }
        };
        // A file that changes while it is read has another stamp afterwards, and is read again.
        let before = std::mem::replace(&mut *self.last.lock(), (stamp.ok(), Arc::clone(&passwords)));
        drop(before);
        passwords
    }
}

fn password_source(data: &Path) -> Result<Arc<PasswordSource>, String> {
    // Before the file is read: the first login sees a change in between.
    let stamp = file::stamp(&Passwords::file(data)).ok();
    let passwords = Passwords::read(data)?;
    if passwords.is_empty() {
        return Err(format!(
            "--auth scram needs passwords and nobody has one: set it with 'allcore passwd --data {} postgres'",
            data.display()
        ));
    }
    let known =
        Known { data: data.to_path_buf(), last: SpinLock::new(&"passwords", (stamp, Arc::new(passwords))) };
    // Called at each login, so that a change needs no restart. Other sessions of the core run
    // meanwhile.
    Ok(Arc::new(move |user: &str| -> Option<Verifier> {
        runtime::file::blocking(|| known.now()).verifier(user)
    }))
}

/// The secret from which the salts of unknown users come, kept in the folder: salts that changed
/// with a restart would betray which users exist. If the file can be neither read nor made, the
/// secret changes with each start, and the log says so. A path that is no regular file is refused.
fn secret(data: &Path) -> Result<[u8; 32], String> {
    let path = data.join("login-secret");
    let mut secret = [0; 32];
    match runtime::file::open_to_read(&path).and_then(|mut file| file.read_exact(&mut secret)) {
        Ok(()) => return Ok(secret),
        Err(fault) if fault.get_ref().is_some_and(|inner| inner.is::<Unusable>()) => {
            return Err(fault.to_string());
        }
        Err(_) => {}
    }
    runtime::random::fill(&mut secret).expect("the system gives no randomness");
    if let Err(fault) = runtime::file::replace(&path, &secret) {
        log::warn!("cannot write {}: {fault}; unknown users can be told by their salts", path.display());
    }
    Ok(secret)
}
