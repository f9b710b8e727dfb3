//! Outputs of made-up reports, held against files; and of reports with anything in them.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::arm::Dialect;
use crate::figures;
use crate::load::Protocol;
use crate::record::*;

/// Held against the file of that name, beside this one.
pub(crate) fn golden(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn tables_are_as_they_were() {
    golden("table_two_arms", &table(&samples::two_arms(), 100));
    golden("table_two_arms_narrow", &table(&samples::two_arms(), 50));
    golden("table_six_arms", &table(&samples::six_arms(), 120));
    golden("table_one_point", &table(&samples::one_point(), 80));
    golden("table_open_loop", &table(&samples::open_loop(), 100));
    golden("table_nothing", &table(&samples::nothing(), 80));
}

#[test]
fn a_run_of_pipelines_says_so_in_its_headings() {
    let mut report = samples::two_arms();
    assert!(!table(&report, 100).contains("pipelined"));
    report.load.push((PIPELINE.to_owned(), "all statements of a transaction".to_owned()));
    for text in [table(&report, 100), markdown(&report), html(&report)] {
        assert!(text.contains(", prepared, pipelined"), "{text}");
    }
}

#[test]
fn markdown_is_as_it_was() {
    golden("markdown_two_arms", &markdown(&samples::two_arms()));
    golden("markdown_six_arms", &markdown(&samples::six_arms()));
    golden("markdown_one_point", &markdown(&samples::one_point()));
    golden("markdown_nothing", &markdown(&samples::nothing()));
}

#[test]
fn several_runs_make_one_page() {
    let plots = vec![("tps", "results/a-tps.svg".to_owned())];
    let run = |name: &str, report| Stored { name: name.to_owned(), report, plots: plots.clone() };
    golden("runs", &runs(&[run("a", samples::two_arms()), run("b", samples::one_point())]));
}

#[test]
fn tables_fit_the_terminal() {
    for (report, width) in [(samples::two_arms(), 60), (samples::six_arms(), 80), (samples::six_arms(), 200)]
    {
        let text = table(&report, width);
        let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
        assert!(widest <= width, "{widest} of {width}:\n{text}");
    }
}

#[test]
fn what_was_never_begun_is_no_number_where_a_round_does_not_know_it() {
    let mut report = samples::open_loop();
    report.points[0].rounds[1].unstarted = None;
    let groups = groups::groups(&report);
    let lag = sheets::lag(&groups[0]).unwrap();
    let cells: Vec<&str> = lag.blocks[0].rows.iter().map(|row| row[4].as_str()).collect();
    assert_eq!(cells, [figures::NONE, "0", "0"]);
}

#[test]
fn ratios_inside_the_noise_and_broken_checks_are_said() {
    let mut report = samples::two_arms();
    report.points[1].ratio = Some(Interval { value: 1.01, low: 0.98, high: 1.03 });
    for text in [table(&report, 100), markdown(&report), html(&report)] {
        assert!(text.contains("no difference") && text.contains("pg18 / allcore"), "{text}");
    }
    let broken = samples::one_point();
    for text in [table(&broken, 100), markdown(&broken), html(&broken)] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("300012.50 and 300000.00"), "{text}");
        assert!(
            text.contains("16 clients: interrupted") && text.contains("the server runs elsewhere"),
            "{text}"
        );
    }
}

#[test]
fn what_another_round_of_the_point_has_seen_is_not_missing() {
    let mut report = samples::two_arms();
    let symbols = format!("{NO_SYMBOLS}the round was short");
    // Each point of these arms has a round with symbols.
    for point in &mut report.points {
        point.rounds[0].observed.unseen = vec![symbols.clone()];
    }
    assert_eq!(sheets::missing(&report), report.missing);
    for point in report.points.iter_mut().filter(|point| point.arm == "pg18" && point.clients >= 128) {
        point.rounds.iter_mut().for_each(|round| round.observed.symbols.clear());
        point.rounds[0].observed.unseen.push(NO_WAITS.to_owned());
    }
    let unseen: Vec<String> = sheets::missing(&report).split_off(report.missing.len());
    assert_eq!(unseen, [format!("pg18 with 128 and 256: {symbols}")]);
    report
        .points
        .iter_mut()
        .flat_map(|point| &mut point.rounds)
        .for_each(|round| round.observed.symbols.clear());
    let unseen: Vec<String> = sheets::missing(&report).split_off(report.missing.len());
    assert_eq!(unseen, [format!("allcore: {symbols}"), format!("pg18: {symbols}")]);
}

/// Numbers as they come, and as they should not.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1e6,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -1.0, f64::MAX, f64::MIN_POSITIVE]),
        1 => any::<f64>(),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    let nasty = [
        "",
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "-->",
        "]]>",
        "&amp;",
        "a|b\n# c",
        "\u{0}\u{1b}[2J\u{ffff}",
        "<!--",
        "</style>",
        "شكرا 汉字 🐘",
    ];
    prop_oneof![2 => "[a-z]{1,8}", 2 => prop::sample::select(nasty.map(String::from).to_vec()), 1 => any::<String>()]
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..10_000, 1 => Just(u64::MAX)]
}

prop_compose! {
    fn any_interval()(value in any_number(), low in any_number(), high in any_number()) -> Interval {
        Interval { value, low, high }
    }
}

prop_compose! {
    fn any_latency()(all in prop::array::uniform7(any_number())) -> Latency {
        let [mean, p50, p90, p95, p99, p999, max] = all;
        Latency { mean, p50, p90, p95, p99, p999, max }
    }
}

fn any_shares() -> impl Strategy<Value = Vec<Share>> {
    prop::collection::vec((any_text(), any_number()).prop_map(|(name, share)| Share { name, share }), 0..4)
}

prop_compose! {
    fn any_observed()(
        cpu in prop::option::of(prop::array::uniform5(any_number())),
        own in prop::option::of((any_number(), any_number())),
        switches in prop::option::of((any_number(), any_number())),
        calls in prop::option::of(any_number()),
        symbols in any_shares(),
        waits in any_shares(),
        (samples, looks) in (any_count(), any_count()),
        busy_threads in prop::option::of(0..1000usize),
        unseen in prop::collection::vec(any_text(), 0..2),
    ) -> Observed {
        let split = |[client, server_user, server_kernel, other, idle]: [f64; 5]| {
            CpuSplit { client, server_user, server_kernel, other, idle }
        };
        let switches = switches.map(|(voluntary, involuntary)| Switches { voluntary, involuntary });
        let own_cpus = own.map(|(server_idle, client_idle)| OwnCpus { server_idle, client_idle });
        Observed { cpu: cpu.map(split), own_cpus, busy_threads, switches, calls, symbols, samples, waits, looks, unseen }
    }
}

prop_compose! {
    fn any_round()(
        numbers in prop::array::uniform5(any_number()),
        latency in any_latency(),
        lag in prop::option::of(any_latency()),
        (own_lag, by_rate) in (prop::option::of(any_latency()), prop::collection::vec(any_latency(), 0..3)),
        kind in (any_text(), any_count(), any_count(), any_count()),
        seconds in prop::collection::vec(any_count(), 0..5),
        error in prop::option::of((any_text(), any_text(), any_count(), any::<bool>())),
        lost_clients in prop::option::of((any::<usize>(), any_text())),
        (pass, unstarted) in (0..3u32, prop::option::of(any_count())),
        offered in prop::option::of((any_number(), any_number(), any::<bool>())),
        observed in any_observed(),
    ) -> Round {
        let [at, elapsed, tps, user, system] = numbers;
        let (name, done, failed, retried) = kind;
        let errors = error.into_iter();
        let errors = errors.map(|(code, message, count, tolerated)| Errors { code, message, count, tolerated }).collect();
        Round {
            pass, at, elapsed, tps, offered: offered.map(|(from, to, even)| Offered { from, to, even }), latency, lag, own_lag, by_rate, seconds, errors, unstarted, lost_clients, observed,
            kinds: vec![KindCounts { name, done, failed, retried }],
            client_cpu: CpuTime { user, system },
        }
    }
}

prop_compose! {
    /// Any report whose points belong to three arms, one of which is not among those named.
    pub(crate) fn any_report()(
        names in prop::array::uniform3(any_text()),
        workload in any_text(),
        points in prop::collection::vec(
            (0..3usize, 0..5usize, any_interval(), prop::option::of(any_interval()), prop::collection::vec(any_round(), 0..3)),
            0..6,
        ),
        fits in prop::collection::vec((0..3usize, prop::array::uniform4(any_interval()), any_number()), 0..2),
        texts in prop::collection::vec(any_text(), 6),
        noise in prop::collection::vec((any_number(), any_number()), 0..3),
        check in prop::option::of(any_text()),
    ) -> Report {
        let mut report = samples::nothing();
        let settings = vec![(texts[0].clone(), texts[1].clone())];
        report.began = texts[2].clone();
        report.command = texts.clone();
        report.machine.facts = settings.clone();
        report.machine.noise = noise.into_iter().map(|(at, took)| Noise { at, took }).collect();
        report.findings = texts[3..].to_vec();
        report.arms = names[..2].iter().map(|name| Arm {
            name: name.clone(), dialect: Dialect::Mysql, server: texts[4].clone(), settings: settings.clone(),
        }).collect();
        report.points = points.into_iter().map(|(arm, clients, tps, ratio, rounds)| Point {
            arm: names[arm].clone(),
            workload: workload.clone(),
            protocol: Protocol::Simple,
            clients: [0, 1, 7, 1000, usize::MAX][clients],
            tps, ratio, rounds,
            checks: vec![Check { claim: texts[5].clone(), fault: check.clone() }],
        }).collect();
        report.fits = fits.into_iter().map(|(arm, [single, contention, coherence, clients], tps)| Fit {
            arm: names[arm].clone(), workload: workload.clone(), protocol: Protocol::Simple,
            single, contention, coherence, explained: tps,
            peak: tps.is_finite().then_some(Peak { clients, tps }),
        }).collect();
        report
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_report_stops_the_table_or_markdown_or_moves_the_cursor(report in any_report()) {
        for text in [table(&report, 80), markdown(&report)] {
            prop_assert!(!text.contains("NaN") || report_says(&report, "NaN"), "{}", text);
            prop_assert!(text.chars().all(|one| one == '\n' || !one.is_control()), "{:?}", text);
        }
        // The command stands indented, as code.
        let markdown = markdown(&report);
        let mut lines = markdown.lines().filter(|line| !line.starts_with("    "));
        prop_assert!(lines.all(|line| !line.contains("<script>")), "{}", markdown);
    }

    #[test]
    fn any_report_can_be_stored(report in any_report()) {
        let text = report.to_json();
        let again = Report::from_json(&text).unwrap();
        prop_assert_eq!(again.to_json(), text);
    }
}

fn report_says(report: &Report, text: &str) -> bool {
    format!("{:?}{:?}{:?}", report.findings, report.arms, report.command).contains(text)
}
