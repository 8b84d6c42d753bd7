use super::*;
use crate::content::{BLOCK_SIZE_MAX, BLOCK_SIZE_MIN, UNIT_LEN};
use proptest::prelude::*;

fn bytes(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(b"tree tests").finalize_xof().fill(&mut bytes);
    bytes
}

/// Block values and proofs of a text.
fn hash_blocks(text: &[u8], block_size: u32) -> (Vec<ChainingValue>, Vec<Vec<u8>>) {
    let mut values = Vec::new();
    let mut proofs = Vec::new();
    for (block, bytes) in text.chunks(block_size as usize).enumerate() {
        let start = block as u64 * u64::from(block_size);
        let unit = unit_len(block_size);
        let units: Vec<_> = bytes
            .chunks(unit as usize)
            .enumerate()
            .map(|(at, bytes)| unit_value(bytes, start + at as u64 * u64::from(unit)))
            .collect();
        values.push(merge(&units));
        proofs.push(if units.len() > 1 { units.concat() } else { Vec::new() });
    }
    (values, proofs)
}

fn tree_of(text: &[u8], block_size: u32) -> (Tree, Vec<Vec<u8>>) {
    let (values, proofs) = hash_blocks(text, block_size);
    let tree = if values.len() > 1 {
        Tree::from_values(&values, text.len() as u64, block_size)
    } else {
        Tree::new(*blake3::hash(text).as_bytes(), text.len() as u64, block_size)
    };
    (tree, proofs)
}

#[test]
fn the_root_is_what_b3sum_prints_at_every_border_and_block_size() {
    let text = bytes(5 << 20);
    for block_size in [BLOCK_SIZE_MIN, 32 << 10, UNIT_LEN, 128 << 10, 1 << 20, BLOCK_SIZE_MAX] {
        let unit = unit_len(block_size) as usize;
        let block = block_size as usize;
        let mut lens = vec![0, 1, 1023, 1024, 1025, text.len() - 1, text.len()];
        for border in [unit, 2 * unit, 3 * unit, block, 2 * block, 3 * block, 5 * block] {
            lens.extend([border - 1, border, border + 1]);
        }
        for len in lens.into_iter().filter(|&len| len <= text.len()) {
            let (tree, proofs) = tree_of(&text[..len], block_size);
            assert_eq!(tree.root(), blake3::hash(&text[..len]).as_bytes(), "{len} {block_size}");
            for (at, bytes) in text[..len].chunks(block).enumerate() {
                let expected = tree.expected(at as u32).expect("every value is known");
                let check = BlockCheck::new(
                    expected,
                    at as u32,
                    block_size,
                    bytes.len() as u32,
                    &proofs[at],
                )
                .expect("the proof is right");
                for (unit_at, unit) in bytes.chunks(unit).enumerate() {
                    assert!(check.is_right(unit_at as u32, unit), "{len} {block_size} {at}");
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_a_unit_or_its_proof_is_found() {
    let text = bytes(300_000);
    let (tree, proofs) = tree_of(&text, 128 << 10);
    let expected = tree.expected(1).expect("known");
    let block = &text[128 << 10..256 << 10];
    let check = BlockCheck::new(expected, 1, 128 << 10, 128 << 10, &proofs[1]).expect("right");
    for bit in [0usize, 77, 8 * 65536 - 1] {
        let mut unit = block[..65536].to_vec();
        unit[bit / 8] ^= 1 << (bit % 8);
        assert!(!check.is_right(0, &unit), "bit {bit}");
    }
    assert!(!check.is_right(1, &block[..65536]), "a unit in another's place");
    assert!(!check.is_right(2, &block[..65536]), "a unit beyond the end");
    for bit in 0..proofs[1].len() * 8 {
        let mut proof = proofs[1].clone();
        proof[bit / 8] ^= 1 << (bit % 8);
        assert!(BlockCheck::new(expected, 1, 128 << 10, 128 << 10, &proof).is_none(), "bit {bit}");
    }
    for proof in [&[][..], &proofs[1][..32], &proofs[1][..63], &proofs[1].repeat(2)] {
        assert!(BlockCheck::new(expected, 1, 128 << 10, 128 << 10, proof).is_none());
    }
}

/// Values as a huge content would have them: the tree does not look below its blocks.
fn values(count: u32) -> Vec<ChainingValue> {
    (0..count).map(|at| *blake3::hash(&at.to_le_bytes()).as_bytes()).collect()
}

#[test]
fn the_pages_of_a_terabyte_are_at_most_four_mebibytes() {
    let len = 1_000_000_000_000u64;
    let tree = Tree::new([0; 32], len, crate::content::block_size_for(len));
    let runs = tree.blocks().div_ceil(PAGE_VALUES_MAX);
    let bytes = (tree.blocks() + runs) as usize * VALUE_LEN;
    assert_eq!(tree.blocks(), 119_210);
    assert_eq!(tree.pages(), 118);
    assert!(bytes <= 4 << 20, "{bytes}");
    let known = Tree::from_values(&values(tree.blocks()), len, crate::content::BLOCK_SIZE_MAX);
    let sent: usize = (0..known.pages()).filter_map(|page| known.page(page)).map(|p| p.len()).sum();
    assert_eq!(sent, bytes);
}

#[test]
fn pages_are_learned_from_the_top_down_and_make_their_blocks_known() {
    for count in [2u32, 1023, 1024, 1025, 2048, 2049, 5000] {
        let len = u64::from(count) * u64::from(BLOCK_SIZE_MIN) - 5;
        let source = Tree::from_values(&values(count), len, BLOCK_SIZE_MIN);
        let mut tree = Tree::new(*source.root(), len, BLOCK_SIZE_MIN);
        let mut learned = 0;
        loop {
            let missing: Vec<u32> = tree.missing_pages().collect();
            if missing.is_empty() {
                break;
            }
            for page in missing {
                let bytes = source.page(page).expect("the source knows every page");
                assert!(bytes.len() <= PAGE_LEN_MAX);
                learned += tree.accept_page(page, &bytes).expect("right").len();
                assert_eq!(tree.accept_page(page, &bytes), Ok(0..0), "known already");
            }
        }
        assert_eq!(learned, count as usize);
        for block in 0..count {
            assert_eq!(tree.expected(block), source.expected(block));
        }
        assert_eq!(tree.expected(count), None);
        assert_eq!(tree.known().iter().map(|range| range.len()).sum::<usize>(), count as usize);
    }
}

#[test]
fn a_leaf_page_before_the_top_page_is_not_judged() {
    let len = 2000 * u64::from(BLOCK_SIZE_MIN);
    let source = Tree::from_values(&values(2000), len, BLOCK_SIZE_MIN);
    let mut tree = Tree::new(*source.root(), len, BLOCK_SIZE_MIN);
    let leaf = source.page(1).expect("known");
    assert_eq!(tree.accept_page(1, &leaf), Err(BadPage::Unknown));
    assert_eq!(tree.accept_page(3, &leaf), Err(BadPage::Unknown));
    assert_eq!(tree.page(1), None);
}

#[test]
fn a_page_with_any_bit_flipped_is_refused() {
    let len = 1030 * u64::from(BLOCK_SIZE_MIN);
    let source = Tree::from_values(&values(1030), len, BLOCK_SIZE_MIN);
    let mut tree = Tree::new(*source.root(), len, BLOCK_SIZE_MIN);
    for page in [0, 2] {
        let right = source.page(page).expect("known");
        for bit in 0..right.len() * 8 {
            let mut wrong = right.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(tree.accept_page(page, &wrong), Err(BadPage::Corrupt), "{page} {bit}");
        }
        assert!(tree.accept_page(page, &right).is_ok());
    }
}

proptest! {
    #[test]
    fn no_bytes_panic_the_page_decoder(
        count in 0u32..3000, page in any::<u32>(), low in 0u32..5,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let len = u64::from(count) * u64::from(BLOCK_SIZE_MIN);
        let mut tree = Tree::new([7; 32], len, BLOCK_SIZE_MIN);
        prop_assert!(tree.accept_page(page, &bytes).is_err());
        prop_assert!(tree.accept_page(low, &bytes).is_err());
        prop_assert!(tree.page(page).is_none());
    }

    #[test]
    fn no_bytes_panic_the_proof_decoder(
        block in any::<u32>(), len in 1u32..=512 << 10, is_root in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let expected = if is_root { Expected::Root([7; 32]) } else { Expected::Inner([7; 32]) };
        let is_one_unit = len <= 64 << 10;
        let check = BlockCheck::new(expected, block, 512 << 10, len, &bytes);
        prop_assert_eq!(check.is_some(), is_one_unit && bytes.is_empty());
        if let Some(check) = BlockCheck::new(expected, block, 512 << 10, 1, &[]) {
            prop_assert!(!check.is_right(0, b"a"));
        }
    }
}
