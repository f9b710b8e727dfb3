//! The page is sound HTML for any report, and a browser lays it out as meant.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use scraper::{Html, Selector};

use super::html;
use crate::record::Report;
use crate::report::samples;
use crate::report::tests::any_report;
use crate::tests::golden_cases;

/// Faults of a page: complaints of a strict parser, external content or scripts, and NaN or
/// infinite numbers.
fn faults(page: &str) -> Vec<String> {
    let parsed = Html::parse_document(page);
    let mut faults: Vec<String> = parsed.errors.iter().map(|error| error.to_string()).collect();
    let every = Selector::parse("*").expect("a selector");
    for element in parsed.select(&every) {
        let name = element.value().name();
        if ["script", "img", "iframe", "object", "embed", "base", "form"].contains(&name) {
            faults.push(format!("a {name}"));
        }
        for (key, value) in element.value().attrs() {
            if key.starts_with("on") || ["src", "srcset", "action"].contains(&key) {
                faults.push(format!("{name} has {key}"));
            }
            if key == "href" && !value.starts_with('#') && value != "data:," {
                faults.push(format!("{name} leads to {value}"));
            }
            let drawn = ["x", "y", "x1", "x2", "y1", "y2", "width", "height", "d", "transform", "viewBox"];
            if drawn.contains(&key) && (value.contains("NaN") || value.contains("inf")) {
                faults.push(format!("{name} has {key}={value}"));
            }
        }
    }
    faults
}

#[test]
fn pages_are_sound_and_can_be_read_without_seeing_the_plots() {
    for report in [
        samples::two_arms(),
        samples::six_arms(),
        samples::one_point(),
        samples::open_loop(),
        samples::nothing(),
    ] {
        let page = html(&report);
        assert_eq!(faults(&page), Vec::<String>::new());
        let parsed = Html::parse_document(&page);
        let select = |what: &str| parsed.select(&Selector::parse(what).unwrap()).collect::<Vec<_>>();
        for plot in select("svg[role=img]") {
            assert!(plot.value().attr("aria-label").unwrap().len() > 10);
        }
        assert_eq!(select("svg[role=img]").is_empty(), report.points.is_empty());
        for point in &report.points {
            let tps = crate::figures::number(point.tps.value);
            assert!(select("td").iter().any(|cell| cell.text().collect::<String>() == tps), "{tps}");
        }
    }
}

/// A report whose second arm lacks the point with the fewest clients.
fn without_the_first() -> Report {
    let mut report = samples::two_arms();
    report.points.retain(|point| point.arm != "pg18" || point.clients > 1);
    report
}

/// A line for each figure of the page: its caption, and the counts of its parts.
fn figures(report: &Report) -> Vec<String> {
    let parsed = Html::parse_document(&html(report));
    let select = |what: &str| Selector::parse(what).unwrap();
    let every = select("figure");
    let figures = parsed.select(&every).map(|figure| {
        let caption: String = figure.select(&select("figcaption")).flat_map(|one| one.text()).collect();
        let parts = [
            ("bounds", "path.bounds"),
            ("curves", "path.curve"),
            ("arrows", "path.arrow"),
            ("marks", "g > path.mark"),
        ];
        let counts = parts.map(|(name, kind)| format!("{} {name}", figure.select(&select(kind)).count()));
        format!("{caption}: {}", counts.join(", "))
    });
    figures.collect()
}

#[test]
fn plots_show_bounds_curves_and_arrivals_and_arrows_where_the_scale_cuts_bounds() {
    let mut cut = samples::two_arms();
    let last = cut.points.last_mut().unwrap();
    last.tps.high = 100.0 * last.tps.value;
    let cases = [
        ("two arms", samples::two_arms()),
        ("two arms, one without the first point", without_the_first()),
        ("an interval too wide for throughput, not for efficiency", cut),
        ("a rate", samples::open_loop()),
        ("a rising rate", samples::rising()),
    ];
    golden_cases("html_figures", cases.map(|(case, report)| (case, figures(&report))));
    let page = html(&samples::rising());
    for tip in ["<title>pg: 1.00 at 1,200</title>", "<title>pg: 20.0 at 8,800</title>"] {
        assert!(page.contains(tip), "{tip}");
    }
}

#[test]
fn the_page_begins_with_the_verdict_then_the_plot_then_findings_then_what_is_missing() {
    let page = html(&samples::one_point());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    let order = [
        "<li class=\"bad\">disqualified: broken data: tpcc at 8 clients",
        "300012.50 and 300000.00",
        "<figcaption>Transactions a second",
        "<h2 id=\"findings\">",
        "<h2 id=\"missing\">",
        "16 clients: interrupted",
        "the server runs elsewhere",
        "<h2 id=\"w0\">",
        "<h2 id=\"setting\">",
    ];
    assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
}

#[test]
fn pictures_stand_alone_and_have_a_mark_for_each_point() {
    let report = samples::six_arms();
    let pictures = super::pictures(&report);
    let names: Vec<&str> = pictures.iter().map(|(_, name, _)| name.as_str()).collect();
    assert!(names.iter().all(|name| name.ends_with(".svg") && !name.contains(['/', ' ', ','])), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("-tps.svg")), "{names:?}");
    for (_, name, svg) in &pictures {
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{name}");
        let parsed = Html::parse_fragment(svg);
        let marks = parsed.select(&Selector::parse("path.mark").unwrap()).count();
        assert!(marks > report.arms.len(), "{name}: {marks}");
        let elsewhere = svg.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("://") && !elsewhere.contains("url("), "{name}");
        for arm in &report.arms {
            assert!(
                svg.contains(arm.name.split(['<', '&', '>', '"']).next().unwrap()),
                "{name}: {}",
                arm.name
            );
        }
    }
    let names = super::pictures(&samples::open_loop()).into_iter().map(|(_, name, _)| name);
    assert!(names.eq(["oltp_read_write-prepared-tps.svg", "oltp_read_write-prepared-p99.svg"]));
    assert!(super::pictures(&samples::nothing()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_report_makes_the_page_unsound(report in any_report()) {
        let found = faults(&html(&report));
        prop_assert!(found.is_empty(), "{:?}", found);
    }
}

/// The browser, if one is installed.
fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let quiet = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    })
}

/// The page's layout at a width, measured by a script that only the test adds to it.
fn overflow(browser: &str, folder: &Path, report: &Report, width: usize) -> String {
    const PROBE: &str = "<script>addEventListener('load', () => {
        const wide = document.documentElement.clientWidth, out = [];
        document.querySelectorAll('body *').forEach(one => {
            const box = one.getBoundingClientRect();
            const scrolls = one.closest('.sheet') || one.closest('.card') || one.closest('details:not([open])');
            if (box.width && box.right > wide + 1 && !scrolls) out.push(one.tagName + ':' + one.textContent.slice(0, 40));
        });
        document.querySelectorAll('svg[role=img]').forEach(svg => {
            const box = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')].map(one => one.getBoundingClientRect());
            texts.forEach((a, at) => {
                if (a.width && (a.left < box.left - 4 || a.right > box.right + 4)) out.push('cut label in ' + svg.textContent.slice(0, 40));
                texts.slice(at + 1).forEach(b => {
                    const over = a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
                    if (a.width && b.width && over) out.push('labels overlap in ' + svg.textContent.slice(0, 40));
                });
            });
        });
        if (document.documentElement.scrollWidth > wide) out.push('the page scrolls sideways');
        document.title = 'PROBE' + JSON.stringify(out) + 'END';
    });</script></head>";
    let page = html(report).replacen("</head>", PROBE, 1).replacen(
        "default-src 'none'",
        "script-src 'unsafe-inline'",
        1,
    );
    // A window can't be as narrow as a phone: the test shows the page in a frame of that width.
    let inner = folder.join("inner.html");
    std::fs::write(&inner, page).unwrap();
    let outer = folder.join("outer.html");
    let frame = format!(
        "<!DOCTYPE html><body><iframe id=f width={width} height=800 src=inner.html></iframe><script>\
         onload = () => setTimeout(() => document.body.append(document.getElementById('f').contentDocument.title), 200)\
         </script>"
    );
    std::fs::write(&outer, frame).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
        .args(["--disable-dev-shm-usage", "--dump-dom", "--virtual-time-budget=5000"])
        .args(["--allow-file-access-from-files", "--window-size=1400,900"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", outer.display()))
        .output()
        .expect("the browser starts");
    let (dom, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("CONSOLE"), "the page has the browser complain: {errors}");
    let start = dom.find("PROBE").unwrap_or_else(|| panic!("the probe has not run: {dom}"));
    let end = dom[start..].find("END").expect("the probe's end") + start;
    dom[start + 5..end].to_string()
}

#[test]
fn a_browser_shows_pages_on_a_phone_and_on_a_desk() {
    let Some(browser) = chromium() else {
        crate::tests::skip("there is no chromium here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let reports = [
        ("two", samples::two_arms()),
        ("six", samples::six_arms()),
        ("one", samples::one_point()),
        ("open", samples::open_loop()),
        ("rising", samples::rising()),
        ("without", without_the_first()),
        ("none", samples::nothing()),
    ];
    for (name, report) in reports {
        for width in [390, 1280] {
            assert_eq!(overflow(browser, folder.path(), &report, width), "[]", "{name} at {width}");
        }
    }
}
