//! What a scan found, kept beside its unit values in the state directory, so that a restarted
//! source need not hash an unchanged content again.
//!
//! `scans/KEY.units` is the [`Outboard`], `scans/KEY.scan` the block values (and a directory's
//! manifest) with a checksum. The key covers all that the file system says of the content: path,
//! length, times, inode, block size. Unit values have no checksum: a store checks each proof before
//! it gives it away.

use super::files::mtime_of;
use super::outboard::Outboard;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAGIC: &[u8; 8] = b"ABscan 1";
/// How many scans are kept.
const KEPT_MAX: usize = 64;
/// A file whose time is this close to the scan may still change within the same tick of the file
/// system's clock: such a scan is not kept.
const TICK: Duration = Duration::from_millis(20);

/// What tells one state of a content from all others.
pub(crate) struct Key {
    hasher: blake3::Hasher,
    newest: (i64, i64),
}

/// What a scan found.
pub(crate) struct Cached {
    /// Per block its value.
    pub(crate) values: Vec<[u8; 32]>,
    /// A directory's manifest.
    pub(crate) manifest: Vec<u8>,
}

/// The place of one scan in the state directory.
pub(crate) struct Kept {
    /// Where unit values are.
    pub(crate) outboard: Outboard,
    found: Option<Cached>,
    place: Option<KeepPlace>,
}

/// Where a scan under way will be kept; dropped before that, its unit values go.
struct KeepPlace {
    dir: PathBuf,
    name: String,
    /// The unit values until the scan is done.
    units: PathBuf,
}

impl Key {
    /// Of the content at `path`.
    pub(crate) fn new(path: &Path, block_size: u32) -> Key {
        let mut hasher = blake3::Hasher::new();
        hasher.update(MAGIC).update(&block_size.to_le_bytes());
        let mut key = Key { hasher, newest: (0, 0) };
        key.add_bytes(path.as_os_str().as_bytes());
        key
    }

    /// Adds one file or directory.
    pub(crate) fn add(&mut self, path: &[u8], metadata: &Metadata) {
        self.add_bytes(path);
        let mtime = mtime_of(metadata);
        for number in [metadata.dev(), metadata.ino(), metadata.len(), metadata.mode().into()] {
            self.hasher.update(&number.to_le_bytes());
        }
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        for time in [mtime.seconds, mtime.nanos.into(), changed.0, changed.1] {
            self.hasher.update(&time.to_le_bytes());
        }
        self.newest = self.newest.max(changed);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }

    fn name(&self) -> String {
        self.hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Whether what the key says cannot hide a later change.
    fn is_safe(&self) -> bool {
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else { return false };
        let (seconds, nanos) = self.newest;
        let newest = Duration::new(seconds.max(0) as u64, nanos.clamp(0, 999_999_999) as u32);
        // No fraction of a second: a file system that keeps whole ones only.
        let tick = if nanos == 0 { Duration::from_secs(2) } else { TICK };
        now.saturating_sub(newest) > tick
    }
}

impl Kept {
    /// Opens the place of `key` below `state_dir`; without one, unit values go to an unlinked
    /// temporary file.
    pub(crate) fn open(state_dir: Option<&Path>, key: Key, block_size: u32) -> io::Result<Kept> {
        let needed = Outboard::is_needed(block_size);
        let Some(state_dir) = state_dir else {
            let file = if needed { Some(unlinked(&std::env::temp_dir())?) } else { None };
            return Ok(Kept {
                outboard: Outboard::new(file, block_size),
                found: None,
                place: None,
            });
        };
        let dir = state_dir.join("scans");
        fs::create_dir_all(&dir)?;
        let name = key.name();
        if let Some((found, units)) = load(&dir, &name, needed) {
            let outboard = Outboard::new(units, block_size);
            return Ok(Kept { outboard, found: Some(found), place: None });
        }
        prune(&dir);
        if !key.is_safe() {
            let file = if needed { Some(unlinked(&dir)?) } else { None };
            return Ok(Kept {
                outboard: Outboard::new(file, block_size),
                found: None,
                place: None,
            });
        }
        let units = dir.join(format!("{name}.units.{}.tmp", unique()));
        let file = if needed { Some(create(&units)?) } else { None };
        let outboard = Outboard::new(file, block_size);
        Ok(Kept { outboard, found: None, place: Some(KeepPlace { dir, name, units }) })
    }

    /// What an earlier scan found.
    pub(crate) fn load(&mut self) -> Option<Cached> {
        self.found.take()
    }

    /// Keeps what was found. A failure only means that the next scan hashes again.
    pub(crate) fn save(&mut self, values: &[[u8; 32]], manifest: &[u8]) {
        let Some(place) = self.place.take() else { return };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(manifest.len() as u64).to_le_bytes());
        bytes.extend_from_slice(manifest);
        values.iter().for_each(|value| bytes.extend_from_slice(value));
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        if let Err(error) = place.save(&bytes) {
            tracing::warn!(%error, "the hashes could not be kept for a later start");
        }
    }
}

impl KeepPlace {
    fn save(&self, bytes: &[u8]) -> io::Result<()> {
        let (dir, name) = (&self.dir, &self.name);
        let scan = dir.join(format!("{name}.scan.{}.tmp", unique()));
        fs::write(&scan, bytes)?;
        if self.units.exists() {
            fs::rename(&self.units, dir.join(format!("{name}.units")))?;
        }
        fs::rename(&scan, dir.join(format!("{name}.scan")))
    }
}

impl Drop for KeepPlace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.units);
    }
}

fn load(dir: &Path, name: &str, needed: bool) -> Option<(Cached, Option<File>)> {
    let mut bytes = Vec::new();
    File::open(dir.join(format!("{name}.scan"))).ok()?.read_to_end(&mut bytes).ok()?;
    let units = match needed {
        true => Some(
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(dir.join(format!("{name}.units")))
                .ok()?,
        ),
        false => None,
    };
    let (body, checksum) = bytes.split_last_chunk::<32>()?;
    if blake3::hash(body).as_bytes() != checksum {
        return None;
    }
    let (magic, body) = body.split_first_chunk::<8>()?;
    let (manifest_len, body) = body.split_first_chunk::<8>()?;
    let (manifest, values) = body.split_at_checked(u64::from_le_bytes(*manifest_len) as usize)?;
    let (values, rest) = values.as_chunks::<32>();
    if magic != MAGIC || !rest.is_empty() {
        return None;
    }
    Some((Cached { values: values.to_vec(), manifest: manifest.to_vec() }, units))
}

/// Removes the oldest scans beyond [`KEPT_MAX`], and what a killed scan left a day ago.
fn prune(dir: &Path) {
    let Ok(items) = fs::read_dir(dir) else { return };
    let mut scans = Vec::new();
    for item in items.flatten() {
        let path = item.path();
        let Ok(age) = item.metadata().and_then(|metadata| metadata.modified()) else { continue };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("scan") => scans.push((age, path)),
            Some("tmp") if age.elapsed().is_ok_and(|age| age > Duration::from_secs(86_400)) => {
                let _ = fs::remove_file(path);
            }
            _ => {}
        }
    }
    scans.sort_unstable_by(|a, b| b.cmp(a));
    for (_, path) in scans.into_iter().skip(KEPT_MAX - 1) {
        let _ = fs::remove_file(path.with_extension("units"));
        let _ = fs::remove_file(path);
    }
}

/// A file without a name, gone with the process.
fn unlinked(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!("anabranch-units.{}.tmp", unique()));
    let file = create(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// A part of a file name that nobody else uses now.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}
