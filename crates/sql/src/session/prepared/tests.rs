//! Prepared statements of sessions that come to another core.

use runtime::interrupt::Interrupt;

use super::*;
use crate::database::{Database, Options};

struct Place {
    database: Database,
    /// Removed last, when the database has closed it.
    _folder: Folder,
}

struct Folder(std::path::PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("allcore-prepared-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let options = Options { cores: Some(2), pin: false, memory: Some(32 << 20), ..Options::default() };
        let database = Database::open(&folder, options).expect("the folder opens");
        Place { database, _folder: Folder(folder) }
    }

    fn session(&self, core: usize) -> Session {
        let interrupt = Interrupt::new();
        self.on(core, || self.database.connect("postgres", "postgres", &interrupt)).expect("a session")
    }

    fn on<T: Send>(&self, core: usize, body: impl FnOnce() -> T + Send) -> T {
        self.database.runtime().call(core, body)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.database.shutdown();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Prepares a statement of each kind, with one parameter.
fn prepare(session: &mut Session) {
    let mut answer = crate::embedded::Answer::default();
    session.simple_query("PREPARE called (int) AS SELECT a + $1 FROM t", &mut answer).unwrap();
    session.parse("bound", "SELECT a FROM t WHERE a = $1", &[23]).unwrap();
    session.sync().unwrap();
    session.parse("", "SELECT a FROM t", &[]).unwrap();
    session.sync().unwrap();
}

fn bind(session: &mut Session) -> Arc<Planned> {
    session.bind("", "bound", &[Some(b"7")], &[], &[]).unwrap();
    let planned = session.current.as_ref().unwrap().planned.clone().unwrap();
    let mut answer = crate::embedded::Answer::default();
    session.execute("", 0, &mut answer).unwrap();
    session.sync().unwrap();
    assert_eq!(answer.texts, [[Some("7".to_owned())]]);
    planned
}

fn found(session: &Session, name: &str) -> Arc<Planned> {
    Arc::clone(session.find_prepared(name).unwrap())
}

const NAMES: [&str; 3] = ["called", "bound", ""];

fn run(session: &mut Session, text: &str) -> crate::embedded::Answer {
    let mut answer = crate::embedded::Answer::default();
    session.simple_query(text, &mut answer).unwrap();
    answer
}

#[test]
fn a_session_that_has_moved_takes_the_plans_of_its_core() {
    let place = Place::new("moved");
    let (mut stays, mut moves, mut there) = (place.session(0), place.session(0), place.session(1));
    place.on(0, || {
        run(&mut stays, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (7)");
        [&mut stays, &mut moves].into_iter().for_each(prepare);
    });
    let old = NAMES.map(|name| found(&stays, name));
    assert!(
        old.iter().zip(NAMES).all(|(own, name)| Arc::ptr_eq(own, &found(&moves, name))),
        "a core shares plans"
    );
    let listed = moves.environment.prepared.list().len();
    place.on(1, || {
        there.parse("bound", "SELECT a FROM t WHERE a = $1", &[23]).unwrap();
        there.parse("", "SELECT a FROM t", &[]).unwrap();
        there.sync().unwrap();
        moves.enter_core();
        // A list, a description and a second move take no plan.
        assert_eq!(moves.environment.prepared.list().len(), listed);
        assert_eq!(moves.describe_statement("bound").unwrap().0, [23]);
        assert!(moves.parse("bound", "SELECT 1", &[]).is_err(), "the name is taken");
        moves.fail();
        moves.sync().unwrap();
        moves.enter_core();
        assert!(Arc::ptr_eq(&found(&moves, "bound"), &old[1]));
        let bound = bind(&mut moves);
        assert!(Arc::ptr_eq(&bound, &found(&there, "bound")), "the plan that this core knew");
        assert!(Arc::ptr_eq(&bind(&mut moves), &bound));
        assert!(Arc::ptr_eq(&found(&moves, ""), &found(&there, "")), "the unnamed one, too");
        // No session of this core has run this one: it is compiled here.
        assert_eq!(run(&mut moves, "EXECUTE called (1)").texts, [[Some("8".to_owned())]]);
        let called = found(&moves, "called");
        assert!(!Arc::ptr_eq(&called, &old[0]) && called.text == old[0].text);
        run(&mut moves, "EXECUTE called (1)");
        assert!(Arc::ptr_eq(&found(&moves, "called"), &called));
        let prepared = &moves.environment.prepared;
        assert_eq!(prepared.bytes(), prepared.by_name.values().map(Entry::bytes).sum::<usize>());
    });
    assert_eq!(old.iter().map(Arc::strong_count).collect::<Vec<_>>(), [3, 3, 3], "here, stays, the cache");
    place.on(0, || drop(stays));
    place.on(1, || drop((moves, there)));
}

#[test]
fn a_plan_that_could_differ_on_the_new_core_comes_along() {
    let place = Place::new("differs");
    let mut session = place.session(0);
    place.on(0, || {
        run(&mut session, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (7)");
        run(&mut session, "CREATE SCHEMA other; CREATE TABLE other.t (a int, b int)");
        run(&mut session, "INSERT INTO other.t VALUES (7), (8)");
        prepare(&mut session);
        run(&mut session, "SET search_path = other, public");
    });
    let old = found(&session, "bound");
    place.on(1, || {
        session.enter_core();
        // As without a move, a statement keeps its plan. A run under another path makes its own.
        assert!(Arc::ptr_eq(&bind(&mut session), &old));
        assert_eq!(
            run(&mut session, "EXECUTE called (1)").texts,
            [[Some("8".to_owned())], [Some("9".to_owned())]]
        );
        run(&mut session, "RESET search_path");
        session.enter_core();
        // Statements of a transaction that has changed definitions share no plans.
        run(&mut session, "BEGIN; CREATE TABLE u (a int)");
        session.bind("", "bound", &[Some(b"7")], &[], &[]).unwrap();
        run(&mut session, "ROLLBACK");
        assert!(Arc::ptr_eq(&found(&session, "bound"), &old));
        session.enter_core();
        // Statements that are forgotten on the new core are gone, with their bytes.
        run(&mut session, "DEALLOCATE bound");
        session.close_statement("called");
        assert!(session.find_prepared("called").is_err() && session.find_prepared("bound").is_err());
        assert_eq!(session.environment.prepared.bytes(), 0);
        assert!(session.bind("", "bound", &[Some(b"7")], &[], &[]).is_err());
    });
    place.on(1, || drop(session));
}
