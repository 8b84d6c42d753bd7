//! Crashes and restarts.
use super::*;

#[test]
fn a_restart_goes_on_from_what_was_flushed() {
    let dir = TempDir::new().unwrap();
    let source = source(&shared_file(&dir, 1 << 20), BLOCK_SIZE_MIN);
    let out = dir.path().join("out");
    let sink = receiver(&source, &out).unwrap();
    fetch_pages(&source, &sink, &mut sink.holdings());
    (0..20).for_each(|block| _ = move_block(&source, &sink, block, 16384));
    sink.flush().unwrap();
    (20..30).for_each(|block| _ = move_block(&source, &sink, block, 16384));
    assert!(matches!(receiver(&source, &out), Err(OpenError::InUse { .. })));
    drop(sink);
    let sink = receiver(&source, &out).unwrap();
    assert!(sink.missing_pages(9).is_empty(), "pages are kept");
    assert_eq!(sink.holdings().held().iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    assert_eq!(sink.bytes_held(), 20 * 16384);
    assert_eq!(fetch(&source, &sink, 16384), 44);
    assert_eq!(fs::read(sink.finish().unwrap()).unwrap(), noise(1 << 20));
}
