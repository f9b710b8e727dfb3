//! Descriptors: numbers for open files, sockets and events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::Fd;
use super::events::Event;
use super::machine::here;
use super::pipe::{End, Pending};

/// A descriptor of an open file, socket or event, closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Descriptor(Fd);

/// The object that a descriptor stands for.
#[derive(Debug, Clone)]
pub(super) enum Open {
    /// A counter that wakes its poll.
    Event(u64),
    /// A file, by its number on the disk.
    File { file: usize, is_writable: bool },
    /// One end of a connection.
    Socket(Rc<End>),
    /// A place at which connections wait.
    Listener(Rc<Pending>),
}

/// The machine's descriptors.
#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<Fd, Open>,
    last: Fd,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

impl Descriptor {
    /// A new descriptor.
    pub(super) fn new(open: Open) -> Descriptor {
        TABLE.with_borrow_mut(|table| {
            table.last += 1;
            here().note(Event::Open, &[table.last as u64]);
            table.open.insert(table.last, open);
            Descriptor(table.last)
        })
    }

    /// Its number.
    pub(super) fn id(&self) -> Fd {
        self.0
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        here().note(Event::Close, &[self.0 as u64]);
        let closed = TABLE.with_borrow_mut(|table| table.open.remove(&self.0));
        drop(closed); // after the borrow: an end that goes tells its peer
    }
}

/// The object that a descriptor stands for, if it is open.
pub(super) fn get(fd: Fd) -> Option<Open> {
    TABLE.with_borrow(|table| table.open.get(&fd).cloned())
}

/// Changes an event's counter.
pub(super) fn change_event(fd: Fd, change: impl FnOnce(&mut u64)) {
    TABLE.with_borrow_mut(|table| {
        if let Some(Open::Event(count)) = table.open.get_mut(&fd) {
            change(count);
        }
    });
}
