//! Reduction of a line to fewer points for drawing, by the algorithm Largest Triangle Three Buckets (LTTB, Steinarsson
//! 2013).
//!
//! Coordinates are integers in units of the drawing. Displayed figures are not computed from the coordinates.

/// Point of a drawing.
pub(crate) type Point = (i64, i64);

/// Selects at most `most` points that preserve the shape of the line, including the first and the last point.
pub(crate) fn thin_line(points: &[Point], most: usize) -> Vec<Point> {
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return vec![] };
    if points.len() <= most || most < 3 {
        return points.to_vec();
    }
    let inner = points.len() - 2;
    let buckets = most - 2;
    let bucket = |number: usize| &points[1 + number * inner / buckets..1 + (number + 1) * inner / buckets];
    let mut kept = vec![first];
    let mut before = first;
    for number in 0..buckets {
        let after = if number + 1 < buckets { mean(bucket(number + 1)) } else { last };
        let largest = bucket(number).iter().copied().max_by_key(|point| area(before, *point, after));
        before = largest.unwrap_or(before);
        kept.push(before);
    }
    kept.push(last);
    kept
}

/// Twice the area of a triangle.
fn area(a: Point, b: Point, c: Point) -> i64 {
    ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs()
}

fn mean(points: &[Point]) -> Point {
    let count = i64::try_from(points.len()).unwrap_or(1).max(1);
    let sum = points.iter().fold((0, 0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thin_line_keeps_its_ends_and_its_peaks() {
        let mut points: Vec<Point> = (0..1_000).map(|x| (x, 100)).collect();
        points[437].1 = 900;
        let thin = thin_line(&points, 50);
        assert_eq!((thin.len(), thin[0], thin[49]), (50, (0, 100), (999, 100)));
        assert!(thin.contains(&(437, 900)), "{thin:?}");
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0), "{thin:?}");
    }

    #[test]
    fn a_short_line_stays() {
        assert_eq!(thin_line(&[(0, 1), (1, 2)], 10), [(0, 1), (1, 2)]);
        assert_eq!(thin_line(&[], 10), []);
    }
}
