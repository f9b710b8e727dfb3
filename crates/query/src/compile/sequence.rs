//! Sequences in definitions: their options, and identity columns, each of which owns a sequence.
//!
//! What must hold:
//!
//! 1. An option that is absent stays absent: the command knows the default or the present value.
//! 2. Binding looks at no sequence. Names are resolved, and numbers checked against each other,
//!    when the command runs under its locks.
//! 3. An option occurs once.

use pg_query::NodeEnum;
use pg_query::protobuf::{Constraint, DefElem, Node};

use super::command::option_text;
use crate::bind::{Binder, inner};
use crate::parse::strings;
use crate::plan::{OwnedSequence, QualifiedName, SequenceOptions};
use catalog::Identity;
use values::error::{SqlError, SqlState};

impl Binder<'_> {
    /// GENERATED ... AS IDENTITY with the options of its sequence.
    pub(super) fn identity(&self, constraint: &Constraint) -> Result<OwnedSequence, SqlError> {
        let (mut name, mut numbers) = (None, Vec::with_capacity(constraint.options.len()));
        for node in &constraint.options {
            match inner(node)? {
                NodeEnum::DefElem(option) if option.defname == "sequence_name" => {
                    name = sequence_name(option)?;
                }
                // pg_dump writes a sequence's persistence. Only one kind exists, so the option is
                // ignored.
                NodeEnum::DefElem(option) if matches!(option.defname.as_str(), "logged" | "unlogged") => {}
                _ => numbers.push(node.clone()),
            }
        }
        let identity = if constraint.generated_when == "a" { Identity::Always } else { Identity::ByDefault };
        Ok(OwnedSequence { name, options: self.sequence_options(&numbers)?, identity: Some(identity) })
    }

    /// The options of ALTER COLUMN SET GENERATED, SET (sequence options) and RESTART: the new kind,
    /// if any, and the sequence options.
    pub(super) fn identity_options(
        &self,
        nodes: &[Node],
    ) -> Result<(Option<Identity>, SequenceOptions), SqlError> {
        let (mut identity, mut numbers) = (None, Vec::with_capacity(nodes.len()));
        for node in nodes {
            match inner(node)? {
                NodeEnum::DefElem(option) if option.defname == "generated" => {
                    let always = option_text(option) == u32::from(b'a').to_string();
                    identity = Some(if always { Identity::Always } else { Identity::ByDefault });
                }
                _ => numbers.push(node.clone()),
            }
        }
        Ok((identity, self.sequence_options(&numbers)?))
    }

    /// The options of a sequence.
    pub(super) fn sequence_options(&self, nodes: &[Node]) -> Result<SequenceOptions, SqlError> {
        self.refuse_repeated(nodes)?;
        let mut options = SequenceOptions::default();
        for node in nodes {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            let number = || -> Result<i64, SqlError> {
                option_text(option).parse().map_err(|_| {
                    self.error(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("value \"{}\" is out of range for type bigint", option_text(option)),
                        option.location,
                    )
                })
            };
            let optional = || option.arg.as_ref().map(|_| number()).transpose();
            match option.defname.as_str() {
                "as" => {
                    if let Some(NodeEnum::TypeName(name)) = option.arg.as_deref().map(inner).transpose()? {
                        options.type_ = Some(self.type_name(name)?);
                    }
                }
                "increment" => options.increment = Some(number()?),
                "minvalue" => options.minimum = Some(optional()?),
                "maxvalue" => options.maximum = Some(optional()?),
                "start" => options.start = Some(number()?),
                "restart" => options.restart = Some(optional()?),
                "cache" => options.cache = Some(number()?),
                "cycle" => options.cycle = Some(self.option_bool(option)?),
                "owned_by" => options.owned_by = Some(self.sequence_owner(option)?),
                other => return Err(self.unsupported(&format!("sequence option {other}"), option.location)),
            }
        }
        Ok(options)
    }

    fn sequence_owner(&self, option: &DefElem) -> Result<Option<(QualifiedName, String)>, SqlError> {
        let Some(NodeEnum::List(list)) = option.arg.as_deref().map(inner).transpose()? else {
            return Ok(None);
        };
        let (schema, table, column) = match *strings(&list.items).as_slice() {
            ["none"] => return Ok(None),
            [table, column] => (None, table, column),
            [schema, table, column] => (Some(schema.to_owned()), table, column),
            _ => return Err(self.error(SqlState::SYNTAX_ERROR, "invalid OWNED BY option", option.location)),
        };
        Ok(Some((QualifiedName { schema, name: table.to_owned() }, column.to_owned())))
    }
}

fn sequence_name(option: &DefElem) -> Result<Option<QualifiedName>, SqlError> {
    let Some(NodeEnum::List(list)) = option.arg.as_deref().map(inner).transpose()? else { return Ok(None) };
    Ok(match *strings(&list.items).as_slice() {
        [.., schema, name] => Some(QualifiedName { schema: Some(schema.to_owned()), name: name.to_owned() }),
        [name] => Some(QualifiedName { schema: None, name: name.to_owned() }),
        [] => None,
    })
}
