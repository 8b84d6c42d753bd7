//! Randomness as protocols see it: a generator per (run seed, node name, purpose), so that adding
//! a node, or a new use of chance in one module, changes nobody else's numbers.

pub use rand::RngExt;
use rand::SeedableRng;

/// The one generator of the project: small, fast, and the same on every platform.
pub type Rng = rand_pcg::Pcg64;

/// The generator of `node` for `purpose` in the run `seed`.
pub fn stream(seed: u64, node: &str, purpose: &str) -> Rng {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&(node.len() as u64).to_le_bytes());
    hasher.update(node.as_bytes());
    hasher.update(purpose.as_bytes());
    Rng::from_seed(*hasher.finalize().as_bytes())
}

/// A uniformly random index below `len`; `len` must not be zero.
pub fn below(rng: &mut Rng, len: usize) -> usize {
    rng.random_range(0..len)
}

/// Shuffles in place (Fisher-Yates).
pub fn shuffle<T>(rng: &mut Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_node_and_purpose_and_on_nothing_else() {
        let draw = |seed, node: &str, purpose: &str| stream(seed, node, purpose).random::<u64>();
        assert_eq!(draw(1, "a", "x"), draw(1, "a", "x"));
        assert_ne!(draw(1, "a", "x"), draw(2, "a", "x"));
        assert_ne!(draw(1, "a", "x"), draw(1, "b", "x"));
        assert_ne!(draw(1, "a", "x"), draw(1, "a", "y"));
        assert_ne!(draw(1, "ab", "c"), draw(1, "a", "bc"));
    }
}
