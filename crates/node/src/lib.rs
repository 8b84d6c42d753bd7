//! anabranch on real machines: identity, tickets, secure links, content and stores, on tokio.
//!
//! A [`Node`] listens on one port for any number of groups. [`Node::share`] makes a file or a
//! directory available and gives its [`Group`]; [`Node::fetch`] joins the group that a [`Ticket`]
//! names, fetches and verifies its content and serves it to others meanwhile.
//!
//! Where to look:
//! - [`node`], [`group`]: what applications use, and the driver of one member ([`group`]);
//! - [`ticket`], [`identity`], [`address`]: names, keys and places;
//! - [`link`]: one encrypted connection between two peers, the hot path.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod address;
pub mod config;
pub mod error;
pub mod event;
pub mod group;
pub mod identity;
pub mod node;
pub mod ticket;

pub use anabranch_proto::overlay::{Outcome, System};
pub use config::{FetchOptions, NodeConfig, ShareOptions};
pub use error::{BindError, ErrorKind, FetchError, GroupError, ShareError};
pub use event::{Event, Progress};
pub use group::Group;
pub use node::Node;
pub use ticket::{Ticket, TicketError};
