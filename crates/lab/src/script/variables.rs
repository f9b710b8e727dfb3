//! Variables of a client. They get numbers when the scripts are combined, so that a running client
//! looks up only the names of result columns.

use std::collections::BTreeMap;

use super::value::Value;

/// A variable's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VariableId(u32);

/// The names of all variables that the scripts mention.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    /// By name.
    ids: BTreeMap<String, VariableId>,
}

impl Names {
    /// The variable of this name, added if it is new.
    pub(super) fn intern(&mut self, name: &str) -> VariableId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = VariableId(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// Its name.
    pub(super) fn name(&self, id: VariableId) -> &str {
        &self.names[id.0 as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// All, in order of their names: [`find`] searches this list.
    pub(super) fn sorted(&self) -> Vec<(String, VariableId)> {
        self.ids.iter().map(|(name, id)| (name.clone(), *id)).collect()
    }
}

/// The variable whose name has these two pieces; the search does not join them.
pub(super) fn find(sorted: &[(String, VariableId)], prefix: &str, name: &str) -> Option<VariableId> {
    let place = sorted.binary_search_by(|(candidate, _)| {
        let wanted = prefix.bytes().chain(name.bytes());
        candidate.bytes().cmp(wanted)
    });
    place.ok().map(|index| sorted[index].1)
}

/// Whether a variable may have this name: letters, digits, underscores and non-ASCII characters, no
/// digit first.
pub(super) fn is_name(bytes: impl Iterator<Item = u8>) -> bool {
    let mut bytes = bytes.peekable();
    bytes.peek().is_some_and(|byte| begins_name(*byte)) && bytes.all(continues_name)
}

/// Whether a name may begin with this byte.
pub(super) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether a name may continue with this byte.
pub(super) fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

/// One variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Variable {
    content: Content,
    /// The text of [`Content::Text`].
    text: String,
}

#[derive(Debug, Clone, Copy, Default)]
enum Content {
    #[default]
    Unset,
    Value(Value),
    /// A text, and the value it stands for, if any.
    Text(Option<Value>),
}

/// All variables of a client.
#[derive(Debug, Clone)]
pub(super) struct Variables(Vec<Variable>);

impl Variables {
    pub(super) fn new(count: usize) -> Self {
        Self(vec![Variable::default(); count])
    }

    pub(super) fn set(&mut self, id: VariableId, value: Value) {
        self.0[id.0 as usize].content = Content::Value(value);
    }

    pub(super) fn set_text(&mut self, id: VariableId, text: &str) {
        let variable = &mut self.0[id.0 as usize];
        variable.text.clear();
        variable.text.push_str(text);
        variable.content = Content::Text(Value::of_text(text));
    }

    /// Its value; the error explains why it has none.
    pub(super) fn value(&self, id: VariableId, names: &Names) -> Result<Value, String> {
        let variable = &self.0[id.0 as usize];
        match variable.content {
            Content::Value(value) | Content::Text(Some(value)) => Ok(value),
            Content::Text(None) => {
                Err(format!("malformed variable \"{}\" value: \"{}\"", names.name(id), variable.text))
            }
            Content::Unset => Err(format!("undefined variable \"{}\"", names.name(id))),
        }
    }

    /// Its text in a command.
    pub(super) fn written(&self, id: VariableId) -> Written<'_> {
        let variable = &self.0[id.0 as usize];
        match variable.content {
            Content::Value(value) => Written::Value(value),
            Content::Text(_) => Written::Text(&variable.text),
            Content::Unset => Written::Unset,
        }
    }

    /// Copies these variables to `to`; without allocation once `to` has held texts as long.
    pub(super) fn save(&self, ids: &[VariableId], to: &mut Vec<Variable>) {
        to.resize_with(ids.len(), Variable::default);
        for (id, saved) in ids.iter().zip(to) {
            copy(&self.0[id.0 as usize], saved);
        }
    }

    /// Restores these variables.
    pub(super) fn restore(&mut self, ids: &[VariableId], from: &[Variable]) {
        for (id, saved) in ids.iter().zip(from) {
            copy(saved, &mut self.0[id.0 as usize]);
        }
    }
}

fn copy(from: &Variable, to: &mut Variable) {
    to.content = from.content;
    if matches!(from.content, Content::Text(_)) {
        to.text.clear();
        to.text.push_str(&from.text);
    }
}

/// The text of a variable in a command.
#[derive(Debug)]
pub(super) enum Written<'a> {
    Unset,
    Value(Value),
    Text(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_prefix_and_column() {
        let mut names = Names::default();
        let ids: Vec<_> = ["p_a", "a", "p_", "p_b", "é1"].iter().map(|name| names.intern(name)).collect();
        assert_eq!(names.intern("a"), ids[1]);
        let sorted = names.sorted();
        assert_eq!(find(&sorted, "p_", "a"), Some(ids[0]));
        assert_eq!(find(&sorted, "", "a"), Some(ids[1]));
        assert_eq!(find(&sorted, "p", "_"), Some(ids[2]));
        assert_eq!(find(&sorted, "", "p_c"), None);
        assert!(is_name("é1".bytes()) && is_name("_x9".bytes()));
        assert!(!is_name("9x".bytes()) && !is_name("".bytes()) && !is_name("?column?".bytes()));
    }
}
