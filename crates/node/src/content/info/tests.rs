use super::*;
use aws_lc_rs::signature::KeyPair;
use proptest::prelude::*;

fn key(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn peer(key: &Ed25519KeyPair) -> PeerId {
    PeerId(key.public_key().as_ref().try_into().unwrap())
}

fn file_info() -> GroupInfo {
    GroupInfo {
        version: VERSION,
        root: [1; 32],
        kind: Kind::File {
            name: b"a b\xff".to_vec(),
            len: 40_000,
            mode: 0o644,
            mtime: Mtime { seconds: 300, nanos: 4 },
        },
        block_size: 16384,
        blocks: 3,
        system: System::Star,
        source: peer(&key(1)),
    }
}

fn directory_info() -> GroupInfo {
    let kind = Kind::Directory {
        name: b"dir".to_vec(),
        manifest_len: 100,
        total_len: 100_000,
        files: 7,
        mode: 0o755,
        mtime: Mtime::default(),
    };
    GroupInfo { kind, blocks: 8, ..file_info() }
}

#[test]
fn signed_parameters_open_with_the_right_key_and_root_only() {
    for info in [file_info(), directory_info()] {
        let signed = info.sign(&key(1));
        assert!(signed.len() <= SIGNED_LEN_MAX);
        let open = |source: u8, root| GroupInfo::open(&signed, &peer(&key(source)), root);
        assert_eq!(open(1, &[1; 32]), Ok(info.clone()));
        assert_eq!(open(2, &[1; 32]), Err(InfoError::Signature));
        assert_eq!(open(1, &[2; 32]), Err(InfoError::OtherContent));
        // Another key may sign, but not in the source's name.
        let forged = info.sign(&key(2));
        assert!(GroupInfo::open(&forged, &peer(&key(1)), &[1; 32]).is_err());
        assert!(GroupInfo::open(&forged, &peer(&key(2)), &[1; 32]).is_err());
    }
}

#[test]
fn any_flipped_bit_is_refused() {
    let signed = file_info().sign(&key(1));
    for bit in 0..signed.len() * 8 {
        let mut wrong = signed.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(GroupInfo::open(&wrong, &peer(&key(1)), &[1; 32]).is_err(), "bit {bit}");
    }
}

#[test]
fn parameters_that_contradict_themselves_are_refused() {
    let file = |change: fn(&mut GroupInfo)| {
        let mut info = file_info();
        change(&mut info);
        info.check()
    };
    assert_eq!(file(|_| ()), Ok(()));
    assert!(file(|info| info.blocks = 4).is_err());
    assert!(file(|info| info.blocks = 2).is_err());
    assert!(file(|info| info.block_size = 20_000).is_err());
    assert!(file(|info| info.block_size = 8192).is_err());
    assert!(file(|info| info.block_size = 16 << 20).is_err());
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0", &[b'x'; 256]] {
        let mut info = file_info();
        if let Kind::File { name: own, .. } = &mut info.kind {
            *own = name.to_vec();
        }
        assert!(info.check().is_err(), "{name:?}");
    }
    let directory = |change: fn(&mut GroupInfo)| {
        let mut info = directory_info();
        change(&mut info);
        info.check()
    };
    assert_eq!(directory(|_| ()), Ok(()));
    assert!(directory(|info| info.blocks = 0).is_err());
    assert!(directory(|info| info.blocks = BLOCKS_MAX + 1).is_err());
    assert!(directory(|info| info.blocks = 100_002).is_err());
}

#[test]
fn a_later_version_gets_its_own_sentence() {
    let mut body = file_info().encode();
    body[0] = 2;
    assert_eq!(GroupInfo::decode(&body), Err(InfoError::Version(2)));
}

#[test]
fn the_bytes_are_what_they_were_in_version_1() {
    let mut golden = vec![1];
    golden.extend([1; 32]);
    golden.extend([0, 4, b'a', b' ', b'b', 255, 192, 184, 2, 164, 3, 216, 4, 4]);
    golden.extend([128, 128, 1, 3, 1]);
    golden.extend(peer(&key(1)).0);
    assert_eq!(file_info().encode(), golden);
    let mut golden = vec![1];
    golden.extend([1; 32]);
    golden.extend([1, 3, b'd', b'i', b'r', 100, 160, 141, 6, 7, 237, 3, 0, 0]);
    golden.extend([128, 128, 1, 8, 1]);
    golden.extend(peer(&key(1)).0);
    assert_eq!(directory_info().encode(), golden);
}

proptest! {
    #[test]
    fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = GroupInfo::decode(&bytes);
        let _ = GroupInfo::decode(&[&[1][..], &bytes].concat());
        let _ = GroupInfo::open(&bytes, &peer(&key(1)), &[1; 32]);
    }
}
