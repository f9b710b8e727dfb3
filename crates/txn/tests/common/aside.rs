//! Statements that run beside the test, in fibers of its core.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use runtime::fiber;
use txn::{Engine, TxnSession};

use super::until;

/// The result of a fiber, once it has one.
pub struct Later<T>(Rc<RefCell<Option<T>>>);

impl<T> Later<T> {
    /// Whether the fiber has ended.
    pub fn is_done(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits for the result.
    pub fn wait(self) -> T {
        until(|| self.is_done());
        self.0.take().expect("done")
    }
}

/// Runs `body` in another fiber of this core, on a session of its own.
pub fn aside<T: 'static>(engine: &Arc<Engine>, body: impl FnOnce(&TxnSession) -> T + 'static) -> Later<T> {
    let result = Rc::new(RefCell::new(None));
    let (place, session) = (Rc::clone(&result), engine.session().unwrap());
    fiber::spawn_local(move || *place.borrow_mut() = Some(body(&session)));
    Later(result)
}

/// The number of requests that wait in the lock table.
pub fn waiters(engine: &Engine) -> usize {
    engine.locks().iter().filter(|lock| !lock.granted).count()
}
