//! Random loss of one link: independent, or in bursts by a chain of two states.

use crate::topology::{Loss, LossModel, Side};
use anabranch_proto::random::{Rng, RngExt};

/// A link's loss with its generator. The chain begins in the good state.
#[derive(Debug)]
pub(crate) struct Dice {
    loss: Option<Loss>,
    is_bad: bool,
    rng: Rng,
}

impl Dice {
    pub(crate) fn new(loss: Loss, rng: Rng) -> Dice {
        Dice { loss: Some(loss), is_bad: false, rng }
    }

    /// Another loss of the same link, or none: the generator goes on, the chain begins anew.
    pub(crate) fn change(&mut self, loss: Option<Loss>) {
        (self.loss, self.is_bad) = (loss, false);
    }

    /// Whether the next packet is lost at a side of the queue. The chain moves first, once per
    /// packet (Gilbert 1960, Elliott 1963).
    pub(crate) fn is_lost(&mut self, side: Side) -> bool {
        let Some(loss) = self.loss.filter(|loss| loss.side == side) else { return false };
        let probability = match loss.model {
            LossModel::Independent { probability } => probability,
            LossModel::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let leave = if self.is_bad { to_good } else { to_bad };
                self.is_bad ^= self.rng.random::<f64>() < leave;
                if self.is_bad { loss_bad } else { loss_good }
            }
        };
        self.rng.random::<f64>() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::random;

    fn dice(model: LossModel) -> Dice {
        Dice::new(Loss { model, side: Side::Before }, random::stream(7, "a->b", "loss"))
    }

    #[test]
    fn independent_loss_has_its_mean_and_no_memory() {
        let mut dice = dice(LossModel::Independent { probability: 0.02 });
        let (mut lost, mut again, mut before) = (0.0, 0.0, false);
        for _ in 0..400_000 {
            let is_lost = dice.is_lost(Side::Before);
            lost += f64::from(is_lost);
            again += f64::from(is_lost && before);
            before = is_lost;
        }
        // Three standard deviations: 3 √(0.02 · 0.98 / 400,000) = 0.00066.
        assert!((lost / 400_000.0 - 0.02f64).abs() < 0.0007, "{lost}");
        assert!((again / lost - 0.02f64).abs() < 0.006, "{again} of {lost}");
    }

    #[test]
    fn gilbert_elliott_has_its_mean_loss_and_its_mean_burst() {
        let model = LossModel::GilbertElliott {
            to_bad: 0.01,
            to_good: 0.25,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut dice = dice(model);
        let (mut lost, mut bursts, mut before) = (0.0, 0.0, false);
        for _ in 0..1_000_000 {
            let is_lost = dice.is_lost(Side::Before);
            lost += f64::from(is_lost);
            bursts += f64::from(is_lost && !before);
            before = is_lost;
        }
        // Stationary share of bad: 0.01 / 0.26; a stay in bad lasts 1 / 0.25 packets.
        assert!((lost / 1e6 - 0.01f64 / 0.26).abs() < 0.0015, "{lost}");
        assert!((lost / bursts - 4.0f64).abs() < 0.12, "{lost} in {bursts}");
    }

    #[test]
    fn never_and_always_are_exact() {
        let mut never = dice(LossModel::Independent { probability: 0.0 });
        let mut always = dice(LossModel::Independent { probability: 1.0 });
        assert!((0..10_000).all(|_| !never.is_lost(Side::Before) && always.is_lost(Side::Before)));
    }
}
