//! `anabranch emu` as users run it: real namespaces, the kernel's TCP, ping and iperf3. Needs root and
//! these tools; what cannot run here says so.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and says where")]

mod lifecycle;
mod network;
mod stage;
