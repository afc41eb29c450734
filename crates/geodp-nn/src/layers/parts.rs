//! How many outputs, places or taps go into each register tile.

/// Splits `count` into the fewest parts of at most `largest`, as equal as can be.
pub(crate) fn even_parts(count: usize, largest: usize) -> impl Iterator<Item = usize> {
    let parts = count.div_ceil(largest).max(1);
    let (size, longer) = (count / parts, count % parts);
    (0..parts).map(move |part| size + usize::from(part < longer)).filter(|&size| size > 0)
}

/// Splits `count` into `sizes`, given from large to small and ending in 1: few sizes, because a
/// register tile of each is compiled for each instruction set.
pub(crate) fn parts_of(count: usize, sizes: &[usize]) -> impl Iterator<Item = usize> {
    let mut left = count;
    std::iter::from_fn(move || {
        let size = sizes.iter().copied().find(|&size| size <= left)?;
        left -= size;
        Some(size)
    })
}

#[cfg(test)]
mod tests {
    use super::{even_parts, parts_of};

    #[test]
    fn parts_cover_the_count() {
        for count in 0..40 {
            for largest in 1..9 {
                let parts: Vec<usize> = even_parts(count, largest).collect();
                assert_eq!(parts.iter().sum::<usize>(), count);
                assert!(parts.iter().all(|&part| part <= largest && part > 0));
            }
            assert_eq!(parts_of(count, &[5, 2, 1]).sum::<usize>(), count);
        }
        assert_eq!(even_parts(16, 6).collect::<Vec<_>>(), [6, 5, 5]);
        assert_eq!(parts_of(11, &[5, 2, 1]).collect::<Vec<_>>(), [5, 5, 1]);
    }
}
