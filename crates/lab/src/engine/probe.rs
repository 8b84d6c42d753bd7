//! A run's capture and trace: one file each, of bounded size, complete or not there at all.

use super::{RunError, choose};
use crate::scenario::Experiment;
use crate::scenario::source::Fault;
use anabranch_proto::transport;
use anabranch_world::net::{Network, pcap, trace};
use anabranch_world::topology::{LinkIx, Topology};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The files that a run of `experiment` leaves beside its outcome; `stem` is their path without
/// the ending.
pub fn files(experiment: &Experiment, stem: &Path) -> Vec<PathBuf> {
    let measure = &experiment.measure;
    let wanted = [(!measure.pcap.is_empty(), "pcap"), (measure.trace, "jsonl")];
    wanted.iter().filter(|(is, _)| *is).map(|(_, ending)| with(stem, ending)).collect()
}

/// Checks that the links there are to look at exist.
pub(super) fn check(
    experiment: &Experiment,
    topology: &Topology,
    sampled: &[LinkIx],
) -> Result<(), Fault> {
    let measure = &experiment.measure;
    choose::links(topology, &measure.pcap, &measure.span)?;
    if measure.trace && sampled.is_empty() {
        let text = format!(
            "a trace of all {} links would be too large; name some of them in `links`",
            topology.links.len()
        );
        return Err(Fault::new(&measure.span, text));
    }
    Ok(())
}

/// The files of a run under way; what was not finished is removed.
#[derive(Debug, Default)]
pub(super) struct Probes {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    /// What the scalar is called that says whether the file was cut.
    scalar: &'static str,
    path: PathBuf,
    partial: PathBuf,
    is_cut: Arc<AtomicBool>,
}

impl Probes {
    /// Opens what the experiment asks for, and lets it look on. Without a `stem` nothing is
    /// written.
    pub(super) fn open(
        experiment: &Experiment,
        topology: &Topology,
        traced: &[LinkIx],
        stem: Option<&Path>,
        network: &mut Network<transport::Packet>,
    ) -> Result<Probes, RunError> {
        let measure = &experiment.measure;
        let mut probes = Probes::default();
        let Some(stem) = stem else { return Ok(probes) };
        if !measure.pcap.is_empty() {
            let links = choose::links(topology, &measure.pcap, &measure.span)
                .map_err(|fault| RunError::Failed(fault.text))?;
            let out = probes.file("pcap_cut", with(stem, "pcap"), measure.file_limit)?;
            let capture = pcap::Capture::new(out, &links);
            network.observe(Box::new(capture.map_err(|error| cannot(stem, &error))?));
        }
        if measure.trace {
            let out = probes.file("trace_cut", with(stem, "jsonl"), measure.file_limit)?;
            let trace = trace::Trace::new(out, topology, traced);
            network.observe(Box::new(trace.map_err(|error| cannot(stem, &error))?));
        }
        Ok(probes)
    }

    fn file(
        &mut self,
        scalar: &'static str,
        path: PathBuf,
        limit: u64,
    ) -> Result<Bounded, RunError> {
        let partial = with(&path, "partial");
        let make = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            File::create(&partial)
        };
        let file = make().map_err(|error| cannot(&path, &error))?;
        let is_cut = Arc::new(AtomicBool::new(false));
        self.open.push(Open { scalar, path, partial, is_cut: Arc::clone(&is_cut) });
        Ok(Bounded { out: BufWriter::new(file), left: limit, is_cut })
    }

    /// The run is over: the files get their names. Returns a scalar per file: 1 when it was cut.
    pub(super) fn finish(
        mut self,
        network: &mut Network<transport::Packet>,
    ) -> Result<Vec<(&'static str, f64)>, RunError> {
        let Some(first) = self.open.first() else { return Ok(Vec::new()) };
        network.finish_observers().map_err(|error| cannot(&first.path, &error))?;
        let mut cut = Vec::new();
        for open in &self.open {
            fs::rename(&open.partial, &open.path).map_err(|error| cannot(&open.path, &error))?;
            cut.push((open.scalar, f64::from(u8::from(open.is_cut.load(Ordering::Relaxed)))));
        }
        self.open.clear();
        Ok(cut)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for open in &self.open {
            let _ = fs::remove_file(&open.partial);
        }
    }
}

/// Takes whole writes until one would pass the limit, and nothing after it: the observers write a
/// packet or a line at once.
#[derive(Debug)]
struct Bounded {
    out: BufWriter<File>,
    left: u64,
    is_cut: Arc<AtomicBool>,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len() as u64;
        if len > self.left {
            self.is_cut.store(true, Ordering::Relaxed);
            self.left = 0;
        } else {
            self.out.write_all(bytes)?;
            self.left -= len;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A path with a further ending, whatever dots it has.
fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn cannot(path: &Path, error: &io::Error) -> RunError {
    RunError::Failed(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests;
