use super::*;
use crate::claims::judge::Verdict;
use crate::claims::library;

const QUICK: Options<'_> =
    Options { mode: Mode::Quick, seeds: None, jobs: 2, cache: None, build: "tests" };

#[test]
fn every_claim_plans_in_both_modes() {
    for claim in library::all().unwrap() {
        for mode in [Mode::Quick, Mode::Full] {
            let options = Options { mode, ..QUICK };
            let plans = plans(&claim, &options).unwrap_or_else(|error| panic!("{error}"));
            assert!(plans.values().all(|plan| !plan.runs.is_empty()), "{}", claim.id);
        }
    }
}

#[test]
fn every_scenario_of_the_papers_belongs_to_a_claim() {
    let claims = library::all().unwrap();
    let is_of_papers = |name: &str| name.starts_with("plt-") || name.starts_with("bp-");
    for (name, _) in crate::scenarios::ALL.iter().filter(|(name, _)| is_of_papers(name)) {
        let mut runs = claims.iter().flat_map(|claim| &claim.runs);
        assert!(runs.any(|run| run.scenario == *name), "{name}");
    }
}

/// Runs the claim's check as it is and broken.
fn assert_found_out(id: &str) {
    let claim = library::find(&[id.to_owned()]).unwrap().remove(0);
    let options = Options { seeds: Some(vec![1]), ..QUICK };
    let (whole, broken) =
        super::broken(&claim, &options, &AtomicBool::new(false)).unwrap().unwrap();
    assert_eq!(whole.verdict, Verdict::Holds, "{}", whole.measured);
    assert!(matches!(broken.verdict, Verdict::Differs(_)), "{}", broken.measured);
    assert!(!broken.values.is_empty(), "it must be measured to differ: {}", broken.verdict);
}

#[test]
fn a_variant_that_is_not_broken_is_not_found_out() {
    let mut claim = library::find(&["plt.loss".to_owned()]).unwrap().remove(0);
    claim.broken.as_mut().unwrap().set.clear();
    let options = Options { seeds: Some(vec![1]), ..QUICK };
    let (_, broken) = super::broken(&claim, &options, &AtomicBool::new(false)).unwrap().unwrap();
    assert_eq!(broken.verdict, Verdict::Holds, "{}", broken.measured);
}

#[test]
fn a_tcp_that_keeps_two_packets_in_flight_is_found_out() {
    assert_found_out("plt.loss");
}

#[test]
fn a_bullet_prime_with_one_peer_and_one_request_at_a_time_is_found_out() {
    assert_found_out("bp.static");
}
