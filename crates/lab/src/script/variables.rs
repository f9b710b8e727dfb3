//! Variables of a client. They get numbers when the scripts are combined, so that a running client
//! looks up only the names of result columns.

use std::collections::BTreeMap;

use crate::client::Params;

use super::value::Value;

/// A variable's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VariableId(u32);

/// The names of all variables that the scripts mention.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    ids: BTreeMap<String, VariableId>,
}

impl Names {
    /// The variable of this name, added if it is new.
    pub(super) fn intern(&mut self, name: &str) -> VariableId {
        self.get(name).unwrap_or_else(|| {
            let id = VariableId(self.names.len() as u32);
            self.names.push(name.to_owned());
            self.ids.insert(name.to_owned(), id);
            id
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<VariableId> {
        self.ids.get(name).copied()
    }

    /// The variables, none of them set.
    pub(super) fn variables(&self) -> Variables {
        Variables(vec![Variable::default(); self.names.len()])
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

/// All variables of a client.
#[derive(Debug, Clone)]
pub(super) struct Variables(Vec<Variable>);

impl Variables {
    pub(super) fn set(&mut self, id: VariableId, value: Value) {
        self.0[id.0 as usize].content = Content::Value(value);
    }

    pub(super) fn set_text(&mut self, id: VariableId, text: &str) {
        let variable = &mut self.0[id.0 as usize];
        variable.text.clear();
        variable.text.push_str(text);
        variable.content = Content::Text;
    }

    /// Its value; the error explains why it has none.
    pub(super) fn value(&self, id: VariableId, names: &Names) -> Result<Value, String> {
        let (Variable { content, text }, name) = (&self.0[id.0 as usize], &names.names[id.0 as usize]);
        match content {
            Content::Value(value) => Ok(*value),
            Content::Text => {
                Value::of_text(text).ok_or_else(|| format!("malformed variable \"{name}\" value: \"{text}\""))
            }
            Content::Unset => Err(format!("undefined variable \"{name}\"")),
        }
    }

    /// Adds it to a statement's parameters.
    pub(super) fn bind(&self, id: VariableId, names: &Names, params: &mut Params, scratch: &mut String) {
        let Variable { content, text } = &self.0[id.0 as usize];
        scratch.clear();
        match content {
            Content::Value(Value::Null) => params.null(),
            Content::Value(Value::Int(value)) => params.int(*value),
            Content::Value(value) => {
                value.write(scratch);
                params.verbatim(scratch);
            }
            Content::Text => params.verbatim(text),
            // An unset variable stays verbatim in a text.
            Content::Unset => {
                scratch.push(':');
                scratch.push_str(&names.names[id.0 as usize]);
                params.unset(scratch);
            }
        }
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
