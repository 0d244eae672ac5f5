//! Which deliveries of a channel are settled, and the fewest acknowledgements that say so. Sends
//! nothing.
//!
//! A channel numbers its deliveries 1, 2, 3, ... An acknowledgement with `multiple` covers every
//! tag up to its own, so it may only be used below the smallest tag that is still outstanding; a
//! slow delivery must not hold back those after it, so they are acknowledged one by one.

use std::collections::BTreeSet;

/// One acknowledgement to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckFrame {
    pub(crate) tag: u64,
    /// Whether it also covers every smaller tag.
    pub(crate) multiple: bool,
}

/// The settled and the outstanding tags of one channel.
#[derive(Debug, Default)]
pub(crate) struct AckWindow {
    /// The newest tag the broker has sent.
    received: u64,
    /// Every tag up to here is settled.
    settled_through: u64,
    /// Settled tags with an outstanding one before them.
    settled_beyond: BTreeSet<u64>,
}

impl AckWindow {
    /// The broker has sent this tag.
    pub(crate) fn receive(&mut self, tag: u64) {
        self.received = self.received.max(tag);
    }

    /// How many tags are received and not settled.
    pub(crate) fn outstanding(&self) -> u64 {
        self.received - self.settled_through - self.settled_beyond.len() as u64
    }

    /// Settles these tags, each received before and not yet settled.
    ///
    /// A `multiple` frame always names a tag settled just now: the broker treats an unknown tag
    /// as a protocol error and closes the channel.
    pub(crate) fn settle(&mut self, mut tags: Vec<u64>) -> Vec<AckFrame> {
        tags.sort_unstable();
        let mut prefix: Option<AckFrame> = None;
        let mut frames = Vec::new();
        for tag in tags {
            if tag == self.settled_through + 1 {
                prefix = Some(AckFrame {
                    tag,
                    multiple: prefix.is_some(),
                });
                self.advance_to(tag);
            } else {
                self.settled_beyond.insert(tag);
                frames.push(AckFrame {
                    tag,
                    multiple: false,
                });
            }
        }
        frames.extend(prefix);
        frames
    }

    fn advance_to(&mut self, tag: u64) {
        self.settled_through = tag;
        while self.settled_beyond.remove(&(self.settled_through + 1)) {
            self.settled_through += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn window(received: u64) -> AckWindow {
        let mut window = AckWindow::default();
        window.receive(received);
        window
    }

    const fn one(tag: u64) -> AckFrame {
        AckFrame {
            tag,
            multiple: false,
        }
    }

    const fn through(tag: u64) -> AckFrame {
        AckFrame {
            tag,
            multiple: true,
        }
    }

    #[test]
    fn a_full_prefix_takes_one_frame() {
        let mut window = window(5);
        assert_eq!(window.settle(vec![3, 1, 2]), [through(3)]);
        assert_eq!(window.settle(vec![4]), [one(4)]);
        assert_eq!(window.outstanding(), 1);
        assert_eq!(window.settle(vec![]), []);
    }

    #[test]
    fn an_outstanding_delivery_does_not_hold_back_later_ones() {
        let mut window = window(5);
        assert_eq!(window.settle(vec![2, 3, 5]), [one(2), one(3), one(5)]);
        assert_eq!(window.outstanding(), 2);
    }

    #[test]
    fn a_closed_gap_is_not_acknowledged_by_a_tag_the_broker_has_forgotten() {
        let mut window = window(5);
        window.settle(vec![2, 3]);
        assert_eq!(window.settle(vec![1]), [one(1)]);
        assert_eq!(window.settle(vec![4, 5]), [through(5)]);
        assert_eq!(window.outstanding(), 0);
    }

    #[test]
    fn a_prefix_reaches_over_a_closed_gap_only_to_a_tag_of_this_call() {
        let mut window = window(6);
        window.settle(vec![2]);
        assert_eq!(window.settle(vec![1, 3, 5]), [one(5), through(3)]);
    }

    /// The broker's side: the tags it still holds; closes the channel on an unknown one.
    fn broker_applies(held: &mut BTreeSet<u64>, frame: AckFrame) {
        assert!(
            held.remove(&frame.tag),
            "unknown delivery tag {}",
            frame.tag
        );
        if frame.multiple {
            held.retain(|&tag| tag > frame.tag);
        }
    }

    /// All ways to settle six tags in some order, in two calls cut anywhere.
    #[test]
    fn whatever_the_order_the_broker_ends_with_exactly_the_outstanding_tags() {
        const TAGS: u64 = 6;
        for order in permutations((1..=TAGS).collect()) {
            for cut in 0..=order.len() {
                let mut held: BTreeSet<u64> = (1..=TAGS).collect();
                let mut window = window(TAGS);
                for frame in window.settle(order[..cut].to_vec()) {
                    broker_applies(&mut held, frame);
                }
                assert!(held.iter().eq(order[cut..].iter().collect::<BTreeSet<_>>()));
                assert_eq!(window.outstanding(), held.len() as u64);
                for &tag in &order[cut..] {
                    for frame in window.settle(vec![tag]) {
                        broker_applies(&mut held, frame);
                    }
                }
                assert!(held.is_empty());
            }
        }
    }

    fn permutations(items: Vec<u64>) -> Vec<Vec<u64>> {
        if items.len() <= 1 {
            return vec![items];
        }
        let with_first = |index: usize| {
            let mut rest = items.clone();
            let first = rest.remove(index);
            permutations(rest)
                .into_iter()
                .map(move |tail| [vec![first], tail].concat())
        };
        (0..items.len()).flat_map(with_first).collect()
    }
}
