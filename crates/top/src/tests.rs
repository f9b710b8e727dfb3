//! Frames of made-up samples.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::draw::{View, draw};
use crate::figures::Figures;
use crate::plain;
use crate::sample::{Buffers, Core, Counters, Counts, Details, Group, Lock, Log, Sample, Session};
use crate::state::State;

fn sample(cores: usize) -> Sample {
    let session = |pid, state: &str, statement, query: &str| Session {
        pid,
        user: "postgres".to_owned(),
        database: "a_database_with_a_long_name".to_owned(),
        state: state.to_owned(),
        wait: Some("Lock/transaction".to_owned()),
        statement,
        transaction: Some(75.0),
        query: query.to_owned(),
    };
    Sample {
        connection: 1,
        round_trip: Duration::from_micros(350),
        cores: (0..cores)
            .map(|core| Core { name: format!("core {core}"), times: Some((1.0, 1.0)) })
            .collect(),
        buffers: Some(Buffers {
            frames: 8192,
            in_use: 512,
            pages: "4 KiB".to_owned(),
            passes: 3,
            reads: 9,
            evictions: 9,
            writes: 9,
        }),
        log: Some(Log {
            durable: 0x1_0000_00ff,
            writes: 5,
            bytes: 9,
            served: 9,
            in_flight: 1,
            sessions_in_flight: 8,
        }),
        groups: vec![
            Group { state: "active".to_owned(), wait: Some("Lock/transaction".to_owned()), sessions: 2 },
            Group { state: "active".to_owned(), wait: None, sessions: 1 },
            Group { state: "idle".to_owned(), wait: Some("Client/ClientRead".to_owned()), sessions: 1000 },
        ],
        sessions: vec![
            session(11, "active", Some(0.5), "update t set 名前 = '漢字'"),
            session(12, "active", Some(12.0), "select 1"),
            session(13, "idle", None, "commit"),
        ],
        ..Sample::default()
    }
}

fn figures(cores: usize) -> Figures {
    Figures {
        commits: 12_345.4,
        rollbacks: 1.5,
        cores: (0..cores).map(|core| (core != 1).then_some((0.5, 0.25))).collect(),
        log_bytes: 1536.0,
        log_writes: 100.0,
        served: Some(2.5),
        locks: vec![Lock {
            name: ["leaf page", "storage/src/pool.rs:271", "read"].map(str::to_owned),
            wait: 0.012,
            hold: 0.0,
            count: 50.0,
            contended: 5.0,
        }],
        ..Figures::default()
    }
}

fn view<'a>(sample: &'a Sample, figures: Option<&'a Figures>, state: &'a State) -> View<'a> {
    View {
        place: "127.0.0.1:5432  postgres",
        interval: Duration::from_secs(2),
        sample,
        figures,
        trouble: None,
        state,
        is_live: true,
    }
}

/// The rows of a frame of this size.
fn frame(view: &View<'_>, width: u16, height: u16) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(view, area, &mut buffer);
    let rows = buffer.content.chunks(usize::from(width.max(1)));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
}

#[test]
fn a_frame_has_the_figures_the_sessions_and_the_keys() {
    let (mut sample, state) = (sample(2), State::default());
    sample.locks = figures(2).locks;
    let figures = figures(2);
    let rows = frame(&view(&sample, Some(&figures), &state), 100, 24);
    let expected = [
        " allcore top  127.0.0.1:5432  postgres  every 2.0 s",
        " transactions  12,347/s: 12,345 commits, 1.5 rollbacks; round trip 0.35 ms",
        " sessions      1,003: 1,000 idle, 3 active; oldest transaction 75.0 s",
        " waits         2 Lock/transaction, 1 running",
        " cores         2: busy 75% (kernel 25%), idle 25%",
        " core 0   [##########kkkkk     ]  75%  core 1   [                    ]    ?",
        " buffers       512 of 8,192 frames in use; 0 reads/s, 0 evictions/s, 0 writes/s; 3 passes; 4 KiB",
        " log           1.5 KiB/s in 100 writes/s for 2.5 sessions each; in flight: 1 (sessions: 8); durable to 1/FF",
    ];
    for (row, expected) in rows.iter().zip(expected) {
        let shown: String = expected.chars().take(100).collect();
        assert_eq!(row.trim_end(), shown.trim_end(), "{rows:#?}");
    }
    assert!(rows[8].contains("waited/s*"), "{rows:#?}");
    assert!(rows[9].contains("storage/src/pool.rs:271") && rows[9].contains("12 ms"), "{rows:#?}");
    assert!(rows[10].contains("statement*"), "{rows:#?}");
    // The longest statement comes first.
    let pids: Vec<&str> = rows[11..14].iter().map(|row| row[1..3].as_ref()).collect();
    assert_eq!(pids, ["12", "11", "13"], "{rows:#?}");
    assert!(rows[23].starts_with(" q quit"), "{rows:#?}");
}

#[test]
fn a_low_and_narrow_terminal_has_the_totals_and_some_sessions() {
    let (sample, figures, state) = (sample(2), figures(2), State::default());
    let rows = frame(&view(&sample, Some(&figures), &state), 40, 10);
    let begins: Vec<&str> = rows.iter().map(|row| row[1..].split(' ').next().unwrap()).collect();
    let expected = ["allcore", "transactions", "sessions", "cores", "buffers", "log", "pid", "12", "11", "q"];
    assert_eq!(begins, expected, "{rows:#?}");
}

#[test]
fn a_frame_of_any_size_is_drawn() {
    let (mut sample, figures) = (sample(384), figures(384));
    sample.open = Some(Details {
        pid: 11,
        fields: vec![("user", "postgres".to_owned())],
        query: "select 1\nfrom 漢字".to_owned(),
    });
    for open in [None, Some(11), Some(12)] {
        let mut state = State::default();
        state.open = open;
        for width in [0, 1, 2, 15, 40, 80, 300] {
            for height in 0..40 {
                let mut view = view(&sample, Some(&figures), &state);
                frame(&view, width, height);
                (view.trouble, view.figures) = (Some("the connection is lost"), None);
                frame(&view, width, height);
            }
        }
    }
    frame(&view(&Sample::default(), None, &State::default()), 80, 24);
}

#[test]
fn many_cores_are_a_digit_each() {
    let (sample, figures, state) = (sample(384), figures(384), State::default());
    let rows = frame(&view(&sample, Some(&figures), &state), 120, 40);
    assert!(rows[5].starts_with(" busy tenths   7?777777"), "{rows:#?}");
    let digits: usize =
        rows.iter().filter(|row| row.starts_with(" busy")).map(|row| row.trim().len() - 14).sum();
    assert!((380..=384).contains(&digits), "{digits} {rows:#?}");
}

#[test]
fn counters_stand_beside_each_core_and_a_dash_where_they_are_refused() {
    let counts = |cycles, instructions, cache_misses| Counts { cycles, instructions, cache_misses };
    let all = [counts(Some(2e9), Some(2.5e9), Some(12_345.0)), counts(None, None, Some(655.0))];
    let (mut sample, mut figures, mut state) = (sample(2), figures(2), State::default());
    let refused = "cycles, instructions: this machine has no such counter";
    sample.counters = Some(Counters { cores: all.to_vec(), refused: Some(refused.to_owned()) });
    let shown = |sample: &Sample, figures: &Figures, state: &State, height| {
        let rows = frame(&view(sample, Some(figures), state), 120, height);
        rows.iter().map(|row| row.trim_end().to_owned()).collect::<Vec<_>>()
    };
    // Nobody has asked yet, or does not ask any more.
    let rows = shown(&sample, &figures, &state, 24);
    assert!(rows[5].contains("core 1") && rows[6].starts_with(" buffers"), "{rows:#?}");
    state.counters = true;
    let rows = shown(&sample, &figures, &state, 24);
    assert_eq!(rows[6], format!(" counters      measuring; {refused}"), "{rows:#?}");
    figures.counters = Some(all.to_vec());
    let rows = shown(&sample, &figures, &state, 24);
    let expected = [
        " core 0   [##########kkkkk     ]  75%  ipc 1.25, misses/s 12,345",
        " core 1   [                    ]    ?  ipc -, misses/s 655",
        &format!(" counters      ipc -, misses/s 13,000; {refused}"),
        " buffers       512 of",
    ];
    for (row, expected) in rows[5..].iter().zip(expected) {
        assert!(row.starts_with(expected), "{rows:#?}");
    }
    let rows = shown(&sample, &figures, &state, 10);
    assert!(rows[4].starts_with(" counters      ipc -, misses/s 13,000"), "{rows:#?}");
    // All are granted: the reason is that of other counters.
    let granted = vec![all[0]; 2];
    sample.counters.as_mut().unwrap().cores = granted.clone();
    figures.counters = Some(granted);
    let rows = shown(&sample, &figures, &state, 24);
    assert_eq!(rows[7], " counters      ipc 1.25, misses/s 24,690", "{rows:#?}");
}

#[test]
fn an_open_session_has_its_whole_text_and_trouble_its_line() {
    let mut sample = sample(2);
    let mut state = State::default();
    state.open = Some(11);
    let wait = |sample: &Sample| {
        let mut view = view(sample, None, &state);
        view.trouble = Some("the connection is lost");
        frame(&view, 60, 14)
    };
    let rows = wait(&sample);
    assert!(rows[1].starts_with(" the connection is lost"), "{rows:#?}");
    assert!(rows[3].starts_with(" session 11") && rows[4].trim().is_empty(), "{rows:#?}");
    sample.open = Some(Details { pid: 11, ..Details::default() });
    assert!(wait(&sample)[4].starts_with(" it has ended"));
    let query = format!("select\n{}", "x".repeat(90));
    sample.open = Some(Details { pid: 11, fields: vec![("user", "me".to_owned())], query });
    let rows = wait(&sample);
    assert!(rows[4].starts_with(" user          me") && rows[6].starts_with(" select"), "{rows:#?}");
    assert_eq!(rows[7..].concat().matches('x').count(), 90, "{rows:#?}");
    assert!(rows[13].starts_with(" q quit  esc back"), "{rows:#?}");
}

#[test]
fn plain_text_has_all_sessions_and_no_keys() {
    let (sample, figures, state) = (sample(2), figures(2), State::default());
    let mut view = view(&sample, Some(&figures), &state);
    view.is_live = false;
    let text = plain::text(&view, 200);
    assert!(text.ends_with(" commit\n") && !text.contains("q quit"), "{text}");
    assert!(text.contains("update t set 名前 = '漢字'\n"), "{text}");
    assert!(text.contains("allcore_lock_profile_enable()"), "{text}");
}
