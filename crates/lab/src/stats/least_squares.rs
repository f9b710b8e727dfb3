//! Least squares with three coefficients that must not be negative.

/// The columns of a problem, all of one length.
pub(super) type Columns = [Vec<f64>; 3];

/// The coefficients, the first above zero and the others at least zero, whose sum of columns comes
/// closest to `target`. The problem is convex. So its solution is the best of the ordinary
/// solutions over each choice of columns that gives no negative coefficient. Where the first would
/// have to be zero, it is the best of those with a positive first one. `None` where there is none.
pub(super) fn solve(columns: &Columns, target: &[f64]) -> Option<[f64; 3]> {
    const CHOICES: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let mut best: Option<(f64, [f64; 3])> = None;
    for choice in CHOICES {
        let chosen: Vec<&[f64]> = choice.iter().map(|&column| columns[column].as_slice()).collect();
        let Some(solution) = ordinary(&chosen, target) else { continue };
        if solution[0] <= 0.0 || solution.iter().any(|coefficient| *coefficient < 0.0) {
            continue;
        }
        let mut coefficients = [0.0; 3];
        for (&column, &coefficient) in choice.iter().zip(&solution) {
            coefficients[column] = coefficient;
        }
        let error = squares(columns, &coefficients, target);
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, coefficients));
        }
    }
    best.map(|(_, coefficients)| coefficients)
}

fn squares(columns: &Columns, coefficients: &[f64; 3], target: &[f64]) -> f64 {
    let value =
        |row: usize| -> f64 { (0..3).map(|column| coefficients[column] * columns[column][row]).sum() };
    target.iter().enumerate().map(|(row, target)| (value(row) - target).powi(2)).sum()
}

/// Ordinary least squares by orthogonal columns (modified Gram-Schmidt); `None` where columns
/// depend on each other.
fn ordinary(columns: &[&[f64]], target: &[f64]) -> Option<Vec<f64>> {
    let count = columns.len();
    let dot =
        |one: &[f64], other: &[f64]| -> f64 { one.iter().zip(other).map(|(one, other)| one * other).sum() };
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    let mut upper = vec![vec![0.0; count]; count];
    let mut rest = target.to_vec();
    let mut right = Vec::with_capacity(count);
    for (index, column) in columns.iter().enumerate() {
        let mut vector = column.to_vec();
        let length = dot(&vector, &vector).sqrt();
        for (row, unit) in basis.iter().enumerate() {
            upper[row][index] = dot(unit, &vector);
            vector.iter_mut().zip(unit).for_each(|(value, unit)| *value -= upper[row][index] * unit);
        }
        let left = dot(&vector, &vector).sqrt();
        // A smaller remainder, after the others are taken out, is rounding.
        if left <= 1e-12 * length {
            return None;
        }
        upper[index][index] = left;
        vector.iter_mut().for_each(|value| *value /= left);
        let along = dot(&vector, &rest);
        rest.iter_mut().zip(&vector).for_each(|(value, unit)| *value -= along * unit);
        right.push(along);
        basis.push(vector);
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|column| upper[row][column] * solution[column]).sum();
        solution[row] = (right[row] - known) / upper[row][row];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(at: &[f64]) -> Columns {
        [at.iter().map(|_| 1.0).collect(), at.to_vec(), at.iter().map(|at| at * at).collect()]
    }

    proptest! {
        #[test]
        fn no_other_allowed_coefficients_come_closer(
            target in prop::collection::vec(0.1f64..10.0, 5..9),
            other in prop::array::uniform3(0.0f64..5.0),
        ) {
            let at: Vec<f64> = (0..target.len()).map(|at| at as f64).collect();
            let columns = columns(&at);
            let found = solve(&columns, &target);
            prop_assume!(found.is_some());
            let found = found.unwrap();
            prop_assert!(found[0] > 0.0 && found[1] >= 0.0 && found[2] >= 0.0);
            let best = squares(&columns, &found, &target);
            let without_first = [vec![1, 2], vec![1], vec![2]].iter().any(|choice| {
                let chosen: Vec<&[f64]> = choice.iter().map(|&column: &usize| columns[column].as_slice()).collect();
                let solution = ordinary(&chosen, &target).unwrap();
                let mut coefficients = [0.0; 3];
                choice.iter().zip(&solution).for_each(|(&column, value)| coefficients[column] = value.max(0.0));
                squares(&columns, &coefficients, &target) < best
            });
            prop_assume!(!without_first);
            // Anywhere in the permitted region, and at a small distance from the solution.
            let aside = [found[0] * (1.0 + 0.01 * (other[0] - 2.5)), found[1] + 0.01 * other[1], found[2] + 0.01 * other[2]];
            for coefficients in [[other[0].max(1e-9), other[1], other[2]], aside] {
                prop_assert!(best <= squares(&columns, &coefficients, &target) * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn columns_that_depend_on_each_other_are_not_used_together() {
        let columns = [vec![1.0; 4], vec![2.0; 4], vec![0.0, 1.0, 4.0, 9.0]];
        let found = solve(&columns, &[1.0, 1.5, 3.0, 5.5]).unwrap();
        assert!((found[0] + 2.0 * found[1] - 1.0).abs() < 1e-9 && (found[2] - 0.5).abs() < 1e-9, "{found:?}");
    }
}
