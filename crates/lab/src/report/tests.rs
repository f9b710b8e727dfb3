//! Outputs of simulated reports compared with files, and outputs of random reports.

use proptest::prelude::*;
use serde_json::Value;
use textwrap::core::display_width;

use super::*;
use crate::client::Random;
use crate::figures;
use crate::record::*;
use crate::tests::golden;

#[test]
fn tables_match_their_files() {
    golden("table_two_arms", &table(&samples::two_arms(), 100));
    golden("table_one_point", &table(&samples::one_point(), 80));
    golden("table_open_loop", &table(&samples::open_loop(), 100));
}

#[test]
fn headings_name_pipelines() {
    let mut report = samples::two_arms();
    assert!(!table(&report, 100).contains("pipelined"));
    report.load.push((PIPELINE.to_owned(), "all statements of a transaction".to_owned()));
    for text in [table(&report, 100), markdown(&report), html(&report)] {
        assert!(text.contains(", prepared, pipelined"), "{text}");
    }
}

#[test]
fn markdown_matches_its_files() {
    golden("markdown_two_arms", &markdown(&samples::two_arms()));
    golden("markdown_one_point", &markdown(&samples::one_point()));
}

#[test]
fn several_runs_make_one_page() {
    let plots = vec![("tps", "results/a-tps.svg".to_owned())];
    let run = |name: &str, report| Stored { name: name.to_owned(), report, plots: plots.clone() };
    golden("runs", &runs(&[run("a", samples::two_arms()), run("b", samples::one_point())]));
}

#[test]
fn tables_fit_the_terminal() {
    for (report, width) in [
        (samples::two_arms(), 60),
        (samples::six_arms(), 80),
        (samples::six_arms(), 200),
        (samples::nothing(), 80),
    ] {
        let text = table(&report, width);
        let widest = text.lines().map(display_width).max().unwrap();
        assert!(widest <= width, "{widest} of {width}:\n{text}");
    }
}

#[test]
fn unstarted_transactions_are_unknown_where_a_round_does_not_report_them() {
    let mut report = samples::open_loop();
    report.points[0].rounds[1].unstarted = None;
    let lag = sheets::lag(&groups::groups(&report)[0]).unwrap();
    let cells: Vec<&str> = lag.rows.iter().filter_map(|row| Some(row.last()?.as_str())).collect();
    assert_eq!(cells, [figures::NONE, "0", "0"]);
}

#[test]
fn ratios_inside_the_noise_are_no_difference() {
    let mut report = samples::two_arms();
    report.points[1].ratio = Some(Interval { value: 1.01, low: 0.98, high: 1.03 });
    for text in [table(&report, 100), markdown(&report), html(&report).replace("&#x2f;", "/")] {
        assert!(text.contains("no difference") && text.contains("pg18 / allcore"), "{text}");
    }
}

#[test]
fn an_observation_of_another_round_of_the_point_is_not_missing() {
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

const NASTY: [&str; 12] = [
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
    "pg18",
];

/// Replaces one in `rate` of a stored report's texts and numbers, and cuts its lists.
fn spoil(value: &mut Value, random: &mut Random, rate: i64) {
    match value {
        Value::Array(all) => {
            // A name and its value stay together.
            if all.len() != 2 {
                all.truncate(random.between(0, 6) as usize);
            }
            all.iter_mut().for_each(|one| spoil(one, random, rate));
        }
        Value::Object(fields) => {
            // These fields have a fixed set of words.
            let free = fields
                .iter_mut()
                .filter(|(name, _)| !["protocol", "dialect", "version"].contains(&name.as_str()));
            free.for_each(|(_, one)| spoil(one, random, rate));
        }
        _ if random.between(1, rate) > 1 => {}
        Value::String(text) => *text = NASTY[random.between(0, 11) as usize].into(),
        Value::Number(number) if number.is_f64() => {
            let numbers = [0.0, -0.0, -1.0, 1e-7, 1e300, f64::MAX, f64::MIN_POSITIVE, f64::NAN];
            *value = numbers[random.between(0, 7) as usize].into();
        }
        Value::Number(_) => *value = [0, 1, 7, 1_000, i32::MAX][random.between(0, 4) as usize].into(),
        _ => {}
    }
}

/// Any report that can be stored: simulated ones with random changes. In half of them every second
/// value changes, so that few reports change each field.
pub(crate) fn any_report() -> impl Strategy<Value = Report> {
    let samples =
        [samples::two_arms, samples::six_arms, samples::one_point, samples::open_loop, samples::rising];
    (0..samples.len(), any::<u64>(), prop::sample::select(vec![2, 10])).prop_map(
        move |(which, seed, rate)| {
            let mut value = serde_json::to_value(samples[which]()).unwrap();
            spoil(&mut value, &mut Random::new(seed, 0), rate);
            let mut report: Report = serde_json::from_value(value).unwrap();
            // No file has these.
            for point in report.points.iter_mut().filter(|point| point.clients % 2 == 0) {
                point.tps.high = f64::INFINITY;
                for round in &mut point.rounds {
                    (round.latency.p99, round.unstarted) = (f64::INFINITY, None);
                }
            }
            report
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_report_stops_the_table_or_markdown_or_moves_the_cursor(report in any_report()) {
        for text in [table(&report, 80), markdown(&report)] {
            prop_assert!(!text.contains("NaN") || report_says(&report, "NaN"), "{}", text);
            prop_assert!(text.chars().all(|one| one == '\n' || !one.is_control()), "{:?}", text);
        }
        // The command is indented, as code.
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
