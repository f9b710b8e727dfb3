//! The sync room.
