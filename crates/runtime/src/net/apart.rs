//! A core's ring for sockets apart from a core, so that `mechanisms` measures the engine's own
//! calls and no copy of them.
//!
//! What must hold: one thread uses a ring, the one that made it.

use std::io;
use std::os::fd::AsRawFd;

use super::batch::passes_or_die;
use crate::os::ring::Ring;

/// The ring.
pub struct SocketRing {
    ring: Ring,
    /// Operations that it has room for.
    room: usize,
}

impl SocketRing {
    /// A ring with room for so many messages.
    ///
    /// # Errors
    /// The kernel grants none.
    pub fn new(messages: u32) -> io::Result<SocketRing> {
        let room = 2 * messages;
        Ok(SocketRing { ring: Ring::for_sockets(room)?, room: room as usize })
    }

    /// Sends `messages` through one socket and receives as many at another, by one system call.
    ///
    /// # Errors
    /// Those of the system. A message that does not come at once, or not whole, is `WouldBlock`.
    ///
    /// # Panics
    /// When there are more messages than the ring has room for.
    pub fn exchange<const N: usize>(
        &mut self,
        from: &impl AsRawFd,
        to: &impl AsRawFd,
        messages: &[[u8; N]],
        received: &mut [[u8; N]],
    ) -> io::Result<()> {
        assert!(messages.len() + received.len() <= self.room, "room for each message");
        let (mut count, mut ended, mut is_whole) = (0, 0, true);
        for message in messages {
            // SAFETY: the messages are borrowed until all operations have ended, below. Nothing
            // returns or panics before.
            count += usize::from(unsafe { self.ring.push_send(from.as_raw_fd(), message, 0) });
        }
        for message in &mut *received {
            // SAFETY: as above.
            count += usize::from(unsafe { self.ring.push_receive(to.as_raw_fd(), message, 0) });
        }
        is_whole &= count == messages.len() + received.len();
        while ended < count {
            if let Err(error) = self.ring.submit_and_wait(count - ended) {
                passes_or_die(&error);
            }
            for (_, result) in self.ring.completions() {
                ended += 1;
                is_whole &= usize::try_from(result) == Ok(N);
            }
        }
        if is_whole { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn messages_come_in_their_order_by_one_call() {
        let (from, to) = UnixDatagram::pair().unwrap();
        let Ok(mut ring) = SocketRing::new(4) else { return };
        let (messages, mut received) = ([[1u8; 8], [2; 8], [3; 8]], [[0u8; 8]; 3]);
        for _ in 0..3 {
            ring.exchange(&from, &to, &messages, &mut received).unwrap();
            assert_eq!(received, messages);
        }
        let fault = ring.exchange(&from, &to, &[], &mut received).unwrap_err();
        assert_eq!(fault.kind(), io::ErrorKind::WouldBlock);
    }
}
