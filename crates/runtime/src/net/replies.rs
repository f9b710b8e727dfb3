//! Replies that wait to be sent together.

use std::rc::Rc;

use super::session::Session;

/// The replies of one turn that are not sent yet, in the order in which they were made. A session
/// has at most one among them.
#[derive(Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    /// Each reply's session, and the offset at which the reply ends.
    replies: Vec<(Rc<Session>, usize)>,
}

impl Replies {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.replies.len()
    }

    /// Bytes of all replies.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// One reply, and whose it is.
    #[inline]
    pub(super) fn reply(&self, index: usize) -> (&Rc<Session>, &[u8]) {
        let start = index.checked_sub(1).map_or(0, |before| self.replies[before].1);
        let (session, end) = &self.replies[index];
        (session, &self.bytes[start..*end])
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Rc<Session>, &[u8])> {
        (0..self.replies.len()).map(|index| self.reply(index))
    }

    #[inline]
    pub(super) fn push(&mut self, session: &Rc<Session>, reply: &[u8]) {
        self.bytes.extend_from_slice(reply);
        self.replies.push((session.clone(), self.bytes.len()));
    }

    /// Forgets what has been sent; `is_over` gets the sessions that it was for.
    #[inline]
    pub(super) fn clear(&mut self, mut is_over: impl FnMut(&Rc<Session>)) {
        for (session, _) in self.replies.drain(..) {
            session.replied.set(false);
            is_over(&session);
        }
        self.bytes.clear();
    }
}
