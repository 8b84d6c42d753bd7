//! Manifests: what is accepted is canonical, or extended by a later version, and no path leaves
//! the directory.
#![no_main]

use anabranch_node::content::manifest::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(manifest) = Manifest::decode(bytes) {
        let written = manifest.encode();
        let again = Manifest::decode(&written);
        assert!(again.is_ok_and(|again| again.encode() == written));
    }
});
