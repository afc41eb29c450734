//! The bundled MNIST, against facts published about it.

use geodp_data::{Scaling, Shape, mnist};

fn counts(labels: &[u32]) -> [usize; 10] {
    let mut counts = [0; 10];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

#[test]
fn digits_are_as_many_as_published() {
    let split = mnist::load(&Scaling::Unit).unwrap();
    assert_eq!((split.train.len(), split.test.len()), (60_000, 10_000));
    assert_eq!(split.train.shape(), Shape::image(1, 28, 28));
    assert_eq!(split.train.labels()[..5], [5, 0, 4, 1, 9]);
    assert_eq!(split.test.labels()[..5], [7, 2, 1, 0, 4]);
    let train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    assert_eq!(counts(split.train.labels()), train);
    let test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009];
    assert_eq!(counts(split.test.labels()), test);
    // The paper's logistic regression: digits 0 and 1.
    assert_eq!(split.train.only_labels(&[0, 1]).unwrap().len(), 5923 + 6742);
}

#[test]
fn the_standard_scaling_gives_mean_0_and_deviation_1() {
    let train = mnist::load_train(&mnist::standard_scaling()).unwrap();
    let mut input = vec![0.0f32; train.input_len()];
    let (mut sum, mut squares) = (0.0f64, 0.0f64);
    for index in 0..train.len() {
        train.read_input(index, &mut input);
        for &value in &input {
            sum += f64::from(value);
            squares += f64::from(value).powi(2);
        }
    }
    let values = (train.len() * train.input_len()) as f64;
    let mean = sum / values;
    let deviation = (squares / values - mean * mean).sqrt();
    assert!(mean.abs() < 2e-4, "{mean}");
    assert!((deviation - 1.0).abs() < 2e-4, "{deviation}");
}

#[test]
fn scalings_share_the_images_and_are_told_apart() {
    let unit = mnist::load_test(&Scaling::Unit).unwrap();
    let standard = mnist::load_test(&mnist::standard_scaling()).unwrap();
    assert_ne!(unit.fingerprint(), standard.fingerprint());
    assert_eq!(
        unit.rescaled(&mnist::standard_scaling()).unwrap().fingerprint(),
        standard.fingerprint()
    );
    let (mut plain, mut scaled) = (vec![0.0; 784], vec![0.0; 784]);
    unit.read_input(3, &mut plain);
    standard.read_input(3, &mut scaled);
    assert!(plain.iter().all(|value| (0.0..=1.0).contains(value)));
    for (x, y) in plain.iter().zip(&scaled) {
        assert!(((x - 0.1307) / 0.3081 - y).abs() < 1e-6);
    }
}
