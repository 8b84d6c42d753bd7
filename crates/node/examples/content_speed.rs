//! How fast contents are hashed, read and stored, against the floor of the same work without any
//! of our code: `cargo run --release -p anabranch-node --example content_speed -- DIR [MIB]`, or
//! `... -- DIR sparse GIB` for the memory that a scan of a sparse file takes.
//!
//! DIR is best in memory (`/dev/shm`), where copying and hashing show and not the disk. Figures are
//! bytes per CPU-second (a thread on a shared machine waits for others), elapsed time beside them.

use anabranch_node::content::{GroupInfo, Scan, ScanOptions};
use anabranch_node::store::Store;
use anabranch_proto::id::PeerId;
use anabranch_proto::overlay::System;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::error::Error;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (dir, job) = args.split_first().ok_or("usage: content_speed DIR [MIB | sparse GIB]")?;
    let dir = Path::new(dir).join(format!("content-speed-{}", std::process::id()));
    fs::create_dir(&dir)?;
    let done = match job {
        [] => measure(&dir, 1024),
        ["sparse", gib] => measure_sparse(&dir, gib.parse()?),
        [mib, ..] => measure(&dir, mib.parse()?),
    };
    fs::remove_dir_all(&dir)?;
    done
}

fn measure(dir: &Path, mib: usize) -> Result<()> {
    let len = mib << 20;
    let path = dir.join("source");
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(b"content speed").finalize_xof().fill(&mut bytes);
    fs::write(&path, &bytes)?;
    for round in 0..3 {
        println!("round {round}, {mib} MiB");
        floor(&path, &dir.join("floor"), len)?;
        let floor = rate("floor: pread 64 KiB + blake3 + pwrite", len, || {
            floor(&path, &dir.join("floor"), len)
        })?;
        let hash = rate("blake3 of units alone", len, || {
            bytes.chunks(65536).for_each(|unit| _ = std::hint::black_box(blake3::hash(unit)));
            Ok(())
        })?;
        let mut scanned = None;
        let scan = rate("scan (two threads)", len, || {
            scanned = Some(scan(&path)?);
            Ok(())
        })?;
        let scanned = scanned.ok_or("the scan gave nothing")?;
        let info = scanned.info(System::Star, PeerId([7; 32]));
        let source = Store::source(scanned, info.clone());
        rate("send side: proof + read_at 256 KiB", len, || send(&source, &info))?;
        for portion in [16 << 10, 64 << 10] {
            let out = dir.join("out");
            let sink = Store::receive(info.clone(), &out, true, &|_, _| ControlFlow::Continue(()))?;
            // What is first touched is memory the kernel has to find and clear: not ours to measure.
            touch(&out, len)?;
            let what = format!("through both: read_at 64 KiB, written by {} KiB", portion >> 10);
            let through = rate(&what, len, || pass_on(&source, &sink, portion))?;
            println!("   {:.2} of the floor", through / floor);
            drop(sink);
            fs::remove_dir_all(out)?;
        }
        println!("   scan {:.2} of hashing alone", scan / hash);
    }
    Ok(())
}

/// What any program must do to store verified bytes, and nothing else.
fn floor(from: &Path, to: &Path, len: usize) -> Result<()> {
    let (from, to) =
        (File::open(from)?, File::options().create(true).truncate(false).write(true).open(to)?);
    let mut buf = vec![0; 65536];
    for offset in (0..len as u64).step_by(65536) {
        from.read_exact_at(&mut buf, offset)?;
        std::hint::black_box(blake3::hash(&buf));
        to.write_all_at(&buf, offset)?;
    }
    Ok(())
}

fn scan(path: &Path) -> Result<Scan> {
    Ok(Scan::run(path, &ScanOptions::default(), &|_, _| ControlFlow::Continue(()))?)
}

fn send(source: &Store, info: &GroupInfo) -> Result<()> {
    let mut buf = vec![0; 256 << 10];
    let holdings = source.holdings();
    for block in 0..info.blocks {
        std::hint::black_box(source.proof(block)?);
        let len = holdings.block_len(block);
        for offset in (0..len).step_by(buf.len()) {
            let part = buf.len().min((len - offset) as usize);
            source.read_at(block, offset, &mut buf[..part])?;
        }
    }
    Ok(())
}

/// Moves everything from one store to another.
fn pass_on(source: &Store, sink: &Arc<Store>, portion: usize) -> Result<()> {
    while let Some(&id) = sink.missing_pages(1).first() {
        let _ = sink.accept_page(id, &source.page(id).ok_or("a page is missing")?)?;
    }
    let mut buf = vec![0; 64 << 10];
    let holdings = source.holdings();
    for block in 0..source.info().blocks {
        let len = holdings.block_len(block);
        let mut writer = sink.begin(block, len, &source.proof(block)?)?;
        for offset in (0..len).step_by(buf.len()) {
            let bytes = &mut buf[..(64 << 10).min((len - offset) as usize)];
            source.read_at(block, offset, bytes)?;
            for portion in bytes.chunks(portion) {
                writer.write(portion)?;
            }
        }
        let _ = writer.finish()?;
    }
    Ok(())
}

/// Writes the working directory's file once.
fn touch(dir: &Path, len: usize) -> Result<()> {
    let work = fs::read_dir(dir)?.flatten().find(|item| item.path().is_dir());
    let data = work.ok_or("no working directory")?.path().join("data");
    let file = File::options().write(true).open(data)?;
    let zeros = vec![0; 1 << 20];
    for offset in (0..len as u64).step_by(zeros.len()) {
        file.write_all_at(&zeros, offset)?;
    }
    Ok(())
}

fn measure_sparse(dir: &Path, gib: u64) -> Result<()> {
    let path = dir.join("sparse");
    File::create(&path)?.set_len(gib << 30)?;
    let scanned = rate("scan of a sparse file, two threads", (gib << 30) as usize, || {
        let scanned = scan(&path)?;
        let info = scanned.info(System::Star, PeerId([7; 32]));
        send(&Store::source(scanned, info.clone()), &info)
    });
    println!("{gib} GiB scanned and read once more, peak resident {} KiB", peak_rss_kib()?);
    scanned.map(|_| ())
}

fn peak_rss_kib() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Runs `work` and prints its rate; returns GB per CPU-second.
fn rate(what: &str, len: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    work()?;
    let rate = len as f64 / (cpu_seconds()? - cpu) / 1e9;
    let elapsed = len as f64 / start.elapsed().as_secs_f64() / 1e9;
    println!("{rate:7.2} GB/CPU-s {elapsed:7.2} GB/s  {what}");
    Ok(rate)
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
