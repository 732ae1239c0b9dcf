//! Collects a user's samples into blocks; the twins are `continual_mean/blocks.py` and `continual_mean/sharp/bounder.py`.

use super::{COUNT_BITS, COUNT_MASK};
use crate::queue::Block;

/// How samples are collected; the names of the fields are those of `SharpBounder`.
pub enum Bounder {
    OneByOne, // each sample is a block
    Sharp { singles: u64, alone: u64, bits: u32, inner: Vec<u64>, ends: Vec<(u64, u32, u64)>, first_level: u32 },
    Doubling, // `BlockBounder`: a block ends with each sample whose number is a power of two
}

impl Bounder {
    /// The account after one more sample, and the block that the sample closes, if it closes one.
    #[inline(always)]
    pub fn add(&self, account: u128, value: u64) -> (u128, Option<Block>) {
        let count = (account & COUNT_MASK) as u64 + 1;
        let after = account + (u128::from(value) << COUNT_BITS) + 1;
        match self {
            Bounder::OneByOne => (u128::from(count), Some(Block::single(count, 0, value, 0))),
            Bounder::Sharp { singles, alone, bits, inner, ends, first_level } => {
                if count <= *alone {
                    return (
                        u128::from(count),
                        Some(Block::single(count, level_of(count), value, part_of(inner, value))),
                    );
                }
                if let Some(&(_, block, weight)) = ends.iter().find(|&&(end, _, _)| end == count) {
                    let total = (account >> COUNT_BITS) as i128 + i128::from(value);
                    let closed = if count > *singles {
                        Block {
                            number: singles + 1 + u64::from(block),
                            level: first_level + block,
                            samples: weight,
                            total,
                            part: None,
                        }
                    } else {
                        let both = total << bits | i128::from(value);
                        Block { number: count, level: first_level + block, samples: 1, total: both, part: None }
                    };
                    return (u128::from(count), Some(closed));
                }
                let block =
                    (count <= *singles).then(|| Block::single(count, level_of(count), value, part_of(inner, value)));
                (after, block)
            }
            Bounder::Doubling => {
                if !count.is_power_of_two() {
                    return (after, None);
                }
                let total = (account >> COUNT_BITS) as i128 + i128::from(value);
                let level = count.trailing_zeros();
                let weight = 1 << level.saturating_sub(1);
                (
                    u128::from(count),
                    Some(Block { number: u64::from(level) + 1, level, samples: weight, total, part: None }),
                )
            }
        }
    }
}

/// The level of a single sample: sample 1 has level 0, samples 2**(l-1) + 1 to 2**l have level l.
fn level_of(count: u64) -> u32 {
    64 - (count - 1).leading_zeros()
}

/// The bucket of a grid index.
fn part_of(inner: &[u64], value: u64) -> u8 {
    inner.partition_point(|&boundary| boundary <= value) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_levels_by_powers_of_two() {
        assert_eq!((1..=9).map(level_of).collect::<Vec<_>>(), [0, 1, 2, 2, 3, 3, 3, 3, 4]);
    }
}
