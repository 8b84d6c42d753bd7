use super::*;
use crate::content::Kind;
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::System;
use proptest::prelude::*;

fn info(blocks: u32) -> GroupInfo {
    let len = u64::from(blocks) * 16384;
    GroupInfo {
        version: 1,
        root: [3; 32],
        kind: Kind::File { name: b"name".to_vec(), len, mode: 0o644, mtime: Default::default() },
        block_size: 16384,
        blocks,
        system: System::Star,
        source: PeerId([7; 32]),
    }
}

/// A record of some entries; the ends of its parts, the header first, and what each entry claims.
fn sample() -> (Vec<u8>, Vec<usize>, Vec<Vec<u32>>) {
    let claims = vec![vec![0, 1, 2, 9], vec![99], vec![20, 21], vec![3, 30, 31, 32, 50]];
    let mut bytes = header(&info(100));
    let mut ends = vec![bytes.len()];
    for (number, blocks) in claims.iter().enumerate() {
        bytes.extend_from_slice(&entry(number as u64, &to_ranges(blocks)));
        ends.push(bytes.len());
    }
    (bytes, ends, claims)
}

fn claimed(claims: &[Vec<u32>]) -> Vec<u32> {
    let mut all = claims.concat();
    all.sort_unstable();
    all
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_and_claims_no_block_of_an_incomplete_entry() {
    let (bytes, ends, claims) = sample();
    for cut in 0..=bytes.len() {
        let decoded = decode(&bytes[..cut]);
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        match decoded {
            None => assert_eq!(whole, 0, "cut at {cut}"),
            Some(decoded) => {
                assert_eq!(decoded.len as usize, ends[whole - 1], "cut at {cut}");
                let held: Vec<u32> = decoded.held.iter().collect();
                assert_eq!(held, claimed(&claims[..whole - 1]), "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_tail_of_zeros_as_a_power_loss_leaves_it_is_cut() {
    let (bytes, ends, claims) = sample();
    for whole in 1..ends.len() {
        let mut torn = bytes[..ends[whole - 1]].to_vec();
        torn.resize(bytes.len() + 100, 0);
        let decoded = decode(&torn).unwrap();
        assert_eq!(decoded.len as usize, ends[whole - 1]);
        assert_eq!(decoded.held.count() as usize, claimed(&claims[..whole - 1]).len());
    }
}

#[test]
fn a_flipped_bit_never_adds_a_claim() {
    let (bytes, ends, claims) = sample();
    for bit in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let Some(decoded) = decode(&wrong) else {
            assert!(bit / 8 < ends[0]);
            continue;
        };
        let before = ends.iter().filter(|&&end| end <= bit / 8).count() - 1;
        let held: Vec<u32> = decoded.held.iter().collect();
        assert_eq!(held, claimed(&claims[..before]), "bit {bit}");
    }
}

#[test]
fn entries_in_another_place_or_beyond_the_content_claim_nothing() {
    let head = header(&info(100));
    for wrong in [entry(1, &to_ranges(&[1])), entry(0, &to_ranges(&[100]))] {
        assert_eq!(decode(&[&head[..], &wrong].concat()).unwrap().held.count(), 0);
    }
}

#[test]
fn appending_after_a_torn_tail_keeps_all_claims() {
    let (bytes, ends, claims) = sample();
    for cut in ends[0]..bytes.len() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes[..cut], 0).unwrap();
        let decoded = decode(&bytes[..cut]).unwrap();
        let mut record = Record::resume(file.try_clone().unwrap(), &decoded).unwrap();
        record.append(&mut vec![61, 60, 61]).unwrap();
        let mut all = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut all, 0).unwrap();
        let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
        let mut wanted = claimed(&claims[..whole]);
        wanted.extend([60, 61]);
        wanted.sort_unstable();
        assert_eq!(decode(&all).unwrap().held.iter().collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn the_bytes_are_what_they_were_in_version_1() {
    let bytes = entry(0, &[0..3, 9..10]);
    assert_eq!(bytes[..21], [1, 16, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0]);
    assert_eq!(bytes[21..], blake3::hash(&[&[0; 8], &bytes[..21]].concat()).as_bytes()[..8]);
    let head = header(&info(100));
    assert_eq!(&head[..8], b"ABrecrd1");
    assert_eq!(head[12..head.len() - 16], info(100).encode());
}

proptest! {
    #[test]
    fn no_bytes_panic_the_decoder(
        tail in prop::collection::vec(any::<u8>(), 0..300), with_header in any::<bool>(),
    ) {
        let mut bytes = if with_header { header(&info(100)) } else { Vec::new() };
        bytes.extend_from_slice(&tail);
        if let Some(decoded) = decode(&bytes) {
            prop_assert!(decoded.len as usize <= bytes.len());
            prop_assert!(decoded.held.count() <= 100);
        }
    }
}
