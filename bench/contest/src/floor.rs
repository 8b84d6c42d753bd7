//! What the job costs at the least: for each receiver one thread reads the file, seals it in TLS
//! sized AES-GCM records and writes them to a loopback TCP socket, and one opens them, hashes the
//! bytes with BLAKE3 and writes them to a file. No protocol, no choice, nobody waits for anybody.

use crate::job::{Figures, Job};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use nix::sys::resource::{UsageWho, getrusage};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Payload of one record, and what sealing adds to it.
const RECORD_LEN: usize = 16 * 1024;
const TAG_LEN: usize = 16;
/// Records sealed before they are written, and opened before they are hashed and stored.
const BATCH: usize = 16;

/// Runs all pairs at once.
pub(crate) fn run(job: &Job) -> Result<Figures, String> {
    let failed = |error: io::Error| format!("the floor could not be measured: {error}");
    let started = Instant::now();
    let cpu_before = cpu_seconds();
    let hashes = std::thread::scope(|scope| {
        let pairs: Vec<_> =
            (0..job.receivers()).map(|index| scope.spawn(move || pair(job, index))).collect();
        pairs.into_iter().map(join).collect::<io::Result<Vec<_>>>()
    });
    let wall_s = started.elapsed().as_secs_f64();
    let cpu_s = cpu_seconds() - cpu_before;
    if hashes.map_err(failed)?.iter().any(|hash| *hash != job.hash) {
        return Err("the floor delivered other bytes than it read".into());
    }
    Ok(Figures { wall_s, median_s: wall_s, cpu_s })
}

fn pair(job: &Job, index: usize) -> io::Result<blake3::Hash> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || send(TcpStream::connect(address)?, &job.content));
        let dir = job.receiver_dir("floor", index)?;
        let hash = receive(listener.accept()?.0, &dir.join("content"), job.len)?;
        join(sender)?;
        std::fs::remove_dir_all(dir)?;
        Ok(hash)
    })
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

fn send(mut socket: TcpStream, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let key = key()?;
    let mut batch = vec![0; BATCH * (RECORD_LEN + TAG_LEN)];
    let (mut offset, mut record) = (0, 0);
    loop {
        let mut filled = 0;
        for _ in 0..BATCH {
            let slot = &mut batch[filled..filled + RECORD_LEN + TAG_LEN];
            let len = file.read_at(&mut slot[..RECORD_LEN], offset)?;
            if len == 0 {
                break;
            }
            let (payload, rest) = slot.split_at_mut(len);
            let tag = key
                .seal_in_place_separate_tag(nonce(record), Aad::empty(), payload)
                .map_err(|_| io::Error::other("sealing failed"))?;
            rest[..TAG_LEN].copy_from_slice(tag.as_ref());
            offset += len as u64;
            record += 1;
            filled += len + TAG_LEN;
        }
        if filled == 0 {
            return Ok(());
        }
        socket.write_all(&batch[..filled])?;
    }
}

fn receive(mut socket: TcpStream, path: &Path, len: u64) -> io::Result<blake3::Hash> {
    let file = File::create(path)?;
    let key = key()?;
    let mut hasher = blake3::Hasher::new();
    let mut batch = vec![0; BATCH * (RECORD_LEN + TAG_LEN)];
    let mut plain = vec![0; BATCH * RECORD_LEN];
    let (mut offset, mut record) = (0, 0);
    while offset < len {
        let want = (len - offset).min((BATCH * RECORD_LEN) as u64) as usize;
        let records = want.div_ceil(RECORD_LEN);
        let sealed = &mut batch[..want + records * TAG_LEN];
        socket.read_exact(sealed)?;
        for (sealed, plain) in
            sealed.chunks_mut(RECORD_LEN + TAG_LEN).zip(plain[..want].chunks_mut(RECORD_LEN))
        {
            let (payload, tag) = sealed.split_at(plain.len());
            key.open_separate_gather(nonce(record), Aad::empty(), payload, tag, plain)
                .map_err(|_| io::Error::other("a record did not open"))?;
            record += 1;
        }
        hasher.update(&plain[..want]);
        file.write_all_at(&plain[..want], offset)?;
        offset += want as u64;
    }
    Ok(hasher.finalize())
}

fn key() -> io::Result<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]);
    key.map(LessSafeKey::new).map_err(|_| io::Error::other("the key was refused"))
}

fn nonce(record: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&record.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// User and system time of this process so far.
fn cpu_seconds() -> f64 {
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(0.0, |usage| seconds(usage.user_time()) + seconds(usage.system_time()))
}
