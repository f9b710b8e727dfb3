//! Names as statements give them.

/// A schema-qualified name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    /// The schema; None = found through the search path, or created in its first schema.
    pub schema: Option<String>,
    /// The name itself.
    pub name: String,
}

impl QualifiedName {
    /// The name as errors show it.
    pub fn shown(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        }
    }
}
