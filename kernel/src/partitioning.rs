//! The partition to which a record key belongs by Kafka's `murmur2`; the twin is `shoal/stream/partitioning.py`.

/// The partition of a key in a topic that has this number of partitions.
#[inline(always)]
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partitions
}

/// MurmurHash2 of 32 bits with Kafka's seed.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash: u32 = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        word ^= word >> 24;
        hash = hash.wrapping_mul(M) ^ word.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        hash = (hash ^ last).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hashed_as_kafka_does() {
        assert_eq!(murmur2(b"21"), 3_321_034_988);
    }
}
