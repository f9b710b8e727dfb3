//! Sessions that move between cores.

use std::thread;

use sync::atomic::AtomicBool;

use super::*;

impl Server {
    /// Has a core give sessions to another.
    fn give(&self, from: usize, to: usize, picked: Picked) {
        mailbox::send(self.runtime.shared.mailbox(from), move || here().give_away(to, picked));
    }

    /// A client whose session is on core 0, and those that came before it.
    fn on_core_0(&self) -> (TcpStream, Vec<TcpStream>) {
        let mut others = Vec::new();
        loop {
            let mut client = self.connect();
            if core_of(&mut client) == 0 {
                return (client, others);
            }
            others.push(client);
        }
    }
}

pub(super) fn a_session_moves_between_two_parts_of_a_message(way: FileIo) {
    let server = serve(way, 3, tcp());
    let mut clients: Vec<TcpStream> = (0..6).map(|_| server.connect()).collect();
    exchange(&mut clients[0], &message(b'r', 1)); // never between two messages, so it stays
    let stays = core_of(&mut clients[0]);
    for round in 0..30 {
        let sent = message(b'.', 40_000);
        let (first, rest) = sent.split_at(round * 1000 + 1);
        for client in &mut clients {
            client.write_all(first).unwrap();
        }
        (0..3).for_each(|core| server.give(core, (core + 1) % 3, Picked::All));
        for client in &mut clients {
            client.write_all(rest).unwrap();
            expect(client, &sent);
        }
    }
    assert_eq!(core_of(&mut clients[0]), stays);
    let before: Vec<u8> = clients[1..].iter_mut().map(core_of).collect();
    assert_eq!(server.runtime.session_count(), 6);
    (0..2).for_each(|core| server.give(core, 2, Picked::All));
    // A call is served behind the mail before it, and a session's move is mail to its new core.
    (0..2).for_each(|_| (0..3).for_each(|core| server.runtime.call(core, || ())));
    assert_eq!(clients[1..].iter_mut().map(core_of).collect::<Vec<_>>(), [2; 5], "they were on {before:?}");
    let moved = server.runtime.workers_in_use();
    let sum = |of: fn(&crate::workers::WorkerUse) -> u64| moved.iter().map(of).sum::<u64>();
    assert_eq!(sum(|one| one.moved_in), sum(|one| one.moved_out), "{moved:?}");
    assert!(moved[..3].iter().all(|one| one.moved_in > 0 && one.moved_out > 0), "{moved:?}");
    assert!(moved[3..].iter().all(|one| one.moved_in + one.moved_out == 0), "{moved:?}");
    drop(clients);
    server.wait_closed(6, 0);
    server.runtime.shutdown();
}

pub(super) fn half_of_the_sessions_that_wait_move(way: FileIo) {
    let server = serve(way, 2, tcp());
    let mut on_0: Vec<TcpStream> = (0..5).map(|_| server.on_core_0().0).collect();
    let count = |clients: &mut [TcpStream]| clients.iter_mut().map(core_of).filter(|&core| core == 0).count();
    assert_eq!(count(&mut on_0), 5);
    // Half, as a core that is never wholly idle makes it.
    let give_half = |clients: &mut [TcpStream]| {
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let stand_still = move || {
            begin.send(()).unwrap();
            assert!(told.recv().is_err());
        };
        mailbox::send(server.runtime.shared.mailbox(0), stand_still);
        begun.recv().unwrap();
        let sent = message(b'.', 10);
        clients.iter_mut().for_each(|client| client.write_all(&sent).unwrap());
        let until = crate::time::precise() + 60_000_000_000;
        server.give(0, 1, Picked::Waiting { share: 497, until });
        drop(tell); // the core goes on, finds the messages, then its mail
        clients.iter_mut().for_each(|client| expect(client, &sent));
    };
    give_half(&mut on_0[..4]);
    assert_eq!((count(&mut on_0[..4]), count(&mut on_0[4..])), (2, 1), "an idle session stays");
    // A session that has just come to a core stays there.
    let until = crate::time::precise() + 1_000_000_000;
    server.give(1, 0, Picked::Waiting { share: 1000, until });
    let sent = message(b'.', 10);
    while crate::time::precise() < until {
        on_0[..4].iter_mut().for_each(|client| client.write_all(&sent).unwrap());
        on_0[..4].iter_mut().for_each(|client| expect(client, &sent));
    }
    assert_eq!(count(&mut on_0), 3);
    // One of two that wait goes.
    let mut stayed: Vec<TcpStream> = Vec::new();
    on_0.into_iter().for_each(|mut client| {
        if core_of(&mut client) == 0 {
            stayed.push(client);
        }
    });
    give_half(&mut stayed[..2]);
    assert_eq!(count(&mut stayed), 2);
    server.runtime.shutdown();
}

pub(super) fn no_interrupt_is_lost_on_the_way(way: FileIo) {
    struct Told(Arc<OnceLock<Arc<Interrupt>>>);
    impl Serve for Told {
        fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
            self.0.get_or_init(|| io.interrupt().clone());
            while interrupt::check().is_err() {}
            Next::Wait
        }
        fn may_leave_core(&self) -> bool {
            true
        }
        fn closed(&mut self) {}
    }
    let runtime = start_with(2, way);
    let session = Arc::new(OnceLock::new());
    let told = session.clone();
    let accept = move |_: &Accepted| -> Box<dyn Serve> { Box::new(Told(told.clone())) };
    let listener = runtime.listen(tcp(), Arc::new(accept)).unwrap();
    let Address::Tcp(at) = listener.address() else { panic!("not over TCP") };
    let _client = TcpStream::connect(at).unwrap();
    let interrupt: &Arc<Interrupt> = loop {
        match session.get() {
            Some(interrupt) => break interrupt,
            None => thread::yield_now(),
        }
    };
    let over = AtomicBool::new(false);
    let moves = thread::scope(|scope| {
        let mover = scope.spawn(|| {
            let mut moves = 0;
            while !over.load(Ordering::Relaxed) {
                for core in 0..2 {
                    let before = interrupt.core();
                    runtime.call(core, || here().give_away(1 - core, Picked::All));
                    runtime.call(1 - core, || ());
                    moves += usize::from(interrupt.core() != before);
                }
            }
            moves
        });
        for round in 0..3000 {
            interrupt.raise(Reason::IdleTimeout);
            let began = crate::time::precise();
            while interrupt.is_pending() {
                assert!(crate::time::precise() - began < 20_000_000_000, "round {round} is lost");
                thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
        mover.join().unwrap()
    });
    assert!(moves > 10, "{moves}");
    runtime.shutdown();
}
