//! Long messages and answers: a session pays for its own bytes, and for none when they are gone.

use super::*;

/// Reads a megabyte and the beginning of another message, and answers with a byte.
struct Reader(Sender<Arc<Interrupt>>);

const MESSAGE: usize = 1 << 20;
const BEGINNING: usize = 20 << 10;

impl Serve for Reader {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if io.input().len() == MESSAGE + BEGINNING {
            io.consume(MESSAGE);
            self.0.send(Arc::clone(io.interrupt())).unwrap();
            io.output().push(b'!');
        }
        Next::Wait
    }

    fn closed(&mut self) {}
}

/// Waits within its turn for the whole of a megabyte, and answers with a byte.
struct Waiter(Sender<Arc<Interrupt>>);

impl Serve for Waiter {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if !io.input().is_empty() {
            if io.fill(MESSAGE).is_err() {
                return Next::Close;
            }
            io.consume(MESSAGE);
            self.0.send(Arc::clone(io.interrupt())).unwrap();
            io.output().push(b'!');
        }
        Next::Wait
    }

    fn closed(&mut self) {}
}

/// Bytes that a session holds after it has sent so many messages of 1 MiB, each answered, and
/// `behind` bytes.
fn held_after(serve: fn(Sender<Arc<Interrupt>>) -> Box<dyn Serve>, messages: usize, behind: usize) -> i64 {
    let runtime = start();
    let (tell, hear) = channel();
    let accept = move |_: &Accepted| serve(tell.clone());
    let address = Address::Tcp("127.0.0.1:0".to_socket_addrs().unwrap().next().unwrap());
    let listener = runtime.listen(address, Arc::new(accept)).unwrap();
    let Address::Tcp(address) = listener.address() else { panic!("not over TCP") };
    let mut client = TcpStream::connect(address).unwrap();
    let mut held = 0;
    for _ in 0..messages {
        client.write_all(&vec![1; MESSAGE + behind]).unwrap();
        client.read_exact(&mut [0]).unwrap();
        held = hear.recv().unwrap().held();
    }
    runtime.shutdown();
    held
}

#[test]
fn a_session_keeps_no_room_for_the_beginning_of_a_message_that_another_message_made() {
    let held = held_after(|tell| Box::new(Reader(tell)), 1, BEGINNING);
    assert!(held < 3 * BEGINNING as i64, "{held} bytes for {BEGINNING}");
}

#[test]
fn a_session_that_sends_long_messages_holds_nothing_of_them_and_gets_nothing_for_them() {
    let held = held_after(|tell| Box::new(Waiter(tell)), 10, 0);
    assert!(held.abs() < BEGINNING as i64, "{held} bytes");
}

/// Answers a byte with ten megabytes, part of which waits for the client to read.
struct Talker(Sender<Arc<Interrupt>>);

const ANSWER: usize = 10 << 20;

impl Serve for Talker {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if !io.input().is_empty() {
            io.consume(io.input().len());
            self.0.send(Arc::clone(io.interrupt())).unwrap();
            for part in [ANSWER / 2, ANSWER / 2 - 1] {
                let length = io.output().len() + part;
                io.output().resize(length, 1);
                if part == ANSWER / 2 && io.flush().is_err() {
                    return Next::Close;
                }
            }
            io.output().push(b'!');
        }
        Next::Wait
    }

    fn closed(&mut self) {}
}

#[test]
fn a_session_holds_nothing_of_long_answers_that_have_been_sent() {
    let runtime = start();
    let (tell, hear) = channel();
    let accept = move |_: &Accepted| Box::new(Talker(tell.clone())) as Box<dyn Serve>;
    let address = Address::Tcp("127.0.0.1:0".to_socket_addrs().unwrap().next().unwrap());
    let listener = runtime.listen(address, Arc::new(accept)).unwrap();
    let Address::Tcp(address) = listener.address() else { panic!("not over TCP") };
    let mut client = TcpStream::connect(address).unwrap();
    let mut answer = vec![0; ANSWER];
    for _ in 0..10 {
        client.write_all(&[1]).unwrap();
        let interrupt = hear.recv().unwrap();
        client.read_exact(&mut answer).unwrap();
        // The last bytes are sent before their buffer is given back.
        let begun = Instant::now();
        while interrupt.held().abs() >= BEGINNING as i64 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} bytes", interrupt.held());
            std::thread::yield_now();
        }
    }
    runtime.shutdown();
}
