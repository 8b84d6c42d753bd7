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

const BOOT: BootId = NonZeroU128::new(77);
const OTHER_BOOT: BootId = NonZeroU128::new(78);

enum Step {
    Opened(BootId),
    Written(u32),
    Synced(&'static [u32]),
}
use Step::{Opened, Synced, Written};

/// What one process after the other writes; in the middle the machine is started anew, at the end
/// a process follows another on the same machine.
const STEPS: [Step; 12] = [
    Opened(OTHER_BOOT),
    Written(1),
    Written(9),
    Synced(&[0, 1, 2]),
    Written(99),
    Opened(BOOT),
    Written(20),
    Written(21),
    Synced(&[20, 30, 31, 32]),
    Opened(BOOT),
    Written(40),
    Synced(&[21]),
];

fn encode(number: u64, step: &Step) -> Vec<u8> {
    match *step {
        Opened(boot) => opened(number, boot),
        Written(block) => claim(KIND_WRITTEN, number, &to_ranges(&[block])),
        Synced(blocks) => claim(KIND_SYNCED, number, &to_ranges(blocks)),
    }
}

/// A record of these steps, and the ends of its parts, the header first.
fn record_of(steps: &[Step]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = header(&info(100));
    let mut ends = vec![bytes.len()];
    for (number, step) in steps.iter().enumerate() {
        bytes.extend_from_slice(&encode(number as u64, step));
        ends.push(bytes.len());
    }
    (bytes, ends)
}

/// What is held after these steps under `boot`, said another way: a block counts when it was synced
/// ever, or written since the machine was started.
fn wanted(steps: &[Step], boot: BootId) -> Vec<u32> {
    let is_other = |step: &Step| matches!(step, Opened(opened) if *opened != boot);
    let is_opened = |step: &Step| matches!(step, Opened(_));
    // The first opening after the last one under another boot id.
    let from = steps.iter().rposition(is_other).map_or(0, |other| other + 1);
    let since = steps[from..].iter().position(is_opened).map_or(steps.len(), |at| from + at);
    let mut held: Vec<u32> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match *step {
            Synced(blocks) => held.extend(blocks),
            Written(block) if at >= since && boot.is_some() => held.push(block),
            _ => {}
        }
    }
    held.sort_unstable();
    held.dedup();
    held
}

fn held(decoded: &Decoded) -> Vec<u32> {
    let mut held: Vec<u32> = decoded.synced.iter().chain(decoded.written.iter()).collect();
    held.sort_unstable();
    held.dedup();
    held
}

#[test]
fn what_was_written_counts_while_the_machine_runs_and_what_was_synced_for_ever() {
    let (bytes, _) = record_of(&STEPS);
    let synced = [0, 1, 2, 20, 21, 30, 31, 32];
    assert_eq!(held(&decode(&bytes, BOOT).unwrap()), [&synced[..], &[40]].concat());
    assert_eq!(held(&decode(&bytes, OTHER_BOOT).unwrap()), synced);
    assert_eq!(held(&decode(&bytes, None).unwrap()), synced, "nobody knows");
    let (bytes, _) = record_of(&[Opened(None), Written(5), Synced(&[6]), Written(7)]);
    assert_eq!(held(&decode(&bytes, None).unwrap()), [6], "nobody knew");
}

#[test]
fn what_a_power_loss_disowned_is_not_claimed_again_by_who_comes_later() {
    let steps = [Opened(OTHER_BOOT), Written(5), Opened(BOOT), Opened(OTHER_BOOT), Opened(BOOT)];
    for len in 3..=steps.len() {
        let (bytes, _) = record_of(&steps[..len]);
        for boot in [BOOT, OTHER_BOOT] {
            assert_eq!(held(&decode(&bytes, boot).unwrap()), [0u32; 0]);
        }
    }
}

#[test]
fn what_a_failed_sync_disowned_is_not_claimed_by_the_next_process() {
    let file = tempfile::tempfile().unwrap();
    let (bytes, _) = record_of(&[Opened(BOOT), Written(4), Synced(&[3])]);
    file.write_all_at(&bytes, 0).unwrap();
    let decoded = decode(&bytes, BOOT).unwrap();
    let mut record = Record::resume(file.try_clone().unwrap(), &decoded, BOOT).unwrap();
    record.claim_written(5).unwrap();
    assert_eq!(held(&decode(&all(&file), BOOT).unwrap()), [3, 4, 5]);
    record.disown_written().unwrap();
    assert_eq!(held(&decode(&all(&file), BOOT).unwrap()), [3]);
}

fn all(file: &File) -> Vec<u8> {
    let mut all = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut all, 0).unwrap();
    all
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_and_claims_no_block_of_an_incomplete_entry() {
    let (bytes, ends) = record_of(&STEPS);
    for (cut, boot) in (0..=bytes.len()).flat_map(|cut| [BOOT, OTHER_BOOT, None].map(|b| (cut, b)))
    {
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        match decode(&bytes[..cut], boot) {
            None => assert_eq!(whole, 0, "cut at {cut}"),
            Some(decoded) => {
                assert_eq!(decoded.len as usize, ends[whole - 1], "cut at {cut}");
                assert_eq!(held(&decoded), wanted(&STEPS[..whole - 1], boot), "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_torn_claim_of_what_is_synced_leaves_what_was_written_to_a_kill_and_takes_it_in_a_power_loss() {
    let steps = [Opened(BOOT), Written(1), Written(2), Synced(&[1, 2])];
    let (bytes, ends) = record_of(&steps);
    for cut in ends[3]..ends[4] {
        assert_eq!(held(&decode(&bytes[..cut], BOOT).unwrap()), [1, 2], "cut at {cut}");
        assert_eq!(held(&decode(&bytes[..cut], OTHER_BOOT).unwrap()), [0u32; 0], "cut at {cut}");
    }
    assert_eq!(held(&decode(&bytes, OTHER_BOOT).unwrap()), [1, 2]);
}

#[test]
fn a_tail_of_zeros_as_a_power_loss_leaves_it_is_cut() {
    let (bytes, ends) = record_of(&STEPS);
    for whole in 1..ends.len() {
        let mut torn = bytes[..ends[whole - 1]].to_vec();
        torn.resize(bytes.len() + 100, 0);
        let decoded = decode(&torn, OTHER_BOOT).unwrap();
        assert_eq!(decoded.len as usize, ends[whole - 1]);
        assert_eq!(held(&decoded), wanted(&STEPS[..whole - 1], OTHER_BOOT));
    }
}

#[test]
fn a_flipped_bit_never_adds_a_claim() {
    let (bytes, ends) = record_of(&STEPS);
    for bit in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let Some(decoded) = decode(&wrong, BOOT) else {
            assert!(bit / 8 < ends[0]);
            continue;
        };
        let before = ends.iter().filter(|&&end| end <= bit / 8).count() - 1;
        assert_eq!(held(&decoded), wanted(&STEPS[..before], BOOT), "bit {bit}");
    }
}

#[test]
fn entries_in_another_place_or_beyond_the_content_claim_nothing() {
    let (head, _) = record_of(&[Opened(BOOT)]);
    for step in [Written(1), Synced(&[1])] {
        let bytes = [&head[..], &encode(2, &step)].concat();
        assert_eq!(held(&decode(&bytes, BOOT).unwrap()), [0u32; 0]);
    }
    for step in [Written(100), Synced(&[99, 100])] {
        let bytes = [&head[..], &encode(1, &step)].concat();
        assert_eq!(held(&decode(&bytes, BOOT).unwrap()), [0u32; 0]);
    }
}

#[test]
fn appending_after_a_torn_tail_keeps_all_claims() {
    let (bytes, ends) = record_of(&STEPS);
    for cut in ends[0]..bytes.len() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes[..cut], 0).unwrap();
        let decoded = decode(&bytes[..cut], BOOT).unwrap();
        let mut record = Record::resume(file.try_clone().unwrap(), &decoded, BOOT).unwrap();
        record.claim_written(70).unwrap();
        let _ = record.claim_synced(&mut vec![61, 60, 61]).unwrap();
        record.claim_written(71).unwrap();
        let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
        let mut expected = wanted(&STEPS[..whole], BOOT);
        expected.extend([60, 61, 70, 71]);
        assert_eq!(held(&decode(&all(&file), BOOT).unwrap()), expected);
    }
}

#[test]
fn the_bytes_are_what_they_were_in_version_2() {
    let bytes = claim(KIND_SYNCED, 0, &[0..3, 9..10]);
    assert_eq!(bytes[..21], [1, 16, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0]);
    assert_eq!(bytes[21..], blake3::hash(&[&[0; 8], &bytes[..21]].concat()).as_bytes()[..8]);
    assert_eq!(encode(0, &Written(3))[..13], [2, 8, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(opened(0, BOOT)[..7], [3, 16, 0, 0, 0, 77, 0]);
    let head = header(&info(100));
    assert_eq!(&head[..8], b"ABrecrd2");
    assert_eq!(head[12..head.len() - 16], info(100).encode());
}

#[test]
fn a_record_of_another_version_is_told_from_one_that_is_torn() {
    let (mut bytes, _) = record_of(&STEPS);
    assert!(!is_of_another_version(&bytes));
    assert!(!is_of_another_version(&bytes[..7]));
    bytes[7] = b'1';
    assert!(is_of_another_version(&bytes));
    assert!(decode(&bytes, BOOT).is_none());
}

#[test]
fn the_machine_says_what_this_boot_is_called() {
    assert!(boot_id().is_some());
    assert_eq!(boot_id(), boot_id());
}

proptest! {
    #[test]
    fn no_bytes_panic_the_decoder(
        tail in prop::collection::vec(any::<u8>(), 0..300), with_header in any::<bool>(),
    ) {
        let mut bytes = if with_header { header(&info(100)) } else { Vec::new() };
        bytes.extend_from_slice(&tail);
        if let Some(decoded) = decode(&bytes, BOOT) {
            prop_assert!(decoded.len as usize <= bytes.len());
            prop_assert!(held(&decoded).len() <= 100);
        }
    }
}
