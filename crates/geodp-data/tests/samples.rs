//! Datasets and records as the engine reads them.

use geodp_data::{Scaling, Unlabelled, mnist};
use geodp_nn::{NetworkSpec, Samples};

#[test]
fn datasets_and_records_are_what_the_engine_reads() {
    let test = mnist::load_test(&mnist::standard_scaling()).unwrap();
    let data = test.subset(&[0, 1, 2, 3]).unwrap();
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
