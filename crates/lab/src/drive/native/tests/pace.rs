//! When transactions begin: at a rate, after think time and pauses, over the ramp.

use super::*;
use crate::load::Arrivals;

#[test]
fn an_open_loop_counts_latency_from_arrivals() {
    const PAUSE: u64 = 5_000_000;
    let fake = Fake::new(|asked| match asked.tag {
        b'E' => Act::After(Duration::from_nanos(PAUSE)),
        _ => Act::Row,
    });
    let pace = Pace::Open { from: 400.0, to: 400.0, arrivals: Arrivals::Even };
    let late = run(&fake.target, &point(), &Load { pace, ..load(1, 1, 1_000) }).unwrap();
    let only = &late.kinds[0];
    // The transactions begun, one of which may be under way, and those never begun are all
    // arrivals.
    assert_eq!(late.lag.unwrap().len(), 400);
    let unstarted = late.unstarted.unwrap();
    assert!((399..=400).contains(&(only.done + unstarted)), "{} and {unstarted}", only.done);
    // Each arrives half a pause after the one before, and begins a full pause later at the soonest.
    assert!(only.done <= 200, "{}", only.done);
    assert!(only.latency.max() >= only.done * PAUSE / 2, "{} of {}", only.latency.max(), only.done);

    // With enough clients, no arrival waits. A busy machine breaks this in some rounds, so one of
    // several must pass.
    let pace = Pace::Open { from: 200.0, to: 200.0, arrivals: Arrivals::Poisson };
    let rounds = (0..10).map(|_| {
        let measured = run(&fake.target, &point(), &Load { pace, ..load(64, 2, 1_000) }).unwrap();
        let due = measured.lag.unwrap().len();
        // The number of arrivals depends on the seed alone.
        assert!((120..=280).contains(&due), "{due}");
        let unstarted = measured.unstarted.unwrap();
        let under_way = due - unstarted - measured.kinds[0].done;
        assert!(under_way <= 64, "{under_way} of {due}");
        let own = measured.own_lag.unwrap().value_at_quantile(0.5);
        (measured.kinds[0].latency.value_at_quantile(0.5), own, unstarted)
    });
    let mut seen = Vec::new();
    let kept_up = rounds.inspect(|round| seen.push(*round)).any(|(median, own, unstarted)| {
        // A wait in whole milliseconds would begin half of them later than this.
        median < only.latency.value_at_quantile(0.5) / 2 && own < 200_000 && unstarted <= 3
    });
    assert!(kept_up, "{seen:?}, alone {}", only.latency.value_at_quantile(0.5));
}

#[test]
fn a_thread_has_its_clients_share_of_the_rate_and_what_is_due_after_it_lost_them_is_counted() {
    let fake = Fake::rows();
    let pace = Pace::Open { from: 300.0, to: 300.0, arrivals: Arrivals::Even };
    // The first thread's clients, each of which takes one arrival with it.
    let workload = Steps { lost: &[0, 2], ..point() };
    let measured = run(&fake.target, &workload, &Load { pace, ..load(3, 2, 1_000) }).unwrap();
    assert_eq!(measured.lost_clients, Some((2, "enough".to_owned())));
    assert_eq!((measured.elapsed, measured.lag.unwrap().len()), (Duration::from_secs(1), 300));
    let (done, unstarted) = (measured.kinds[0].done, measured.unstarted.unwrap());
    assert!(unstarted >= 198 && (297..=298).contains(&(done + unstarted)), "{done} and {unstarted}");
}

/// Two clients do ten transactions each; the server does nothing for them.
fn ten_each(steps: &[Step], think: Duration) -> Measured {
    let fake = Fake::rows();
    let workload = Steps { most: 10, ..Steps::new(steps) };
    let load = Load { pace: Pace::Closed { think }, ..load(2, 1, 60_000) };
    let measured = run(&fake.target, &workload, &load).unwrap();
    assert_eq!((measured.kinds[0].done, measured.lost_clients.as_ref().map(|lost| lost.0)), (20, Some(2)));
    measured
}

#[test]
fn think_time_delays_transactions_and_is_no_latency() {
    const PAUSE: Duration = Duration::from_millis(20);
    let thinking = ten_each(&[Step::Run(SELECT), Step::Done(0)], PAUSE);
    assert!(thinking.elapsed >= 10 * PAUSE, "{:?}", thinking.elapsed);
    // A slow machine may take this long once in a while, not each time; each client's first
    // transaction has no think time before it.
    let quarter = thinking.kinds[0].latency.value_at_quantile(0.25);
    assert!(u128::from(quarter) < PAUSE.as_nanos(), "{quarter}");
    let sleeping = ten_each(&[Step::Run(SELECT), Step::Sleep(PAUSE), Step::Done(0)], Duration::ZERO);
    assert!(sleeping.elapsed >= 10 * PAUSE, "{:?}", sleeping.elapsed);
    let shortest = sleeping.kinds[0].latency.min();
    assert!(u128::from(shortest) >= PAUSE.as_nanos(), "{shortest}");
}

#[test]
fn clients_begin_over_the_ramp_and_nothing_counts_before_the_warm_up_is_over() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let times = asked.clone();
    let fake = Fake::new(move |asked| {
        if asked.tag == b'E' {
            times.lock().unwrap().push(Instant::now());
        }
        Act::Row
    });
    let times = Load {
        ramp: Duration::from_secs(1),
        warmup: Duration::from_secs(2),
        pace: Pace::Closed { think: Duration::from_secs(600) },
        ..load(2, 2, 100)
    };
    let begun = Instant::now();
    let measured = run(&fake.target, &point(), &times).unwrap();
    assert_eq!((measured.kinds[0].done, measured.elapsed), (0, Duration::from_millis(100)));
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    // The second client begins in the middle of the ramp.
    assert!(asked[1] - begun >= times.ramp / 2, "{:?}", asked[1] - begun);
}
