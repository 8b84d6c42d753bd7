//! anabranch on real machines: identity, tickets, secure links, content and stores, on tokio.
//!
//! A [`Node`] listens on one port for any number of groups. [`Node::share`] makes a file or a
//! directory available and gives its [`Group`]; [`Node::fetch`] joins the group that a [`Ticket`]
//! names, fetches and verifies its content and serves it to others meanwhile.
//!
//! Where to look:
//! - [`node`], [`group`]: what applications use, and the driver of one member;
//! - [`ticket`], [`identity`], [`address`]: names, keys and places;
//! - `tls`, `link`, `listen`, `dial`: one encrypted connection between two peers, the hot path;
//! - [`content`]: what is shared: a file or a directory, its identity, its blocks and their hashes;
//! - [`store`]: where a group's blocks are read from and written to, safe against crashes.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod address;
mod clock;
pub mod config;
pub mod content;
mod dial;
pub mod error;
pub mod event;
pub mod group;
pub mod identity;
mod limit;
mod link;
mod listen;
pub mod node;
mod registry;
mod state;
pub mod store;
pub mod ticket;
mod tls;

pub use anabranch_proto::overlay::{Outcome, System};
pub use config::{FetchOptions, NodeConfig, ShareOptions};
pub use error::{BindError, ErrorKind, FetchError, GroupError, ShareError};
pub use event::{Event, Progress};
pub use group::Group;
pub use node::Node;
pub use ticket::{Ticket, TicketError};
