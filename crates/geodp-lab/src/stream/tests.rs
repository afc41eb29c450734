//! The gradient stream: repeatable, in step with training by hand, and never the same epoch twice.

use super::*;
use geodp_data::{Records, Shape, mnist};

fn digits(count: usize) -> Dataset {
    let all: Vec<usize> = (0..count).collect();
    mnist::load_test(&mnist::standard_scaling()).unwrap().subset(&all).unwrap()
}

fn stream(data: Dataset, seed: u64) -> GradientStream {
    GradientStream::new(data, StreamOptions { seed, ..StreamOptions::default() }).unwrap()
}

#[test]
fn each_gradient_is_that_of_one_sample_at_the_weights_so_far() {
    let data = digits(12);
    let network = NetworkSpec::cnn().build().unwrap();
    let (mut weights, mut gradient) = (network.init(3), vec![0.0; network.dim()]);
    let mut stream = stream(data.clone(), 3);
    let mut epoch = || {
        let mut seen = Vec::new();
        for _ in 0..data.len() {
            let next = stream.next_gradient().unwrap();
            // Which sample it was is not told: find the one that gives this gradient.
            let sample = (0..data.len() as u32).find(|&sample| {
                network.sample_gradient(&weights, &data, sample, &mut gradient).unwrap();
                gradient == next
            });
            seen.push(sample.expect("no sample has this gradient"));
            weights.iter_mut().zip(next).for_each(|(weight, g)| *weight -= 0.005 * g);
        }
        seen
    };
    let (first, second) = (epoch(), epoch());
    let in_order: Vec<u32> = (0..12).collect();
    assert_ne!(first, in_order);
    assert_ne!(first, second, "each epoch has its own order");
    for mut seen in [first, second] {
        seen.sort_unstable();
        assert_eq!(seen, in_order, "an epoch visits every sample once");
    }
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let collect = |seed| {
        let mut stream = stream(digits(20), seed);
        (0..50).map(|_| stream.next_gradient().unwrap().to_vec()).collect::<Vec<_>>()
    };
    let first = collect(1);
    assert_eq!(first, collect(1));
    assert_ne!(first, collect(2));
}

#[test]
fn chosen_dimensions_are_those_of_the_whole_gradient() {
    let (mut whole, mut part) = (stream(digits(5), 4), stream(digits(5), 4));
    let dimensions = part.random_dimensions(1000, 9).unwrap();
    assert_eq!(dimensions, whole.random_dimensions(1000, 9).unwrap());
    assert_ne!(dimensions, whole.random_dimensions(1000, 8).unwrap());
    assert!(dimensions.is_sorted_by(|a, b| a < b) && dimensions[999] < part.dim());
    let mut out = vec![0.0; 1000];
    for _ in 0..7 {
        part.next_into(&dimensions, &mut out).unwrap();
        let gradient = whole.next_gradient().unwrap();
        assert!(dimensions.iter().zip(&out).all(|(&at, value)| gradient[at] == *value));
    }
    assert!(part.random_dimensions(part.dim() + 1, 0).is_err());
    assert!(part.next_into(&dimensions, &mut out[1..]).is_err());
    let beyond = [part.dim()];
    assert!(part.next_into(&beyond, &mut out[..1]).is_err());
    assert_eq!(part.next_gradient().unwrap(), whole.next_gradient().unwrap(), "none was made");
}

#[test]
fn the_network_follows_the_dataset() {
    let colour = Records::from_floats(Shape::image(3, 32, 32), vec![0.1; 2 * 3072], "made up");
    let names = vec!["a".to_owned(), "b".to_owned()];
    let two = Dataset::new("colour", colour.unwrap(), vec![0, 1], names).unwrap();
    let mut small = stream(two, 0);
    assert_eq!(small.dim(), 760 + 5020 + 25_050 + 102);
    small.next_gradient().unwrap();
    assert_eq!(stream(digits(3), 7).dim(), 21_840);
}

#[test]
fn what_cannot_be_streamed_is_refused() {
    let open = |data, learning_rate| {
        GradientStream::new(data, StreamOptions { learning_rate, seed: 0 }).map(|_| ())
    };
    assert!(matches!(open(digits(0), 0.1), Err(Error::Stream(_))));
    assert!(matches!(open(digits(1), f32::NAN), Err(Error::Stream(_))));
    assert!(matches!(open(digits(1), -1.0), Err(Error::Stream(_))));
    let flat = Records::from_floats(Shape::features(2), vec![0.0; 2], "").unwrap();
    let flat = Dataset::new("flat", flat, vec![0], vec!["a".to_owned(), "b".to_owned()]).unwrap();
    assert!(matches!(open(flat, 0.1), Err(Error::Stream(_))));
    // Divergence is told, not passed on as numbers that are none.
    let options = StreamOptions { learning_rate: 1e6, seed: 0 };
    let mut wild = GradientStream::new(digits(50), options).unwrap();
    let outcome = (0..50).try_for_each(|_| wild.next_gradient().map(|_| ()));
    assert!(matches!(outcome, Err(Error::Stream(_))), "{outcome:?}");
}

#[test]
fn it_trains_while_it_streams() {
    let data = digits(2000);
    let mut stream = stream(data.clone(), 0);
    let everything: Vec<u32> = (0..2000).collect();
    let loss = |stream: &GradientStream| {
        let looked = stream.network.evaluate(&stream.weights, &data, &everything);
        looked.unwrap().mean_loss
    };
    let before = loss(&stream);
    for _ in 0..4000 {
        stream.next_gradient().unwrap();
    }
    // ln 10 = 2.3 at the start.
    let after = loss(&stream);
    assert!(after < 0.5 && after < 0.5 * before, "{before} became {after}");
}
