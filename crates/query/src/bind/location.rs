//! Where expressions begin in the statement's text.

use pg_query::NodeEnum;
use pg_query::protobuf::Node;

/// The location at which an expression begins, as PostgreSQL's error positions count it.
pub(crate) fn location(node: &Node) -> i32 {
    let Some(node) = &node.node else { return -1 };
    let leftmost = |own: i32, part: Option<&Node>| match part.map_or(-1, location) {
        -1 => own,
        part if own < 0 => part,
        part => part.min(own),
    };
    match node {
        NodeEnum::AConst(n) => n.location,
        NodeEnum::ColumnRef(n) => n.location,
        NodeEnum::ParamRef(n) => n.location,
        NodeEnum::AExpr(n) => leftmost(n.location, n.lexpr.as_deref()),
        NodeEnum::BoolExpr(n) => leftmost(n.location, n.args.first()),
        NodeEnum::FuncCall(n) => n.location,
        NodeEnum::TypeCast(n) => {
            let type_ = n.type_name.as_ref().map_or(-1, |name| name.location);
            leftmost(if type_ < 0 { n.location } else { type_.min(n.location.max(type_)) }, n.arg.as_deref())
        }
        NodeEnum::NullTest(n) => leftmost(n.location, n.arg.as_deref()),
        NodeEnum::BooleanTest(n) => leftmost(n.location, n.arg.as_deref()),
        NodeEnum::SubLink(n) => leftmost(n.location, n.testexpr.as_deref()),
        NodeEnum::CaseExpr(n) => n.location,
        NodeEnum::CoalesceExpr(n) => n.location,
        NodeEnum::MinMaxExpr(n) => n.location,
        NodeEnum::AArrayExpr(n) => n.location,
        NodeEnum::RowExpr(n) => n.location,
        NodeEnum::AIndirection(n) => n.arg.as_deref().map_or(-1, location),
        NodeEnum::CollateClause(n) => leftmost(n.location, n.arg.as_deref()),
        NodeEnum::SqlvalueFunction(n) => n.location,
        NodeEnum::SetToDefault(n) => n.location,
        NodeEnum::ResTarget(n) => n.location,
        NodeEnum::List(n) => n.items.first().map_or(-1, location),
        _ => -1,
    }
}

pub(super) fn locations(nodes: &[Node]) -> Vec<i32> {
    nodes.iter().map(location).collect()
}

pub(super) fn optional_location(node: Option<&Node>) -> i32 {
    node.map_or(-1, location)
}
