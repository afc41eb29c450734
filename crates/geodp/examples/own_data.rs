//! Trains on records of your own: implement `Samples`, plan, and step.
//!
//! `cargo run --release -p geodp --example own_data`

use geodp::engine::{Engine, NetworkEngine};
use geodp::params::PlanParams;
use geodp::statement::Statement;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_mechanism::NoiseSource;
use geodp_nn::{NetworkSpec, Samples};

/// Points in a square; the label says whether a point lies in the circle.
struct Points(Vec<[f32; 2]>);

impl Samples for Points {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn input_len(&self) -> usize {
        2
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.0[index]);
    }
    fn label(&self, index: usize) -> u32 {
        let [x, y] = self.0[index];
        u32::from(x * x + y * y < 0.5)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let grid = |side: i32| {
        let place = move |i: i32| 2.0 * i as f32 / side as f32 - 1.0;
        Points((0..side * side).map(|i| [place(i / side), place(i % side)]).collect())
    };
    let (train, test) = (grid(100), grid(41));
    let network = NetworkSpec::mlp(2, &[32], 2).build()?;
    let engine = NetworkEngine::new(&network, &train, Some(&test));

    let mut params = PlanParams::default();
    params.privacy.epsilon = Some(2.0);
    params.train.batch = Some(200);
    params.train.epochs = Some(40);
    params.train.learning_rate = Some(2.0);
    let plan = params.check(engine.facts())?;

    let noise = NoiseSource::from_os()?;
    let mut trainer = Trainer::new(plan, &engine, network.init(0), noise)?;
    while trainer.step(&mut Silent)?.is_some() {}
    if let Some(result) = trainer.evaluate()? {
        println!("accuracy {:.3}", result.accuracy());
    }
    print!("{}", Statement::new(trainer.plan(), trainer.steps_done(), trainer.selection())?);
    Ok(())
}
