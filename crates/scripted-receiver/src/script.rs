//! The order of replies on one path. The draws of a weighted script come from a seed, never from the outside.

use rand::SeedableRng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::StdRng;

use crate::Reply;

/// The replies of one path, drawn one for each request in the order of arrival.
#[derive(Debug)]
pub struct Script {
    replies: Vec<Reply>,
    order: Order,
}

#[derive(Debug)]
enum Order {
    /// One after the other; the last one for ever.
    Written { next: usize },
    /// By weight, from a seeded generator.
    Drawn {
        weights: WeightedIndex<f64>,
        rng: Box<StdRng>,
    },
}

impl Script {
    /// Draws each reply by its weight; the same seed gives the same replies in the same order.
    ///
    /// # Panics
    /// When there is no reply, a weight is negative, or all are zero.
    pub fn weighted(seed: u64, choices: impl IntoIterator<Item = (f64, Reply)>) -> Self {
        let (weights, replies): (Vec<f64>, Vec<Reply>) = choices.into_iter().unzip();
        let weights = WeightedIndex::new(weights).expect("weights that can be drawn from");
        let rng = Box::new(StdRng::seed_from_u64(seed));
        Self {
            replies,
            order: Order::Drawn { weights, rng },
        }
    }

    /// Each request fails with `failing` at this rate (0 to 1) and is answered by `Reply::ok` otherwise.
    pub fn failing(seed: u64, rate: f64, failing: Reply) -> Self {
        Self::weighted(seed, [(rate, failing), (1.0 - rate, Reply::ok())])
    }

    pub(crate) fn draw(&mut self) -> Reply {
        let index = match &mut self.order {
            Order::Written { next } => step(next, self.replies.len()),
            Order::Drawn { weights, rng } => weights.sample(rng),
        };
        self.replies[index].clone()
    }
}

/// The current position, moved on unless it is the last one.
fn step(next: &mut usize, len: usize) -> usize {
    let index = *next;
    *next = (index + 1).min(len - 1);
    index
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        assert!(!replies.is_empty(), "a script needs at least one reply");
        Self {
            replies,
            order: Order::Written { next: 0 },
        }
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Self {
        Self::from(Vec::from(replies))
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::from(vec![reply])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(script: &mut Script, n: usize) -> Vec<bool> {
        (0..n).map(|_| script.draw().accepts()).collect()
    }

    #[test]
    fn replies_come_in_order_and_the_last_one_repeats() {
        let mut script = Script::from([Reply::status(500), Reply::ok(), Reply::reset()]);
        assert_eq!(accepted(&mut script, 5), [false, true, false, false, false]);
    }

    #[test]
    fn a_single_reply_repeats_for_ever() {
        assert_eq!(accepted(&mut Script::from(Reply::ok()), 3), [true; 3]);
    }

    #[test]
    fn the_same_seed_draws_the_same_replies() {
        let mut one = Script::failing(7, 0.5, Reply::status(503));
        let mut other = Script::failing(7, 0.5, Reply::status(503));
        assert_eq!(accepted(&mut one, 64), accepted(&mut other, 64));
    }

    #[test]
    fn a_failure_rate_of_none_or_all_leaves_no_chance() {
        assert_eq!(
            accepted(&mut Script::failing(1, 0.0, Reply::hang()), 50),
            [true; 50]
        );
        assert_eq!(
            accepted(&mut Script::failing(1, 1.0, Reply::hang()), 50),
            [false; 50]
        );
    }

    #[test]
    fn a_failure_rate_is_met_over_many_requests() {
        let drawn = accepted(&mut Script::failing(3, 0.2, Reply::close()), 10_000);
        let failed = drawn.iter().filter(|accepted| !**accepted).count();
        assert!(
            (1_800..=2_200).contains(&failed),
            "{failed} of 10,000 failed"
        );
    }
}
