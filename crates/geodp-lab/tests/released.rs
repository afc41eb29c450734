//! The released protocol of Figure 5 gives the losses that the released code was seen to give.

use geodp_lab::logistic::curves::{Curve, Protocol};
use geodp_lab::logistic::train::Digits;
use geodp_mechanism::Mechanism;

#[test]
fn released_protocol_reproduces_the_losses_of_the_released_code() {
    let digits = Digits::open(1, 350).unwrap();
    let last = |mechanism, batch, sigma| {
        let curve = Curve { mechanism, batch, sigma };
        digits.train(Protocol::Released, &curve, 0, &mut |_| Ok(())).unwrap().last()
    };
    for (loss, expected) in [
        (last(Mechanism::None, 4096, 0.0), 0.0109),
        (last(Mechanism::Dp, 2048, 1.0), 0.0123),
        (last(Mechanism::Geodp { beta: 1.0 }, 4096, 1.0), 0.0115),
        (last(Mechanism::Geodp { beta: 1.0 }, 256, 0.01), 0.0109),
    ] {
        assert!((loss - expected).abs() < 6e-5, "{loss} instead of {expected}");
    }
}
