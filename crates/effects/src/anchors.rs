//! Finds lines at which two long texts can be divided.

use imara_diff::Token;

/// Where a line is on both sides.
type Anchor = (usize, usize);

/// Returns lines that are on each side exactly once, as many as keep their
/// order. Tokens are below `tokens`.
pub(crate) fn find(before: &[Token], after: &[Token], tokens: usize) -> Vec<Anchor> {
    let once = places(before, tokens);
    let once_after = places(after, tokens);
    let pairs: Vec<Anchor> = before
        .iter()
        .enumerate()
        .filter(|(line, token)| once[token.0 as usize] == LineOccurrence::Once(*line))
        .filter_map(|(line, token)| match once_after[token.0 as usize] {
            LineOccurrence::Once(other) => Some((line, other)),
            _ => None,
        })
        .collect();
    longest_rising(&pairs)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineOccurrence {
    Nowhere,
    Once(usize),
    Often,
}

fn places(lines: &[Token], tokens: usize) -> Vec<LineOccurrence> {
    let mut places = vec![LineOccurrence::Nowhere; tokens];
    for (line, token) in lines.iter().enumerate() {
        let place = &mut places[token.0 as usize];
        *place = match place {
            LineOccurrence::Nowhere => LineOccurrence::Once(line),
            _ => LineOccurrence::Often,
        };
    }
    places
}

/// The longest part of the pairs, which rise on the one side, that rises on
/// the other too: by laying them on piles, as in patience.
fn longest_rising(pairs: &[Anchor]) -> Vec<Anchor> {
    // The pair on top of each pile, and for each pair the one that was on top
    // of the pile to the left when it was laid.
    let mut tops: Vec<usize> = vec![];
    let mut left: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let pile = tops.partition_point(|&top| pairs[top].1 < pair.1);
        left.push(pile.checked_sub(1).map(|pile| tops[pile]));
        match tops.get_mut(pile) {
            Some(top) => *top = index,
            None => tops.push(index),
        }
    }
    let last = tops.last().copied();
    let mut longest: Vec<Anchor> = std::iter::successors(last, |&index| left[index])
        .map(|index| pairs[index])
        .collect();
    longest.reverse();
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_unique_on_both_sides_and_keep_their_order() {
        let tokens = |ids: &[u32]| ids.iter().map(|&id| Token(id)).collect::<Vec<_>>();
        let before = tokens(&[0, 1, 2, 0, 3, 4, 5]);
        let after = tokens(&[4, 0, 1, 2, 2, 3, 5]);
        assert_eq!(find(&before, &after, 6), [(1, 2), (4, 5), (6, 6)]);
        assert_eq!(find(&before, &[], 6), []);
    }
}
