//! Names as statements write them.

/// A schema-qualified name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    /// The schema. None: the search path finds the object, or a new one goes to the path's first
    /// schema.
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
