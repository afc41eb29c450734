//! The gradient stream: repeatable, in step with training by hand, and never the same epoch twice.

use geodp_data::{
    DataError, Dataset, GradientStream, Records, Scaling, Shape, StreamOptions, Unlabelled,
    cifar10, mnist,
};
use geodp_nn::{NetworkSpec, Samples};

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
    assert_eq!(part.position(), 7);
    assert!(part.random_dimensions(part.dim() + 1, 0).is_err());
    assert!(part.next_into(&dimensions, &mut out[1..]).is_err());
    let beyond = [part.dim()];
    assert!(part.next_into(&beyond, &mut out[..1]).is_err());
    assert_eq!(part.position(), 7, "a refused request makes no gradient");
}

#[test]
fn it_trains_while_it_streams() {
    let data = digits(2000);
    let mut stream = stream(data, 0);
    assert!(stream.last_loss().is_nan());
    let mut mean_loss = || {
        let mut loss = || {
            stream.next_gradient().unwrap();
            f64::from(stream.last_loss())
        };
        (0..500).map(|_| loss()).sum::<f64>() / 500.0
    };
    let losses = [(); 8].map(|()| mean_loss());
    // ln 10 = 2.3 at the start.
    assert!(losses[7] < 0.5 && losses[7] < 0.5 * losses[0], "{losses:?}");
}

#[test]
fn the_network_follows_the_dataset() {
    let colour = Records::from_floats(Shape::image(3, 32, 32), vec![0.1; 2 * 3072], "made up");
    let names = vec!["a".to_owned(), "b".to_owned()];
    let two = Dataset::new("colour", colour.unwrap(), vec![0, 1], names).unwrap();
    let mut small = stream(two, 0);
    assert_eq!(small.dim(), 760 + 5020 + 25_050 + 102);
    small.next_gradient().unwrap();
    let metadata = stream(digits(3), 7).metadata();
    assert_eq!((metadata.dim, metadata.epoch, metadata.seed), (21_840, 3, 7));
    assert_eq!(metadata.dataset, "MNIST test");
    let nowhere = tempfile::tempdir().unwrap();
    let opened = GradientStream::open(nowhere.path(), StreamOptions::default()).unwrap();
    assert!(!cifar10::is_present(nowhere.path()));
    assert_eq!((opened.metadata().dataset.as_str(), opened.metadata().epoch), ("MNIST", 60_000));
}

#[test]
fn what_cannot_be_streamed_is_refused() {
    let open = |data, learning_rate| {
        GradientStream::new(data, StreamOptions { learning_rate, seed: 0 }).map(|_| ())
    };
    assert!(matches!(open(digits(0), 0.1), Err(DataError::Empty { .. })));
    assert!(matches!(open(digits(1), f32::NAN), Err(DataError::Argument(_))));
    assert!(matches!(open(digits(1), -1.0), Err(DataError::Argument(_))));
    let flat = Records::from_floats(Shape::features(2), vec![0.0; 2], "").unwrap();
    let flat = Dataset::new("flat", flat, vec![0], vec!["a".to_owned(), "b".to_owned()]).unwrap();
    assert!(matches!(open(flat, 0.1), Err(DataError::Stream(_))));
    // Divergence is told, not passed on as numbers that are none.
    let options = StreamOptions { learning_rate: 1e6, seed: 0 };
    let mut wild = GradientStream::new(digits(50), options).unwrap();
    let outcome = (0..50).try_for_each(|_| wild.next_gradient().map(|_| ()));
    assert!(matches!(outcome, Err(DataError::Stream(_))), "{outcome:?}");
}

#[test]
fn datasets_and_records_are_what_the_engine_reads() {
    let data = digits(4);
    let network = NetworkSpec::cnn().build().unwrap();
    let weights = network.init(1);
    let mut known = vec![0.0; 40];
    network.predict(&weights, &data, &[0, 1, 2, 3], &mut known).unwrap();
    let mut unknown = vec![0.0; 40];
    let unlabelled = Unlabelled(data.records());
    assert_eq!((Samples::len(&unlabelled), unlabelled.input_len()), (4, 784));
    network.predict(&weights, &unlabelled, &[0, 1, 2, 3], &mut unknown).unwrap();
    assert_eq!(known, unknown);
    let (mut direct, mut through) = (vec![0.0; 784], vec![0.0; 784]);
    data.rescaled(&Scaling::Unit).unwrap().read_input(2, &mut direct);
    Samples::read_input(&data.rescaled(&Scaling::Unit).unwrap(), 2, &mut through);
    assert_eq!(direct, through);
}
