//! What holds for a run: flag before environment before configuration file before default.
//!
//! clap answers for the flag and the environment; this module reads the file and fills the gaps.

use crate::args::{Common, Network, Transport};
use crate::failure::Failure;
use crate::units;
use anabranch_node::{ErrorKind, NodeConfig};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The configuration file: every key is optional, an unknown one is an error.
#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    limit_up: Option<String>,
    limit_down: Option<String>,
    congestion: Option<String>,
    listen: Option<SocketAddr>,
    #[serde(default)]
    advertise: Vec<String>,
    linger: Option<String>,
}

impl File {
    /// Reads `$ANABRANCH_CONFIG`, else `anabranch/config.toml` in the user's configuration
    /// directory; that one need not exist.
    pub(crate) fn read() -> Result<File, Failure> {
        let named = std::env::var_os("ANABRANCH_CONFIG").map(PathBuf::from);
        let Some(path) = named.clone().or_else(path_default) else { return Ok(File::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => File::parse(&text)
                .map_err(|why| Failure::usage(format!("{}: {why}; correct it", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                Ok(File::default())
            }
            Err(error) => Err(Failure::usage(format!(
                "cannot read the configuration {}: {error}; check ANABRANCH_CONFIG and the \
                 file's permissions",
                path.display()
            ))),
        }
    }

    fn parse(text: &str) -> Result<File, String> {
        let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        // Looked at now, so that a wrong line is told of in every run.
        file.limit(&file.limit_up, "limit_up")?;
        file.limit(&file.limit_down, "limit_down")?;
        file.linger()?;
        Ok(file)
    }

    fn limit(&self, text: &Option<String>, key: &str) -> Result<Option<u64>, String> {
        let rate = text.as_deref().map(units::rate).transpose();
        rate.map_err(|error| format!("{key}: {error}"))
    }

    fn linger(&self) -> Result<Option<Duration>, String> {
        let time = self.linger.as_deref().map(units::seconds).transpose();
        time.map_err(|error| format!("linger: {error}"))
    }

    /// How long a receiver stays: `flag` when given.
    pub(crate) fn linger_or(&self, flag: Option<Duration>) -> Option<Duration> {
        flag.or_else(|| self.linger().ok().flatten())
    }

    /// The node's configuration for this run.
    pub(crate) fn node_config(
        &self,
        common: &Common,
        network: &Network,
    ) -> Result<NodeConfig, Failure> {
        if network.transport == Transport::Plt {
            return Err(Failure::new(
                ErrorKind::Capability,
                "this version has no PLT transport; leave --transport out",
            ));
        }
        let state_dir = NodeConfig::state_dir_default().ok_or_else(|| {
            Failure::storage("there is nowhere to keep keys; set HOME or XDG_STATE_HOME")
        })?;
        let mut config = NodeConfig::new(state_dir);
        config.listen = network.listen.or(self.listen);
        config.advertise = match network.advertise.is_empty() {
            true => self.advertise.clone(),
            false => network.advertise.clone(),
        };
        let limit = |flag: Option<u64>, text, key| match flag {
            Some(rate) => Ok(Some(rate)),
            None => self.limit(text, key).map_err(Failure::usage),
        };
        config.limit_up = limit(common.limit_up, &self.limit_up, "limit_up")?;
        config.limit_down = limit(common.limit_down, &self.limit_down, "limit_down")?;
        config.congestion = common.congestion.clone().or_else(|| self.congestion.clone());
        Ok(config)
    }
}

fn path_default() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .map(|dir| dir.join("anabranch/config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_comes_before_the_file_and_the_file_before_the_default() {
        let text = "limit_up = '1mbit'\nlisten = '127.0.0.1:4000'\nadvertise = ['a.example']\n";
        let file = File::parse(text).unwrap();
        let config = file.node_config(&Common::default(), &Network::default()).unwrap();
        assert_eq!(config.limit_up, Some(125_000));
        assert_eq!(config.limit_down, None);
        assert_eq!(config.listen, Some("127.0.0.1:4000".parse().unwrap()));
        let common = Common { limit_up: Some(7), ..Common::default() };
        let network = Network { advertise: vec!["b.example".into()], ..Network::default() };
        let config = file.node_config(&common, &network).unwrap();
        assert_eq!((config.limit_up, config.advertise), (Some(7), vec!["b.example".to_owned()]));
    }

    #[test]
    fn a_wrong_line_of_the_file_is_named() {
        assert!(File::parse("limitup = '1mbit'").unwrap_err().contains("limitup"));
        assert!(File::parse("limit_up = '1'").unwrap_err().contains("limit_up: \"1\" has no unit"));
        assert!(File::parse("linger = 'x'").unwrap_err().starts_with("linger: "));
    }

    #[test]
    fn plt_is_refused_as_a_missing_capability() {
        let network = Network { transport: Transport::Plt, ..Network::default() };
        let result = File::default().node_config(&Common::default(), &network);
        assert_eq!(result.unwrap_err().code, 8);
    }
}
