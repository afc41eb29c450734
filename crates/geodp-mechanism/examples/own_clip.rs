//! A clipping rule of your own: gradients below the threshold keep their length, longer ones shrink
//! to a fraction of it. Whatever a rule answers, `Clip` holds it to its threshold.
//!
//! `cargo run --release -p geodp-mechanism --example own_clip`

use geodp_mechanism::{Clip, ClipNorm, ClipRule, Error};

#[derive(Debug)]
struct Outliers {
    clip_norm: ClipNorm,
}

impl ClipRule for Outliers {
    fn clip_norm(&self) -> ClipNorm {
        self.clip_norm
    }
    fn weight(&self, norm: f64) -> f64 {
        // Far beyond the threshold a gradient is more likely an outlier than news.
        let excess = norm / self.clip_norm.get();
        if excess <= 1.0 { 1.0 } else { 1.0 / (excess * excess) }
    }
}

fn main() -> Result<(), Error> {
    let clip = Clip::new(Outliers { clip_norm: ClipNorm::new(0.1)? });
    for norm in [0.05, 0.1, 0.2, 1.0, f64::NAN] {
        let weight = clip.weight(norm);
        println!("norm {norm:<5} weight {weight:.4} contributes {:.4}", weight * norm);
    }
    println!("sensitivity {}", clip.sensitivity().get());
    Ok(())
}
