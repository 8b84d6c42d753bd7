//! The topology files that come with the project, and the examples of their page, are valid.

use anabranch_world::topology::{NodeIx, Routes, Topology};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn parse(name: &str) -> Topology {
    let path = root().join("topologies").join(name);
    let text = std::fs::read_to_string(&path).expect("a file of the folder");
    Topology::parse(&text, name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_file_in_the_folder_is_a_topology() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("topologies")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.extension().and_then(|of| of.to_str()), Some("toml"), "{path:?}");
        parse(path.file_name().and_then(|name| name.to_str()).unwrap());
        count += 1;
    }
    assert!(count >= 14, "{count} files");
}

#[test]
fn every_whole_example_of_the_page_is_a_topology_and_every_generator_has_one() {
    let page = std::fs::read_to_string(root().join("docs/topologies.md")).unwrap();
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut kinds = Vec::new();
    for block in blocks {
        // Fragments of a link or a queue stand in a file that the page shows whole.
        if block.contains("[[host]]") || block.contains("[generate]") {
            let kind = block.lines().find_map(|line| line.strip_prefix("kind = "));
            kinds.extend(kind.map(str::to_owned));
            Topology::parse(block, "docs/topologies.md").unwrap_or_else(|error| {
                panic!("{error}\n{block}");
            });
        }
    }
    for kind in ["dumbbell", "parking-lot", "star", "mesh", "power-law", "transit-stub", "matrix"] {
        assert!(kinds.contains(&format!("{kind:?}")), "no example of {kind}");
    }
}

#[test]
fn the_files_are_what_their_papers_say() {
    let count = |name: &str| {
        let net = parse(name);
        let hosts = net.hosts().count();
        (hosts, net.nodes.len() - hosts)
    };
    assert_eq!(count("bullet-streaming.toml"), (1000, 20_000));
    assert_eq!(count("bullet-large-scale.toml"), (250, 5000));
    assert_eq!(count("transit-stub.toml"), (5000, 5050));
    assert_eq!(count("mesh.toml"), (100, 200));

    let roma = parse("roma-table-1.toml");
    let slowest = |from: &str, to: &str| {
        let node = |name: &str| roma.find(name).unwrap();
        let mut routes = Routes::new(&roma);
        let path = routes.path(node(from), node(to)).unwrap();
        let rates = path.iter().map(|link| roma.links[link.0 as usize].rate.bytes());
        rates.min().unwrap() * 8 / 100_000
    };
    // "Between BU and UTK, the path asymmetry is 47 Mbps vs. 19 Mbps" (ROMA §VI).
    assert_eq!((slowest("BU", "UTK"), slowest("UTK", "BU")), (470, 190));
    assert_eq!(slowest("UW", "Berkeley"), 384);
}

#[test]
fn twice_the_same_file_is_the_same_network_and_another_seed_another() {
    let text = std::fs::read_to_string(root().join("topologies/mesh.toml")).unwrap();
    let at = |seed| Topology::parse_seeded(&text, "mesh.toml", seed).unwrap();
    assert_eq!(at(1), at(1));
    assert_ne!(at(1), at(2));
    assert!(at(1).nodes[NodeIx(0).0 as usize].is_host);
}
