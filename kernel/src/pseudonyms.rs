//! Pseudonyms of users: keyed BLAKE2b of 16 bytes; the twin is `pseudonym` in `shoal/mechanisms/noise/keyed.py`.

use blake2::digest::core_api::{Buffer, UpdateCore, VariableOutputCore};
use blake2::digest::generic_array::GenericArray;
use blake2::Blake2bVarCore;

pub type Pseudonym = [u8; SIZE];
const SIZE: usize = 16;
pub const MOST_KEY_BYTES: usize = 64;

/// Makes the pseudonyms of one metric. BLAKE2b hashes the key first, as a block of its own; that is done once, here,
/// which halves the work for a short name.
pub struct Pseudonyms {
    begun: Blake2bVarCore, // the state after the key's block
    of_nobody: Pseudonym,  // of the empty name: the key's block is then the last one, which BLAKE2b hashes differently
}

impl Pseudonyms {
    pub fn new(key: &[u8]) -> Self {
        let mut core = Blake2bVarCore::new_with_params(&[], &[], key.len(), SIZE);
        let mut block = GenericArray::default();
        block[..key.len()].copy_from_slice(key);
        let key_alone =
            if key.is_empty() { Buffer::<Blake2bVarCore>::default() } else { Buffer::<Blake2bVarCore>::new(&block) };
        let of_nobody = end(core.clone(), key_alone);
        if !key.is_empty() {
            core.update_blocks(&[block]);
        }
        Pseudonyms { begun: core, of_nobody }
    }

    pub fn of(&self, user: &[u8]) -> Pseudonym {
        if user.is_empty() {
            return self.of_nobody;
        }
        let mut core = self.begun.clone();
        let mut rest = Buffer::<Blake2bVarCore>::default();
        rest.digest_blocks(user, |blocks| core.update_blocks(blocks));
        end(core, rest)
    }
}

fn end(mut core: Blake2bVarCore, mut rest: Buffer<Blake2bVarCore>) -> Pseudonym {
    let mut digest = GenericArray::default();
    core.finalize_variable_core(&mut rest, &mut digest);
    *digest[..].first_chunk().expect("a digest has 64 bytes")
}

#[cfg(test)]
mod tests {
    use blake2::digest::Mac;
    use blake2::Blake2bMac;

    use super::*;

    #[test]
    fn a_pseudonym_is_the_keyed_hash_of_a_name_of_any_length() {
        for key in [&[3; 32][..], &[5; 64]] {
            for length in [0, 1, 16, 127, 128, 129, 256, 300] {
                let user = vec![b'u'; length];
                let whole = <Blake2bMac<blake2::digest::consts::U16> as Mac>::new_from_slice(key).expect("a key");
                let due = whole.chain_update(&user).finalize().into_bytes();
                assert_eq!(Pseudonyms::new(key).of(&user)[..], due[..], "{length} bytes");
            }
        }
    }
}
