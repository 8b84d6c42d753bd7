//! The hash pages a partial content has, in the order they came: `tree: u32, page: u32,
//! length: u32, bytes` each, little endian. Pages need no checksum: each is checked against what
//! is above it when it is read again. What follows the last whole page is cut.

use crate::content::PageId;
use crate::content::tree::PAGE_LEN_MAX;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A page and its name.
pub(crate) type Page = (PageId, Vec<u8>);

/// The log, open for appending.
#[derive(Debug)]
pub(crate) struct PageLog {
    file: Arc<File>,
    len: u64,
    /// Whether something may not be on disk.
    is_unsynced: bool,
}

impl PageLog {
    /// Reads the log and cuts its torn tail.
    pub(crate) fn open(mut file: File) -> io::Result<(PageLog, Vec<Page>)> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (pages, len) = decode(&bytes);
        file.set_len(len)?;
        // Another process may have been killed before it synced them.
        let is_unsynced = len > 0;
        Ok((PageLog { file: Arc::new(file), len, is_unsynced }, pages))
    }

    /// Appends a page, with one write.
    pub(crate) fn append(&mut self, id: PageId, page: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(12 + page.len());
        for number in [id.tree, id.page, page.len() as u32] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(page);
        self.file.write_all_at(&bytes, self.len)?;
        self.len += bytes.len() as u64;
        self.is_unsynced = true;
        Ok(())
    }

    /// The file, if it is to be synced: the caller does that.
    pub(crate) fn take_unsynced(&mut self) -> Option<Arc<File>> {
        std::mem::take(&mut self.is_unsynced).then(|| Arc::clone(&self.file))
    }
}

/// The whole pages, and how many bytes they take.
fn decode(bytes: &[u8]) -> (Vec<Page>, u64) {
    let mut pages = Vec::new();
    let mut rest = bytes;
    while let Some((head, next)) = rest.split_first_chunk::<12>() {
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let len = number(8) as usize;
        let Some((page, next)) = next.split_at_checked(len) else { break };
        if len == 0 || len > PAGE_LEN_MAX {
            break;
        }
        pages.push((PageId { tree: number(0), page: number(4) }, page.to_vec()));
        rest = next;
    }
    (pages, (bytes.len() - rest.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_panic_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (pages, len) = decode(&bytes);
            prop_assert!(len as usize <= bytes.len());
            prop_assert!(pages.len() <= bytes.len() / 12);
        }

        #[test]
        fn a_torn_tail_is_cut_and_whole_pages_stay(cut in 0usize..400) {
            let file = tempfile::tempfile()?;
            let (mut log, none) = PageLog::open(file.try_clone()?)?;
            prop_assert!(none.is_empty());
            let page = |at: u32| (PageId { tree: at, page: 0 }, vec![at as u8; 96]);
            for (id, bytes) in (1..=3).map(page) {
                log.append(id, &bytes)?;
            }
            file.set_len(cut.min(324) as u64)?;
            let mut file = file;
            io::Seek::rewind(&mut file)?;
            let (_, pages) = PageLog::open(file)?;
            prop_assert_eq!(pages, (1..=cut.min(324) as u32 / 108).map(page).collect::<Vec<_>>());
        }
    }
}
