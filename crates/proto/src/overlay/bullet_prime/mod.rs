//! Bullet′.
use super::*;
/// Parameters.
#[derive(Clone, Debug, Default)]
pub struct Config {}
/// Member.
pub struct BulletPrime {
    inner: super::star::Star,
}
impl BulletPrime {
    /// New.
    pub fn new(setup: Setup, _config: Config) -> BulletPrime {
        BulletPrime { inner: super::star::Star::new(setup) }
    }
}
impl Overlay for BulletPrime {
    fn handle(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        self.inner.handle(ctx, input)
    }
    fn next_deadline(&self) -> Option<Time> {
        self.inner.next_deadline()
    }
    fn stats(&self) -> &Stats {
        self.inner.stats()
    }
    fn check_invariants(&self, h: &Holdings) -> Result<(), String> {
        self.inner.check_invariants(h)
    }
    fn contacts(&self) -> Vec<PeerInfo> {
        self.inner.contacts()
    }
}
