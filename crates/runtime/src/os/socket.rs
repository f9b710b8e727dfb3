//! Sockets: listening, accepting, sending and receiving without waiting.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{check, check_len};
use crate::device::Origin;

/// Connections the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;

/// Listens at a TCP address; the address with the port that was taken.
pub(crate) fn listen_tcp(at: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let listener = TcpListener::bind(at)?; // sets SO_REUSEADDR
    listener.set_nonblocking(true)?;
    // SAFETY: a plain system call on our socket: listening again only changes the backlog.
    check(unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) })?;
    let address = listener.local_addr()?;
    Ok((listener.into(), address))
}

/// Listens at a Unix socket with these permissions. Removes a socket at the path if no process
/// listens at it.
pub(crate) fn listen_unix(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    remove_stale(path)?;
    let flags = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, flags, 0))?) };
    // SAFETY: all zero is a value of this plain struct.
    let mut at: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    at.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    if name.len() >= at.sun_path.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is too long for a Unix socket"));
    }
    at.sun_path.iter_mut().zip(name).for_each(|(to, &from)| *to = from as libc::c_char);
    let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `at` is readable for `len`.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const at).cast(), len) })?;
    // Nobody can connect before it listens, so nobody slips in before the permissions are right.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    // SAFETY: a plain system call on our socket.
    check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok(socket)
}

/// Removes a socket at which no process listens. Leaves anything else at the path alone.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
            _ => Err(io::ErrorKind::AddrInUse.into()),
        },
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the name of a Unix socket.
pub(crate) fn remove(path: &Path) {
    // Failing means that somebody has removed it already.
    let _ = std::fs::remove_file(path);
}

/// Takes a connection that waits at a listening socket. A Unix socket's send queue gets the length
/// `queue`.
pub(crate) fn accept(listener: RawFd, queue: i32) -> io::Result<(OwnedFd, Origin)> {
    // SAFETY: all zero is a value of this plain struct.
    let mut from: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: `from` is writable for `len`; the descriptor given is owned by nobody else.
    let socket = unsafe {
        let fd = check(libc::accept4(listener, (&raw mut from).cast(), &mut len, flags))?;
        OwnedFd::from_raw_fd(fd)
    };
    let origin = if i32::from(from.ss_family) == libc::AF_UNIX {
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, queue)?;
        unix_origin(&socket)?
    } else {
        set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        Origin::Tcp(tcp_address(&from).ok_or(io::ErrorKind::InvalidData)?)
    };
    Ok((socket, origin))
}

fn unix_origin(socket: &OwnedFd) -> io::Result<Origin> {
    let mut about = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: `about` is writable for `len`.
    check(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut about).cast(), &mut len)
    })?;
    Ok(Origin::Unix { user: about.uid, process: (about.pid > 0).then_some(about.pid) })
}

fn tcp_address(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(from.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which struct it is, and the storage is big and aligned enough
            // for each.
            let v4 = unsafe { &*(&raw const *from).cast::<libc::sockaddr_in>() };
            Some((u32::from_be(v4.sin_addr.s_addr).to_be_bytes(), u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *from).cast::<libc::sockaddr_in6>() };
            Some((v6.sin6_addr.s6_addr, u16::from_be(v6.sin6_port)).into())
        }
        _ => None,
    }
}

/// Whether accepting failed because descriptors or memory have run out.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let passing = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|error| passing.contains(&error))
}

/// The user this process runs as.
pub(crate) fn user() -> u32 {
    // SAFETY: a plain system call, which cannot fail.
    unsafe { libc::geteuid() }
}

/// Another descriptor of the same connection.
pub(crate) fn duplicate(socket: &OwnedFd) -> io::Result<OwnedFd> {
    socket.try_clone()
}

/// Sends as much as the socket takes at once; `WouldBlock` when it is full.
#[inline]
pub(crate) fn send(socket: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `bytes` is readable for its length.
    check_len(unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Receives what is there; `Ok(0)` is the peer's end, `WouldBlock` nothing for now. So many bytes
/// of the room are written.
#[inline]
pub(crate) fn receive(socket: RawFd, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    // SAFETY: the room is writable for its length.
    check_len(unsafe { libc::recv(socket, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) })
}

/// Says that nothing follows. A connection that is broken already is found so by the next receive.
pub(crate) fn end_output(socket: RawFd) {
    // SAFETY: a plain system call on an open socket.
    unsafe { libc::shutdown(socket, libc::SHUT_WR) };
}

/// Asks for a length of the send queue, in bytes. On failure the queue keeps its length.
pub(crate) fn set_queue(socket: RawFd, bytes: i32) {
    let _ = set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes);
}

/// Bytes that were sent and that the peer has not received; for a Unix socket with what the kernel
/// adds to them.
pub(crate) fn unread(socket: RawFd, is_tcp: bool) -> usize {
    if is_tcp && is_over(socket) {
        return 0;
    }
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one integer. Where it fails, it writes none.
    unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) };
    usize::try_from(bytes).unwrap_or(0)
}

/// Whether a connection of TCP is over. The kernel has thrown its queue away then, and still tells
/// its length.
fn is_over(socket: RawFd) -> bool {
    /// The number of the state in the kernel's tables.
    const CLOSED: u8 = 7;
    let (mut state, mut len) = (0_u8, 1 as libc::socklen_t);
    // SAFETY: `state`, the first byte of the answer, is writable for `len`.
    let told = unsafe {
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut state).cast(), &raw mut len)
    };
    told == 0 && state == CLOSED
}

/// Sets a socket option that is an int.
fn set_option(socket: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` is readable for the length given.
    check(unsafe {
        libc::setsockopt(socket, level, option, (&raw const value).cast(), size_of::<i32>() as u32)
    })?;
    Ok(())
}
