//! Foreign keys beside other changes at the same time.

use super::script::Stage;

/// Truncating the child waits for its rows; the parent may go then.
const TRUNCATED: &str = "
s: create table parent (i int primary key); create table child (p int references parent)
s: insert into parent values (1), (2); insert into child values (1)
a: begin
a: truncate child
b: delete from parent where i = 1 => waits
a: commit
b => count 1
a: begin
a: insert into child values (2)
b: truncate parent, child => waits
a: commit
b => count 0
c: select count(*) from child => (0)
";

#[test]
fn children_wait_for_their_parent() {
    Stage::open().play(&[("truncated", TRUNCATED)]);
}
