//! Cursors: DECLARE, FETCH and MOVE.
//!
//! What must hold: without SCROLL and NO SCROLL, a cursor scrolls if and only if PostgreSQL's
//! would.

use pg_query::NodeEnum;
use pg_query::protobuf::{DeclareCursorStmt, FetchDirection, FetchStmt, LockClauseStrength, SelectStmt};

use crate::bind::Binder;
use crate::plan::{Body, Command, DeclareCursor, Operator, Plan, Way};
use values::error::{SqlError, SqlState};

/// PostgreSQL's bits for cursor options.
const CURSOR_BINARY: i32 = 0x1;
const CURSOR_SCROLL: i32 = 0x2;
const CURSOR_NO_SCROLL: i32 = 0x4;
const CURSOR_INSENSITIVE: i32 = 0x8;
const CURSOR_ASENSITIVE: i32 = 0x10;
const CURSOR_HOLD: i32 = 0x20;
/// PostgreSQL's FETCH_ALL.
const FETCH_ALL: i64 = i64::MAX;

impl Binder<'_> {
    /// DECLARE CURSOR.
    pub(crate) fn declare(&mut self, declare: &DeclareCursorStmt) -> Result<Command, SqlError> {
        let has = |option: i32| declare.options & option != 0;
        let exclude = |a: &str, b: &str| {
            let message = format!("cannot specify both {a} and {b}");
            SqlError::new(SqlState::INVALID_CURSOR_DEFINITION, message)
        };
        if has(CURSOR_SCROLL) && has(CURSOR_NO_SCROLL) {
            return Err(exclude("SCROLL", "NO SCROLL"));
        }
        if has(CURSOR_ASENSITIVE) && has(CURSOR_INSENSITIVE) {
            return Err(exclude("ASENSITIVE", "INSENSITIVE"));
        }
        if has(CURSOR_BINARY) {
            return Err(self.unsupported("a BINARY cursor", -1));
        }
        let (mut locking, mut into, mut functions) = (None, None, false);
        if let Some(NodeEnum::SelectStmt(select)) = declare.query.as_ref().and_then(|node| node.node.as_ref())
        {
            locking = locking_of(select);
            functions =
                select.from_clause.iter().any(|item| matches!(item.node, Some(NodeEnum::RangeFunction(_))));
            into = select.into_clause.as_ref().and_then(|into| into.rel.as_ref());
        }
        if let Some(table) = into {
            let message = "SELECT ... INTO is not allowed here";
            return Err(self.error(SqlState::SYNTAX_ERROR, message, table.location));
        }
        let query = self.compiled(declare.query.as_deref())?;
        let hold = has(CURSOR_HOLD);
        if let Some(locking) = locking {
            let refused = if hold {
                Some((
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("CURSOR WITH HOLD ... {locking} is not supported"),
                    "Holdable",
                ))
            } else if has(CURSOR_SCROLL) {
                Some((
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("SCROLL CURSOR ... {locking} is not supported"),
                    "Scrollable",
                ))
            } else if has(CURSOR_INSENSITIVE) {
                Some((
                    SqlState::INVALID_CURSOR_DEFINITION,
                    format!("INSENSITIVE CURSOR ... {locking} is not valid"),
                    "Insensitive",
                ))
            } else {
                None
            };
            if let Some((state, message, kind)) = refused {
                return Err(SqlError::new(state, format!("DECLARE {message}"))
                    .with_detail(format!("{kind} cursors must be READ ONLY.")));
            }
        }
        let backward = matches!(&query.body, Body::Query { root, .. } if locking.is_none() && runs_backward(root, functions));
        let scroll = has(CURSOR_SCROLL) || !has(CURSOR_NO_SCROLL) && backward;
        let name = declare.portalname.clone();
        let text = self.request.text.to_owned();
        Ok(Command::DeclareCursor(DeclareCursor { name, text, query, hold, scroll }))
    }
}

/// The name of a query's locking clause.
fn locking_of(select: &SelectStmt) -> Option<&'static str> {
    let Some(NodeEnum::LockingClause(clause)) = &select.locking_clause.first()?.node else { return None };
    Some(match LockClauseStrength::try_from(clause.strength) {
        Ok(LockClauseStrength::LcsForkeyshare) => "FOR KEY SHARE",
        Ok(LockClauseStrength::LcsForshare) => "FOR SHARE",
        Ok(LockClauseStrength::LcsFornokeyupdate) => "FOR NO KEY UPDATE",
        _ => "FOR UPDATE",
    })
}

/// Whether PostgreSQL's executor runs such a plan backward. A cursor over such a plan scrolls
/// unless it has NO SCROLL. `functions`: FROM contains functions, so a function's rows are not
/// those of the target list.
fn runs_backward(plan: &Plan, functions: bool) -> bool {
    let runs_backward = |plan: &Plan| runs_backward(plan, functions);
    match &plan.operator {
        Operator::Values { rows, .. } => rows.len() > 1,
        Operator::Function { .. } => functions,
        Operator::Scan(_) | Operator::Virtual { .. } | Operator::CommonScan { .. } => true,
        Operator::Sort { presorted, .. } => *presorted == 0,
        Operator::Filter { input, .. } | Operator::Project { input, .. } | Operator::Limit { input, .. } => {
            runs_backward(input)
        }
        Operator::Subquery { input, .. } => runs_backward(input),
        Operator::With { body, .. } => runs_backward(body),
        _ => false,
    }
}

/// FETCH and MOVE.
pub(crate) fn fetch(fetch: &FetchStmt) -> Command {
    let count = fetch.how_many;
    let rows = |count: i64| (count != FETCH_ALL).then_some(count.unsigned_abs());
    let way = match FetchDirection::try_from(fetch.direction) {
        Ok(FetchDirection::FetchAbsolute) => Way::Absolute(count),
        Ok(FetchDirection::FetchRelative) => Way::Relative(count),
        Ok(FetchDirection::FetchBackward) if count < 0 => Way::Forward(rows(-count)),
        Ok(FetchDirection::FetchBackward) => Way::Backward(rows(count)),
        _ if count < 0 => Way::Backward(rows(-count)),
        _ => Way::Forward(rows(count)),
    };
    Command::Fetch { name: fetch.portalname.clone(), way, skip: fetch.ismove }
}
