//! The command line. What is here is what `--help` says and what others script against.

use crate::units;
use anabranch_node::System;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 other failure, 2 usage, 3 source or peers unreachable, 4 refused (wrong \
secret or key), 5 integrity, 6 local storage, 7 partial, 8 missing capability, 130 interrupted.";

/// One source's bytes to many receivers, as fast as the links between them allow.
///
/// One command makes a file or directory available and prints a ticket; the same ticket fetches it
/// on any number of other machines. Receivers serve each other, every byte is verified, every
/// link is encrypted, and there is nothing to tune.
#[derive(Parser)]
#[command(name = "anabranch", version, after_help = EXIT_CODES, after_long_help = MAIN_EXAMPLES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
}

const MAIN_EXAMPLES: &str = "\
Examples:
  anabranch send model.safetensors > ticket      # here; goes on serving until Ctrl-C
  anabranch get @ticket -o /data                 # on every other machine
  anabranch demo                                 # see it happen on this machine

Exit codes: 0 done, 1 other failure, 2 usage, 3 source or peers unreachable, 4 refused (wrong
secret or key), 5 integrity, 6 local storage, 7 partial, 8 missing capability, 130 interrupted.";

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a file or directory available and print its ticket.
    Send(SendArguments),
    /// Fetch what a ticket names, verify it, and serve it to others meanwhile.
    Get(GetArguments),
    /// Watch a file reach several receiver processes on this machine.
    Demo(DemoArguments),
    /// Run real programs on hosts joined by emulated links.
    Emu(EmuArguments),
    /// Compare systems in simulated networks: a scenario in, tables and a report out.
    Lab(crate::lab::LabArguments),
    /// Print the completions for a shell.
    #[command(after_help = "Example:\n  anabranch completions bash > \
                            ~/.local/share/bash-completion/completions/anabranch")]
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// What every command takes.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Print events as JSON on stdout, one object per line; the schema is in docs/cli.md.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing on stderr but errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log more on stderr; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Send at most this much in all, headers and encryption included [example: 155mbit, 20MB/s].
    #[arg(long, global = true, value_name = "RATE", env = "ANABRANCH_LIMIT_UP", value_parser = units::rate)]
    pub(crate) limit_up: Option<u64>,
    /// Receive at most this much in all.
    #[arg(long, global = true, value_name = "RATE", env = "ANABRANCH_LIMIT_DOWN", value_parser = units::rate)]
    pub(crate) limit_down: Option<u64>,
    /// The kernel's congestion control for the links, such as bbr [default: the system's].
    #[arg(long, global = true, value_name = "NAME", env = "ANABRANCH_CONGESTION")]
    pub(crate) congestion: Option<String>,
}

/// How a node meets the network.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Network options")]
pub(crate) struct Network {
    /// Listen here (ADDRESS:PORT) [default: port 27182 on every address, or the next free one].
    #[arg(long, value_name = "ADDR", env = "ANABRANCH_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,
    /// Tell others to dial this (`HOST` or `HOST:PORT`) instead of this machine's own addresses; may be
    /// given several times.
    #[arg(long, value_name = "ADDR", env = "ANABRANCH_ADVERTISE", value_delimiter = ',')]
    pub(crate) advertise: Vec<String>,
    /// What carries the links.
    #[arg(long, value_name = "NAME", value_enum, default_value_t)]
    pub(crate) transport: Transport,
}

/// What carries links between machines.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Transport {
    /// The kernel's TCP.
    #[default]
    Tcp,
    /// PLT, for long fat pipes; not in this version.
    #[value(hide = true)]
    Plt,
}

/// `anabranch send`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  anabranch send model.safetensors
  anabranch send images/ --ticket-file /srv/ticket --until-complete 8
  ANABRANCH_LIMIT_UP=500mbit anabranch send release.tar --advertise files.example.org

The ticket is the only thing on stdout. Whoever holds it can fetch the content and pass it on, so
hand it over as you would a password. The same PATH sent again keeps its old tickets valid.
With several paths each has its own ticket, one per line.")]
pub(crate) struct SendArguments {
    /// Files or directories; each is made available by itself.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Write the ticket to this file as well (readable by you only).
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// End when this many receivers have verified everything [default: go on until interrupted].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) until_complete: Option<u32>,
    /// Who sends to whom: bullet-prime (receivers serve each other) or star (only the source does).
    #[arg(long, value_name = "NAME", default_value = "bullet-prime", value_parser = offered_system)]
    pub(crate) system: System,
    /// The unit in which receivers ask for data, 16KiB to 8MiB [default: by the content's size].
    #[arg(long, value_name = "SIZE", value_parser = units::block_size)]
    pub(crate) block_size: Option<u32>,
    /// The network.
    #[command(flatten)]
    pub(crate) network: Network,
}

/// `anabranch get`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  anabranch get anabranch1:aeqcuy4k... -o /data
  anabranch get @ticket --linger 600         # serve others for ten more minutes
  ssh source cat ticket | anabranch get -

The final path is the only thing on stdout. The name appears when everything is there and
verified, not before. An interrupted fetch continues when the same command is run again.")]
pub(crate) struct GetArguments {
    /// The ticket itself, @FILE to read it from a file, or - for stdin.
    #[arg(value_name = "TICKET", env = "ANABRANCH_TICKET", hide_env_values = true)]
    pub(crate) ticket: String,
    /// Put the content into this directory, which is made when it is not there.
    #[arg(short, long = "output", value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
    /// Serve others for so long after everything is here [default: until interrupted on a
    /// terminal, 0 in a pipe].
    #[arg(long, value_name = "SECONDS", env = "ANABRANCH_LINGER", value_parser = units::seconds)]
    pub(crate) linger: Option<Duration>,
    /// Replace a different file or directory of the same name.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Accept no connections from others; peers are still served over those made from here.
    #[arg(long, conflicts_with_all = ["listen", "advertise"])]
    pub(crate) no_listen: bool,
    /// Keep this receiver's key in this file, made when it is not there [default: a new key].
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// The network.
    #[command(flatten)]
    pub(crate) network: Network,
}

/// `anabranch demo`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  anabranch demo
  anabranch demo --receivers 4 --size 1GiB
  anabranch demo ~/Downloads/debian.iso

A source and the receivers run as processes of their own, with real tickets, encryption and
sockets, in a directory that is removed at the end (under TMPDIR, which must have room for every
copy). Each copy is hashed again, independently, when all are there.")]
pub(crate) struct DemoArguments {
    /// What to send [default: a new file of random bytes].
    pub(crate) path: Option<PathBuf>,
    /// How many receivers.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) receivers: u32,
    /// The size of the new file.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = units::size, conflicts_with = "path")]
    pub(crate) size: u64,
    /// Who sends to whom: bullet-prime or star.
    #[arg(long, value_name = "NAME", default_value = "bullet-prime", value_parser = offered_system)]
    pub(crate) system: System,
}

/// `anabranch emu`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  anabranch emu dumbbell.toml -- ip netns exec left1 ping -c 5 right1
  anabranch emu mesh.toml --stats links.json -- ./experiment.sh
  anabranch emu dumbbell.toml        # until Ctrl-C; meanwhile: ip netns exec left1 bash

Each host of the topology is a network namespace of its name, in which the other hosts are known by
theirs. The command runs outside of them and finds their names in ANABRANCH_EMU_HOSTS. Everything is
removed at the end, with every process in the namespaces. Needs root and iproute2. What the
statistics say, and when a run is invalid: docs/emulator.md.")]
pub(crate) struct EmuArguments {
    /// The network: hosts, routers and links (docs/topologies.md).
    #[arg(value_name = "TOPOLOGY.toml")]
    pub(crate) topology: PathBuf,
    /// Write the statistics to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) stats: Option<PathBuf>,
    /// Put this before the hosts' names to name the namespaces, so that several networks can run
    /// at once [default: nothing].
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// What is random (loss, generated topologies) comes from this.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run this and end with it; its exit code is passed on.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// A system that real transfers run; rivals are for the simulator.
fn offered_system(name: &str) -> Result<System, String> {
    let offered = name.parse().ok().filter(|system: &System| system.is_offered());
    offered.ok_or_else(|| format!("unknown system {name:?}: bullet-prime or star"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_option_has_a_sentence_and_every_command_an_example() {
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{name} {}", argument.get_id());
            }
            let examples = command.get_after_long_help().or(command.get_after_help());
            assert!(examples.is_some_and(|text| text.to_string().contains("Example")), "{name}");
        }
    }

    #[test]
    fn common_options_may_stand_before_or_after_the_command() {
        for line in ["anabranch --json send x", "anabranch send x --json"] {
            let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
            assert!(arguments.common.json, "{line}");
        }
    }
}
