use super::*;
use crate::claims::library;

const QUICK: Options = Options { mode: Mode::Quick, seeds: None, jobs: 2 };

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

#[test]
fn every_scenario_of_the_papers_belongs_to_a_claim() {
    let claims = library::all().unwrap();
    let is_of_papers = |name: &str| name.starts_with("plt-") || name.starts_with("bp-");
    for (name, _) in crate::scenarios::ALL.iter().filter(|(name, _)| is_of_papers(name)) {
        let mut runs = claims.iter().flat_map(|claim| &claim.runs);
        assert!(runs.any(|run| run.scenario == *name), "{name}");
    }
}

#[test]
fn tables_say_which_system_point_and_seed_each_row_belongs_to() {
    let mut runs = Table::new("runs", &["system", "loss", "seed"]);
    let place = |system: &str| vec![Value::from(system), 0.1.into(), 1.0.into()];
    add_scalars(&mut runs, &place("A"), &[("x".into(), 1.0)]);
    add_scalars(&mut runs, &place("B"), &[("y".into(), 2.0), ("x".into(), 3.0)]);
    assert_eq!(runs.columns, ["system", "loss", "seed", "x", "y"]);
    assert_eq!(runs.rows[1][3..], [3.0.into(), 2.0.into()]);
    let mut nodes = Table::new("nodes", &["host"]);
    nodes.push(vec!["n1".into()]);
    let mut others = Vec::new();
    add_rows(&mut others, &["system", "loss", "seed"], &place("A"), nodes.clone());
    add_rows(&mut others, &["system", "loss", "seed"], &place("B"), nodes);
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].columns, ["system", "loss", "seed", "host"]);
    assert_eq!(others[0].rows[1], [Value::from("B"), 0.1.into(), 1.0.into(), "n1".into()]);
}
