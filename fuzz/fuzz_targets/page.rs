//! Hash pages and proofs: only the right bytes are kept, and a block's check takes no wrong unit.
#![no_main]

use anabranch_node::content::tree::{BadPage, BlockCheck, Expected, Tree, VALUE_LEN, merge};
use anabranch_node::content::{BLOCK_SIZE_MIN, UNIT_LEN};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, u32, &[u8])| {
    let (blocks, number, bytes) = input;
    offer_page(u32::from(blocks % 4096), number, bytes);
    offer_proof(number, bytes);
});

/// Offers `bytes` as pages to a tree that knows its root only, then the right pages.
fn offer_page(blocks: u32, page: u32, bytes: &[u8]) {
    let len = u64::from(blocks) * u64::from(BLOCK_SIZE_MIN);
    let values: Vec<[u8; 32]> = (0..blocks).map(value).collect();
    let source = match blocks {
        0 | 1 => Tree::new([7; 32], len, BLOCK_SIZE_MIN),
        _ => Tree::from_values(&values, len, BLOCK_SIZE_MIN),
    };
    let mut tree = Tree::new(*source.root(), len, BLOCK_SIZE_MIN);
    for page in [page, page % tree.pages().max(1)] {
        let answer = tree.accept_page(page, bytes);
        let is_right = source.page(page).as_deref() == Some(bytes);
        assert!(is_right || (answer.is_err() && tree.page(page).is_none()));
        assert!(page < tree.pages() || answer == Err(BadPage::Unknown));
    }
    for page in 0..source.pages() {
        let right = source.page(page);
        assert!(right.is_some_and(|right| tree.accept_page(page, &right).is_ok()));
    }
    assert!((0..=blocks).all(|block| tree.expected(block) == source.expected(block)));
}

/// Offers `bytes` as the proof of a block of four units, and units to the check if it is one.
fn offer_proof(block: u32, bytes: &[u8]) {
    let block_size = 4 * UNIT_LEN;
    let wrong = Expected::Inner([7; 32]);
    assert!(BlockCheck::new(wrong, block, block_size, block_size, bytes).is_none());
    let (values, rest) = bytes.as_chunks::<VALUE_LEN>();
    if values.len() == 4 && rest.is_empty() {
        let expected = Expected::Inner(merge(values));
        let check = BlockCheck::new(expected, block, block_size, block_size, bytes);
        assert!(check.is_some_and(|check| (0..5).all(|unit| !check.is_right(unit, bytes))));
    }
}

/// Some value of a block.
fn value(block: u32) -> [u8; 32] {
    let mut value = [1; 32];
    value[..4].copy_from_slice(&block.to_le_bytes());
    value
}
