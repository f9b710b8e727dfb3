//! Point lookups, the hottest path of the product: no latch, no write, no allocation, one search a
//! level.

use super::Tree;
use super::descend::{Aim, Retry, Stop, descend};
use crate::node::Node;
use crate::{Error, Pool, Store};

impl Tree {
    /// Copies the value of `key` into `value`, which it clears first; false when there is no such
    /// key.
    #[inline]
    pub fn get_into(&self, store: &Store, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        match self.try_get(&store.pool, key, value) {
            Ok(found) => Ok(found),
            Err(stop) => self.get_again(&store.pool, key, value, stop),
        }
    }

    /// Calls `read` with a validated private copy of the value of `key`; `None` when there is no
    /// such key.
    pub fn get<R>(
        &self,
        store: &Store,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let mut scratch = super::change::Scratch::take();
        let found = self.get_into(store, key, scratch.value())?;
        Ok(found.then(|| read(scratch.value())))
    }

    #[inline]
    fn try_get(&self, pool: &Pool, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Stop> {
        let place = descend(pool, self, Aim::At(key), 0)?.ok_or(Stop::Restart)?;
        let found = read_value(place.step.node(), key, value);
        let found = found.ok_or_else(|| place.step.damaged("unreadable leaf"))?;
        place.step.page.validate()?;
        Ok(found)
    }

    #[cold]
    fn get_again(&self, pool: &Pool, key: &[u8], value: &mut Vec<u8>, stop: Stop) -> Result<bool, Error> {
        let mut retry = Retry::new(pool);
        retry.after(stop)?;
        loop {
            let result = match retry.latch_now() {
                false => self.try_get(pool, key, value),
                true => self.get_latched(&mut retry, key, value),
            };
            match result {
                Ok(found) => return Ok(found),
                Err(stop) => retry.after(stop)?,
            }
        }
    }

    /// For a leaf that changes all the time. The reader gets its latch at any moment between two
    /// changes.
    fn get_latched(&self, retry: &mut Retry<'_>, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Stop> {
        let page = retry.latch_leaf(self, Aim::At(key))?;
        let found = read_value(Node::of(page.bytes()), key, value);
        found.ok_or_else(|| Stop::Corrupt(page.page_no(), "unreadable leaf"))
    }
}

/// Copies the value of `key` out of a leaf.
#[inline]
pub(crate) fn read_value(node: Node<'_>, key: &[u8], value: &mut Vec<u8>) -> Option<bool> {
    value.clear();
    let found = node.search(key)?;
    if found.exact {
        let range = node.value(found.index)?;
        if !node.append_to(range, value) {
            return None;
        }
    }
    Some(found.exact)
}
