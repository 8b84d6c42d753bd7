use super::*;
use crate::content::info::Mtime;
use crate::content::manifest::Entry;
use proptest::prelude::*;

const BLOCK: u32 = 16384;

fn manifest(lens: &[u64]) -> Manifest {
    let entries = lens.iter().enumerate().map(|(at, &len)| Entry {
        path: format!("{at:06}").into_bytes().into(),
        mode: 0o644,
        mtime: Mtime::default(),
        kind: EntryKind::File { len, hash: [0; 32] },
    });
    Manifest { block_size: BLOCK, entries: entries.collect(), packs: Vec::new() }
}

#[test]
fn the_manifest_comes_first_then_large_files_then_packs() {
    let half = u64::from(BLOCK / 2);
    let lens = [5, 40_000, 0, half, half - 1, half - 1, 20];
    let layout = Layout::directory(&manifest(&lens), 17_000).unwrap();
    let bodies: Vec<_> =
        layout.spans().iter().map(|span| (span.first_block, span.len, span.body.clone())).collect();
    assert_eq!(
        bodies,
        [
            (0, 17_000, Body::Whole(Place::First)),
            (2, 40_000, Body::Whole(Place::Entry(1))),
            (5, half, Body::Whole(Place::Entry(3))),
            (6, 5 + half - 1, Body::Pack(0..2)),
            (7, half - 1 + 20, Body::Pack(2..4)),
        ]
    );
    assert_eq!(layout.blocks(), 8);
    let lens: Vec<u32> = (0..9).map(|block| layout.block_len(block)).collect();
    assert_eq!(lens, [16384, 616, 16384, 16384, 7232, 8192, 8196, 8211, 0]);
    assert_eq!(
        layout.pieces(6, 3, 10),
        Some(vec![
            Piece { place: Place::Entry(0), offset: 3, len: 2 },
            Piece { place: Place::Entry(4), offset: 0, len: 8 },
        ])
    );
    assert_eq!(layout.pieces(6, 8190, 7), None);
    assert_eq!(layout.pieces(8, 0, 0), None);
}

#[test]
fn an_empty_file_and_an_empty_directory_have_no_blocks_of_their_own() {
    assert_eq!(Layout::first(0, BLOCK).blocks(), 0);
    assert_eq!(Layout::first(0, BLOCK).locate(0), None);
    assert_eq!(Layout::directory(&manifest(&[0, 0]), 60).unwrap().blocks(), 1);
}

proptest! {
    #[test]
    fn every_byte_of_every_file_is_in_exactly_one_place(
        lens in prop::collection::vec(prop_oneof![0u64..40, 0u64..9000, 8000u64..60_000], 0..40),
        step in 1u32..20_000,
    ) {
        let manifest = manifest(&lens);
        let layout = Layout::directory(&manifest, 20_000).unwrap();
        let mut seen = vec![0u64; lens.len()];
        let mut first = 0;
        for block in 0..layout.blocks() {
            let len = layout.block_len(block);
            prop_assert!(len > 0 && len <= BLOCK);
            for offset in (0..len).step_by(step as usize) {
                let part = step.min(len - offset);
                let pieces = layout.pieces(block, offset, part).unwrap();
                prop_assert_eq!(pieces.iter().map(|piece| piece.len).sum::<u32>(), part);
                for piece in pieces {
                    let at = match piece.place {
                        Place::First => &mut first,
                        Place::Entry(entry) => &mut seen[entry as usize],
                    };
                    // Blocks and portions come in order, so each file's bytes do, too.
                    prop_assert_eq!(*at, piece.offset);
                    *at += u64::from(piece.len);
                }
            }
        }
        prop_assert_eq!(first, 20_000);
        prop_assert_eq!(seen, lens);
    }
}
