//! Ownership: CREATE SCHEMA .. AUTHORIZATION and OWNER TO.

use pg_query::NodeEnum;
use pg_query::protobuf::{AlterOwnerStmt, CreateSchemaStmt, ObjectType, RoleSpec, RoleSpecType};

use crate::bind::{Binder, inner};
use crate::plan::Command;
use values::error::SqlError;

/// A role by name; None for the session's own (CURRENT_ROLE and the like). PUBLIC becomes a name
/// that no role has.
pub(super) fn named_role(role: &RoleSpec) -> Option<String> {
    match RoleSpecType::try_from(role.roletype) {
        Ok(RoleSpecType::RolespecCstring) => Some(role.rolename.clone()),
        Ok(RoleSpecType::RolespecPublic) => Some("public".to_owned()),
        _ => None,
    }
}

impl Binder<'_> {
    pub(super) fn create_schema(&self, create: &CreateSchemaStmt) -> Result<Command, SqlError> {
        if !create.schema_elts.is_empty() {
            return Err(self.unsupported("CREATE SCHEMA with elements", -1));
        }
        let owner = create.authrole.as_ref().and_then(named_role);
        let name = match (create.schemaname.as_str(), &owner) {
            ("", Some(owner)) => owner.clone(),
            ("", None) => return Err(self.unsupported("CREATE SCHEMA AUTHORIZATION CURRENT_ROLE", 0)),
            (name, _) => name.to_owned(),
        };
        Ok(Command::CreateSchema { name, if_not_exists: create.if_not_exists, owner })
    }

    pub(super) fn alter_owner(&self, alter: &AlterOwnerStmt) -> Result<Command, SqlError> {
        let name = match alter.object.as_deref().map(inner).transpose()? {
            Some(NodeEnum::String(name)) => name.sval.clone(),
            _ => String::new(),
        };
        let database = match ObjectType::try_from(alter.object_type) {
            Ok(ObjectType::ObjectSchema) => false,
            Ok(ObjectType::ObjectDatabase) => true,
            _ => return Err(self.unsupported("OWNER TO for this kind of object", 0)),
        };
        Ok(Command::AlterOwner { database, name, role: alter.newowner.as_ref().and_then(named_role) })
    }
}
