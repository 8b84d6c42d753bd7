use super::*;
use crate::table::{Table, Value};

const CLAIM: &str = r#"
id = "t.x"
title = "t"
paper = "thesis"
where = "§1"
setup = "s"
claim = "c"
cost = { quick_s = 1, full_s = 2 }
[[run]]
name = "a"
scenario = "a"
"#;

/// Two systems at two losses with two seeds; and nodes of one run.
fn results() -> Results {
    let mut runs = Table::new("runs", &["system", "loss", "seed", "goodput"]);
    for (system, loss, values) in [
        ("A", 0.0, [9.0, 10.0]),
        ("A", 0.1, [2.0, 3.0]),
        ("B", 0.0, [5.0, 5.0]),
        ("B", 0.1, [4.0, 5.0]),
    ] {
        for (seed, value) in values.into_iter().enumerate() {
            runs.push(vec![system.into(), loss.into(), (seed as f64).into(), value.into()]);
        }
    }
    let mut nodes = Table::new("nodes", &["system", "seed", "completion_s"]);
    for rank in 0..100 {
        let rank = f64::from(rank);
        nodes.push(vec!["A".into(), 1.0.into(), (100.0 + rank).into()]);
        nodes.push(vec!["B".into(), 1.0.into(), (130.0 + 0.5 * rank).into()]);
    }
    nodes.push(vec!["B".into(), 1.0.into(), Value::Missing]);
    Results::from([("a".into(), vec![runs, nodes])])
}

fn judged(check: &str) -> Judged {
    let text = format!("{CLAIM}[[check]]\nwhat = \"w\"\npaper = \"p\"\nrole = \"ours\"\n{check}");
    let claim = Claim::from_toml("t", &text).unwrap();
    judge(&claim, &results(), Mode::Quick).checks.remove(0)
}

#[test]
fn a_number_is_the_statistic_over_the_seeds_of_the_rows_that_were_picked() {
    let median =
        judged("metric = 'goodput'\nwhere = { system = 'A', loss = 0 }\nmin = 9.5\nmax = 9.5");
    assert_eq!((median.values, median.verdict), (vec![9.5], Verdict::Holds));
    assert_eq!(median.measured, "9.5 (9–10)");
    let least =
        judged("metric = 'goodput'\nwhere = { system = 'A', loss = 0 }\nover = 'min'\nmax = 9");
    assert_eq!(least.verdict, Verdict::Holds);
}

#[test]
fn a_check_that_differs_says_where_and_by_how_much() {
    let check = "metric = 'goodput'\nwhere = { system = 'A' }\neach = ['loss']\nmin = 5";
    let found = judged(check);
    assert_eq!(found.values, [9.5, 2.5]);
    assert_eq!(found.measured, "2.5 to 9.5 at 2 points");
    let Verdict::Differs(how) = found.verdict else { panic!("{:?}", found.verdict) };
    assert_eq!(how, "2.5 at loss 0.1, 50% below the least allowed, 5");
    let above = judged("metric = 'goodput'\nwhere = { system = 'A', loss = 0 }\nmin = 1\nmax = 8");
    assert_eq!(above.verdict.to_string(), "differs: 9.5, 18.8% above the most allowed, 8");
}

#[test]
fn systems_are_compared_at_the_same_point() {
    let ratio = "metric = 'goodput'\nwhere = { system = 'A' }\neach = ['loss']\nmin = 0\n\
                 against = { as = 'ratio', where = { system = 'B' } }";
    let values = judged(ratio).values;
    assert!((values[0] - 1.9).abs() < 1e-9 && (values[1] - 2.5 / 4.5).abs() < 1e-9, "{values:?}");
    let faster = "metric = 'completion_s'\ntable = 'nodes'\nwithin = 'max'\nwhere = { system = 'B' }\n\
                  against = { as = 'faster', where = { system = 'A' } }\nmin = 0";
    let values = judged(faster).values;
    assert!((values[0] - (199.0 / 179.5 - 1.0)).abs() < 1e-9, "{values:?}");
}

#[test]
fn the_share_of_ranks_says_for_how_many_nodes_a_system_is_better() {
    // A is 100 + r, B is 130 + r/2: A is below for ranks under 60%.
    let share = "metric = 'completion_s'\ntable = 'nodes'\nwhere = { system = 'A' }\n\
                 against = { as = 'share-below', where = { system = 'B' } }\nmin = 0.5\nmax = 0.7";
    let found = judged(share);
    assert!((found.values[0] - 0.6).abs() < 0.02, "{:?}", found.values);
    assert_eq!(found.verdict, Verdict::Holds);
}

#[test]
fn what_was_not_measured_differs_and_never_holds() {
    for (check, part) in [
        ("metric = 'speed'\nmin = 0", "no column"),
        ("metric = 'goodput'\nwhere = { system = 'C' }\nmin = 0", "system is C"),
        ("metric = 'goodput'\nwhere = { colour = 'red' }\nmin = 0", "no column"),
        ("metric = 'goodput'\ntable = 'links'\nmin = 0", "no table"),
        ("metric = 'goodput'\nwhere = { system = 'C' }\neach = ['loss']\nmin = 0", "system is C"),
    ] {
        let Verdict::Differs(how) = judged(check).verdict else { panic!("{check}") };
        assert!(how.starts_with("not measured") && how.contains(part), "{how}");
    }
}

#[test]
fn a_missing_rival_makes_a_claim_partial_and_a_difference_outweighs_it() {
    let missing = "[[check]]\nwhat = 'w'\npaper = 'p'\nrole = 'ours'\nmissing = 'PLT'\nmetric = 'goodput'\nmin = 1\n";
    let holds = "[[check]]\nwhat = 'w'\npaper = 'p'\nrole = 'ours'\nmetric = 'goodput'\nmin = 1\n";
    let differs =
        "[[check]]\nwhat = 'w'\npaper = 'p'\nrole = 'ours'\nmetric = 'goodput'\nmin = 100\n";
    let verdict = |checks: &[&str]| {
        let claim = Claim::from_toml("t", &format!("{CLAIM}{}", checks.concat())).unwrap();
        judge(&claim, &results(), Mode::Quick).verdict.to_string()
    };
    assert_eq!(verdict(&[holds]), "holds");
    assert_eq!(verdict(&[holds, missing, missing]), "partial: PLT missing");
    assert_eq!(verdict(&[holds, missing, differs]), "differs: 1 of 2 checks");
}

#[test]
fn a_check_of_the_other_mode_is_left_out() {
    let check = "[[check]]\nwhat = 'w'\npaper = 'p'\nrole = 'ours'\nmode = 'full'\nmetric = 'goodput'\nmin = 100\n";
    let claim = Claim::from_toml("t", &format!("{CLAIM}{check}")).unwrap();
    assert_eq!(judge(&claim, &results(), Mode::Quick).verdict, Verdict::Holds);
    assert_eq!(judge(&claim, &results(), Mode::Full).verdict.word(), "differs");
}

#[test]
fn who_never_finished_is_infinitely_slow() {
    // B has 100 nodes that finished and one that did not.
    let last = "metric = 'completion_s'\ntable = 'nodes'\nnever = true\nwithin = 'max'\n\
                where = { system = 'A' }\nagainst = { as = 'faster', where = { system = 'B' } }\nmin = 5";
    let found = judged(last);
    assert_eq!((found.measured.as_str(), found.verdict), ("∞", Verdict::Holds));
    let median = "metric = 'completion_s'\ntable = 'nodes'\nnever = true\nwhere = { system = 'B' }\n\
                  min = 155\nmax = 155";
    assert_eq!(judged(median).verdict, Verdict::Holds);
    let both = "metric = 'completion_s'\ntable = 'nodes'\nnever = true\nwithin = 'max'\n\
                where = { system = 'B' }\nagainst = { as = 'faster', where = { system = 'B' } }\nmin = 0";
    assert_eq!(judged(both).verdict.to_string(), "differs: neither side ever finished");
}
