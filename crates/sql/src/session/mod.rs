//! A session: one client's transaction, settings, prepared statements and portals.
//!
//! Its methods run on fibers of the runtime's workers, one at a time. Between them it owns no fiber and no latch; an
//! open transaction keeps its row locks and its snapshot's horizon.

mod client;

use std::sync::Arc;

pub use client::{Client, Notice, Severity};

use crate::error::SqlError;
pub use crate::plan::ColumnDesc;

/// How an Execute ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executed {
    /// All rows were given and the completion tag.
    Complete,
    /// The row limit was reached; the portal has more.
    Suspended,
}

/// One client's state.
pub struct Session {
    _private: (),
}

impl Session {
    /// Runs a query string of the simple protocol: any number of statements, in one implicit transaction unless they
    /// say otherwise. On an error the rest is skipped; the status is updated. Ends with everything a ReadyForQuery needs.
    pub fn simple_query(&mut self, _text: &str, _client: &mut dyn Client) -> Result<(), SqlError> {
        todo!()
    }

    /// Prepares a statement. Parameter types that are 0 or missing are inferred.
    pub fn parse(&mut self, _name: &str, _text: &str, _types: &[u32]) -> Result<(), SqlError> {
        todo!()
    }

    /// Makes a portal of a prepared statement and its parameters.
    pub fn bind(
        &mut self,
        _portal: &str,
        _statement: &str,
        _parameters: &[Option<&[u8]>],
        _parameter_formats: &[i16],
        _result_formats: &[i16],
    ) -> Result<(), SqlError> {
        todo!()
    }

    /// The parameter types of a prepared statement, and its columns if it returns rows.
    pub fn describe_statement(
        &mut self,
        _name: &str,
    ) -> Result<(Vec<u32>, Option<Arc<[ColumnDesc]>>), SqlError> {
        todo!()
    }

    /// The columns of a portal and their formats, if it returns rows.
    #[allow(clippy::type_complexity)]
    pub fn describe_portal(&mut self, _name: &str) -> Result<Option<(Arc<[ColumnDesc]>, &[i16])>, SqlError> {
        todo!()
    }

    /// The result formats of a portal as given to `bind`: empty = all text, one = for all columns, else one each.
    pub fn portal_formats(&self, _name: &str) -> &[i16] {
        todo!()
    }

    /// Runs a portal until its end, or until it has given `max_rows` rows (0 = all).
    pub fn execute(
        &mut self,
        _portal: &str,
        _max_rows: u32,
        _client: &mut dyn Client,
    ) -> Result<Executed, SqlError> {
        todo!()
    }

    /// Forgets a prepared statement; no error when there is none.
    pub fn close_statement(&mut self, _name: &str) {
        todo!()
    }

    /// Forgets a portal; no error when there is none.
    pub fn close_portal(&mut self, _name: &str) {
        todo!()
    }

    /// Ends the implicit transaction: commits it, or rolls it back after an error.
    pub fn sync(&mut self, _client: &mut dyn Client) -> Result<(), SqlError> {
        todo!()
    }

    /// `I` idle, `T` in a transaction, `E` in a failed one.
    #[must_use]
    pub fn status(&self) -> u8 {
        todo!()
    }

    /// An error happened outside (a malformed message, a conversion): an open transaction is failed by it.
    pub fn fail(&mut self) {
        todo!()
    }

    /// The session's number, as pg_backend_pid() and BackendKeyData tell it.
    #[must_use]
    pub fn id(&self) -> u32 {
        todo!()
    }

    /// Sets a setting from the startup packet.
    pub fn startup_setting(&mut self, _name: &str, _value: &str) -> Result<(), SqlError> {
        todo!()
    }

    /// The settings clients are told of at start (ParameterStatus): (name, value).
    #[must_use]
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        todo!()
    }

    /// How long the session may idle now before `on_idle_timeout`, given its state and settings.
    #[must_use]
    pub fn idle_limit(&self) -> Option<std::time::Duration> {
        todo!()
    }
}
