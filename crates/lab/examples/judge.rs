//! Judges claims without the rest of the program.
use anabranch_lab::claims::{Mode, library, output, run};
use std::sync::atomic::AtomicBool;
fn main() {
    let mut ids: Vec<String> = std::env::args().skip(1).collect();
    let is_broken = ids.iter().any(|id| id == "--broken");
    ids.retain(|id| !id.starts_with("--"));
    let options = run::Options { mode: Mode::Quick, seeds: None, jobs: 2, cache: None };
    let stop = AtomicBool::new(false);
    let mut all = Vec::new();
    for claim in library::find(&ids).unwrap() {
        let begun = std::time::Instant::now();
        if is_broken {
            let judged = run::broken(&claim, &options, &stop).unwrap();
            for check in judged.map(|j| j.checks).unwrap_or_default() {
                println!(
                    "  {:8} {} [{}] {}",
                    check.verdict.word(),
                    check.check.what,
                    check.measured,
                    check.verdict
                );
            }
            continue;
        }
        let id = claim.id.clone();
        match run::claim(claim, &options, &|_, _| {}, &stop) {
            Ok(outcome) => {
                println!(
                    "{id}: {} ({:.1} s wall)",
                    outcome.judgement.verdict,
                    begun.elapsed().as_secs_f64()
                );
                for check in &outcome.judgement.checks {
                    println!(
                        "  {:8} {} [{}] paper {} {}",
                        check.verdict.word(),
                        check.check.what,
                        check.measured,
                        check.check.paper,
                        check.verdict
                    );
                }
                all.push(outcome);
            }
            Err(error) => println!("{id}: {error}"),
        }
        output::write(std::path::Path::new("/tmp/judged"), &all, Vec::new(), Vec::new()).unwrap();
    }
}
