//! Loom models of a core's messages. They include `mail.rs`, which knows atomics only.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p runtime --test loom_mail --release`
#![cfg(loom)]

#[path = "../src/mail.rs"]
#[allow(dead_code)]
mod mail;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;
use mail::{Link, Mail};

/// The messages that were delivered, in order: each one's number, and whether on its core.
type Delivered = Arc<Mutex<Vec<(u32, bool)>>>;

#[repr(C)]
struct Message {
    link: Link,
    /// Written before the message is sent. Loom fails if its delivery does not come after that.
    number: UnsafeCell<u32>,
    delivered: Delivered,
}

/// # Safety
/// `link` is the first field of a `Message` from [`send`], delivered once.
unsafe fn deliver(link: *mut Link, on_core: bool) {
    // SAFETY: by contract, a box given away by `send`; `repr(C)` puts the link first.
    let message = unsafe { Box::from_raw(link.cast::<Message>()) };
    // SAFETY: the message is ours alone now.
    let number = message.number.with(|number| unsafe { *number });
    message.delivered.lock().unwrap().push((number, on_core));
}

/// Sends a message; whether the core is to be woken.
fn send(mail: &Mail, number: u32, delivered: &Delivered) -> bool {
    let delivered = delivered.clone();
    let message = Box::new(Message { link: Link::new(deliver), number: UnsafeCell::new(0), delivered });
    // SAFETY: nobody else knows of it yet.
    message.number.with_mut(|own| unsafe { *own = number });
    // SAFETY: the box is valid until `deliver` takes it back, it is new, and `deliver` fits it.
    unsafe { mail.push(Box::into_raw(message).cast()) }
}

#[test]
fn a_core_that_sleeps_is_woken_for_its_mail() {
    loom::model(|| {
        let (mail, delivered) = (Arc::new(Mail::new()), Delivered::default());
        let sender = {
            let (mail, delivered) = (mail.clone(), delivered.clone());
            thread::spawn(move || send(&mail, 1, &delivered))
        };
        let slept = mail.sleep();
        if !slept {
            mail.deliver_all();
        }
        let woken = sender.join().unwrap();
        assert!(!slept || woken, "it sleeps, and has mail");
        mail.deliver_all();
        assert_eq!(*delivered.lock().unwrap(), [(1, true)]);
    });
}

#[test]
fn one_of_two_senders_wakes_the_core_and_each_message_comes_once() {
    loom::model(|| {
        let (mail, delivered) = (Arc::new(Mail::new()), Delivered::default());
        assert!(mail.sleep());
        let other = {
            let (mail, delivered) = (mail.clone(), delivered.clone());
            thread::spawn(move || send(&mail, 1, &delivered))
        };
        let woken = [send(&mail, 2, &delivered), other.join().unwrap()];
        assert_eq!(woken.iter().filter(|&&woken| woken).count(), 1);
        mail.deliver_all();
        let mut delivered = delivered.lock().unwrap().clone();
        delivered.sort_unstable();
        assert_eq!(delivered, [(1, true), (2, true)]);
    });
}

#[test]
fn messages_of_a_core_that_ends_are_delivered_once() {
    loom::model(|| {
        let (mail, delivered) = (Arc::new(Mail::new()), Delivered::default());
        let sender = {
            let (mail, delivered) = (mail.clone(), delivered.clone());
            thread::spawn(move || (send(&mail, 1, &delivered), send(&mail, 2, &delivered)))
        };
        mail.deliver_all();
        mail.close();
        sender.join().unwrap();
        let mut delivered = delivered.lock().unwrap().clone();
        delivered.sort_unstable();
        let (first, second) = (delivered[0], delivered[1]);
        assert_eq!((delivered.len(), first.0, second.0), (2, 1, 2));
        // Only the order of those for the core counts.
        assert!(first.1 || !second.1, "the first one came too late, and so did the second");
    });
}
