//! Variables of a client. They get numbers when the scripts are combined, so that a running client
//! looks up only the names of result columns.

use indexmap::IndexSet;

use crate::client::Params;

use super::value::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VariableId(usize);

/// The names of all variables that the scripts mention.
#[derive(Debug, Default)]
pub(super) struct Names(IndexSet<String>);

impl Names {
    /// The variable of this name, added if it is new.
    pub(super) fn intern(&mut self, name: &str) -> VariableId {
        VariableId(self.0.insert_full(name.to_owned()).0)
    }

    pub(super) fn get(&self, name: &str) -> Option<VariableId> {
        self.0.get_index_of(name).map(VariableId)
    }

    /// The variables, none of them set.
    pub(super) fn variables(&self) -> Variables {
        Variables(vec![Variable::default(); self.0.len()])
    }

    fn undefined(&self, id: VariableId) -> String {
        format!("undefined variable \"{}\"", self.0[id.0])
    }
}

/// Whether a variable may have this name: letters, digits, underscores and non-ASCII characters, no
/// digit first.
pub(super) fn is_name(name: &str) -> bool {
    name.bytes().next().is_some_and(begins_name) && name.bytes().all(continues_name)
}

/// Whether a name may begin with this byte.
pub(super) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether a name may continue with this byte.
pub(super) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

#[derive(Debug, Clone, Default)]
struct Variable {
    content: Content,
    /// The text of [`Content::Text`].
    text: String,
}

#[derive(Debug, Clone, Copy, Default)]
enum Content {
    #[default]
    Unset,
    Value(Value),
    Text,
}

#[derive(Debug, Clone)]
pub(super) struct Variables(Vec<Variable>);

impl Variables {
    pub(super) fn set(&mut self, id: VariableId, value: Value) {
        self.0[id.0].content = Content::Value(value);
    }

    pub(super) fn set_text(&mut self, id: VariableId, text: &str) {
        let variable = &mut self.0[id.0];
        text.clone_into(&mut variable.text);
        variable.content = Content::Text;
    }

    /// Its value; the error explains why it has none.
    pub(super) fn value(&self, id: VariableId, names: &Names) -> Result<Value, String> {
        let Variable { content, text } = &self.0[id.0];
        match content {
            Content::Value(value) => Ok(*value),
            Content::Text => Value::of_text(text)
                .ok_or_else(|| format!("malformed variable \"{}\" value: \"{text}\"", names.0[id.0])),
            Content::Unset => Err(names.undefined(id)),
        }
    }

    /// Adds it to a statement's parameters; an error if it is not set.
    pub(super) fn bind(&self, id: VariableId, names: &Names, params: &mut Params) -> Result<(), String> {
        let Variable { content, text } = &self.0[id.0];
        match content {
            Content::Value(Value::Int(value)) => params.int(*value),
            Content::Value(value) => params.number(format_args!("{value}")),
            Content::Text => params.verbatim(text),
            Content::Unset => return Err(names.undefined(id)),
        }
        Ok(())
    }

    /// Makes these variables equal to others of the same program; without allocation once they have
    /// held texts as long.
    pub(super) fn copy(&mut self, from: &Self) {
        for (variable, from) in self.0.iter_mut().zip(&from.0) {
            variable.content = from.content;
            variable.text.clone_from(&from.text);
        }
    }
}
