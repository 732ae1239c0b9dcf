//! Blocks of zeroed memory; large ones are in huge pages. Accounts are read all over the memory, where with small pages
//! the page table itself would miss the caches.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// From this size on a block is mapped, so that it takes memory only where something was written.
pub const MAPPED_FROM: usize = 4 << 20;

/// Bytes that are zero at first.
pub enum Memory {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Memory {
    pub fn zeroed(size: usize) -> Self {
        if size >= MAPPED_FROM && !cfg!(miri) {
            if let Ok(map) = MmapMut::map_anon(size) {
                #[cfg(target_os = "linux")]
                let _ = map.advise(memmap2::Advice::HugePage); // if it fails, small pages do
                return Memory::Mapped(map);
            }
        }
        Memory::Heap(vec![0; size])
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::Heap(vec![])
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for Memory {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Heap(bytes) => bytes,
            Memory::Mapped(bytes) => bytes,
        }
    }
}
