//! The embedded API: sessions driven from threads of the embedding program.
