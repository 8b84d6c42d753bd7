use super::*;
use crate::claims::library;

const QUICK: Options<'_> = Options { mode: Mode::Quick, seeds: None, jobs: 2, cache: None };

#[test]
fn every_claim_plans_in_both_modes_and_so_do_the_broken_variants() {
    for claim in library::all().unwrap() {
        for mode in [Mode::Quick, Mode::Full] {
            let options = Options { mode, ..QUICK };
            for broken in [None, claim.broken.as_ref()] {
                let plans =
                    plans(&claim, &options, broken).unwrap_or_else(|error| panic!("{error}"));
                assert!(plans.values().all(|plan| !plan.runs.is_empty()), "{}", claim.id);
            }
        }
    }
}
