//! A client stepped without a server, for tests.

use super::{Client, Param, Params, Random, Reply, Statement, Step, Turn};

/// A client and its driver's state.
pub(crate) struct Stepped<C: Client + ?Sized> {
    statements: Vec<Statement>,
    pub client: Box<C>,
    pub random: Random,
    params: Params,
    pub reply: Reply,
}

impl<C: Client + ?Sized> Stepped<C> {
    /// The client, with this stream of random numbers.
    pub fn with(statements: Vec<Statement>, client: Box<C>, stream: u64) -> Self {
        let random = Random::new(11, stream);
        Self { statements, client, random, params: Params::default(), reply: Reply::default() }
    }

    pub fn next(&mut self) -> Step {
        self.params.clear();
        self.client.next(Turn { random: &mut self.random, params: &mut self.params, reply: &self.reply })
    }

    /// A statement with the last step's parameters in it, texts in quotes.
    pub fn written(&self, id: u16) -> String {
        let pieces = &self.statements[id as usize].pieces;
        assert_eq!(pieces.len(), self.params.len() + 1, "{pieces:?}");
        let mut text = pieces[0].clone();
        for (param, piece) in self.params.iter().zip(&pieces[1..]) {
            text += &match param {
                Param::Null => "NULL".into(),
                Param::Text(value) => format!("'{}'", String::from_utf8_lossy(value)),
                Param::Verbatim(value) => String::from_utf8_lossy(value).into_owned(),
            };
            text += piece;
        }
        text
    }

    /// The statements up to the transaction's end, and its kind.
    pub fn transaction(&mut self) -> (Vec<String>, u8) {
        let mut sent = Vec::new();
        loop {
            match self.next() {
                Step::Run(id) => sent.push(self.written(id.0)),
                Step::Done(kind) => return (sent, kind),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The first statements of a transaction, up to this many.
    pub fn begin(&mut self, most: usize) -> Vec<String> {
        let mut sent = Vec::new();
        while sent.len() < most
            && let Step::Run(id) = self.next()
        {
            sent.push(self.written(id.0));
        }
        sent
    }

    /// A parameter of the last step.
    pub(crate) fn param(&self, at: usize) -> String {
        format!("{:?}", self.params.iter().nth(at))
    }

    /// Reports the running transaction as failed.
    pub fn failed(&mut self, again: bool) -> u8 {
        self.client.failed(again)
    }
}
