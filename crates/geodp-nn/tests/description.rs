//! Networks as TOML, parameters as PyTorch names them, first weights, and what is refused.

use geodp_nn::{Error, NetworkSpec, ResnetSpec};

#[test]
fn a_network_is_its_toml() {
    let text = r#"
        input = [1, 28, 28]
        loss = "softmax_cross_entropy"
        layers = [
            { type = "conv2d", name = "conv1", outputs = 10, kernel = 5 },
            { type = "max_pool", kernel = 2 },
            { type = "relu" },
            { type = "conv2d", name = "conv2", outputs = 20, kernel = 5 },
            { type = "max_pool", kernel = 2 },
            { type = "relu" },
            { type = "flatten" },
            { type = "linear", name = "fc1", outputs = 50 },
            { type = "relu" },
            { type = "linear", name = "fc2", outputs = 10 },
        ]
    "#;
    let spec: NetworkSpec = toml::from_str(text).unwrap();
    assert_eq!(spec, NetworkSpec::cnn());
    let resnet = NetworkSpec::resnet(&ResnetSpec { groups: Some(4), ..Default::default() });
    for spec in [spec, resnet, NetworkSpec::logistic(4, 2), NetworkSpec::mlp(4, &[3], 2)] {
        let again: NetworkSpec = toml::from_str(&toml::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
    }
}

#[test]
fn what_mixes_samples_cannot_be_said() {
    let text = |layer: &str| {
        format!("input = [4]\nloss = \"softmax_cross_entropy\"\nlayers = [{{ {layer} }}]")
    };
    for layer in ["type = \"batch_norm\"", "type = \"linear\", outputs = 2, momentum = 0.1"] {
        assert!(toml::from_str::<NetworkSpec>(&text(layer)).is_err(), "{layer}");
    }
    assert!(toml::from_str::<NetworkSpec>(&text("type = \"linear\", outputs = 2")).is_ok());
}

#[test]
fn parameters_have_pytorch_names_and_places() {
    let network = NetworkSpec::cnn().build().unwrap();
    let got: Vec<(&str, &[usize], usize)> =
        network.parameters().iter().map(|p| (&p.name[..], &p.shape[..], p.offset)).collect();
    let expected: [(&str, &[usize], usize); 8] = [
        ("conv1.weight", &[10, 1, 5, 5], 0),
        ("conv1.bias", &[10], 250),
        ("conv2.weight", &[20, 10, 5, 5], 260),
        ("conv2.bias", &[20], 5260),
        ("fc1.weight", &[50, 320], 5280),
        ("fc1.bias", &[50], 21_280),
        ("fc2.weight", &[10, 50], 21_330),
        ("fc2.bias", &[10], 21_830),
    ];
    assert_eq!(got, expected);
    let resnet = NetworkSpec::resnet(&ResnetSpec::default()).build().unwrap();
    let names: Vec<&str> = resnet.parameters().iter().map(|p| &p.name[..]).collect();
    assert_eq!(
        names[..4],
        ["stem.weight", "stem.bias", "block1.conv1.weight", "block1.conv1.bias"]
    );
    assert!(names.contains(&"block3.shortcut.weight") && names.ends_with(&["fc.bias"]));
}

/// Uniform in ±1/√fan_in: mean and variance within six standard errors (false alarm < 1e-8 each,
/// and the seed is fixed), bounds kept.
#[test]
fn first_weights_are_pytorchs_defaults() {
    let network = NetworkSpec::cnn().build().unwrap();
    let weights = network.init(42);
    assert_eq!(weights, network.init(42));
    assert_ne!(weights, network.init(43));
    for (parameter, fan_in) in network.parameters().iter().zip([25, 25, 250, 250, 320, 320, 50, 50])
    {
        let values = &weights[parameter.range()];
        let bound = 1.0 / f64::from(fan_in).sqrt();
        assert!(values.iter().all(|&w| f64::from(w).abs() <= bound), "{}", parameter.name);
        let n = values.len() as f64;
        let mean = values.iter().map(|&w| f64::from(w)).sum::<f64>() / n;
        let variance = values.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>() / n;
        let expected = bound * bound / 3.0;
        assert!(mean.abs() <= 6.0 * (expected / n).sqrt(), "{}", parameter.name);
        // The square of a uniform value has variance bound⁴·4/45.
        let allowed = 6.0 * (4.0 / 45.0 / n).sqrt() * bound * bound;
        assert!((variance - expected).abs() <= allowed, "{}", parameter.name);
    }
    let norm = ResnetSpec { groups: Some(2), ..Default::default() };
    let network = NetworkSpec::resnet(&norm).build().unwrap();
    let weights = network.init(1);
    for parameter in network.parameters().iter().filter(|p| p.name.contains("norm")) {
        let value = if parameter.name.ends_with("weight") { 1.0 } else { 0.0 };
        assert!(weights[parameter.range()].iter().all(|&w| w == value));
    }
}

fn refused(layers: &str) -> String {
    let text = format!("input = [2, 8, 8]\nloss = \"softmax_cross_entropy\"\nlayers = [{layers}]");
    match toml::from_str::<NetworkSpec>(&text).unwrap().build() {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{layers} was accepted"),
    }
}

#[test]
fn errors_name_the_layer() {
    let end = "{ type = \"flatten\" }, { type = \"linear\", outputs = 3 }";
    let conv = |rest: &str| format!("{{ type = \"conv2d\", name = \"c\", {rest} }}, {end}");
    assert_eq!(
        refused("{ type = \"linear\", name = \"fc\", outputs = 3 }"),
        "layer fc (linear): it needs a flat input: put a flatten layer before it \
         (its input is 2×8×8)"
    );
    assert!(refused(&conv("outputs = 1, kernel = 9")).starts_with("layer c (conv2d)"));
    assert!(refused(&conv("outputs = 1, kernel = 0")).contains("kernel must be at least 1"));
    assert!(refused(&conv("outputs = 0, kernel = 1")).contains("outputs"));
    assert!(refused(&conv("outputs = 1, kernel = 3, stride = 0")).contains("stride"));
    assert!(refused(&conv("outputs = 99999999, kernel = 3")).contains("too large"));
    assert!(refused(&conv("outputs = 1, kernel = 3, padding = 9999999")).contains("too large"));
    assert!(refused(&format!("{{ type = \"max_pool\", kernel = 9 }}, {end}")).contains("max_pool"));
    assert!(refused(&format!("{{ type = \"group_norm\", groups = 3 }}, {end}")).contains("divide"));
    assert!(refused(&format!("{end}, {{ type = \"global_avg_pool\" }}")).contains("2 (global"));
    let body =
        "{ type = \"residual\", name = \"r\", body = [{ type = \"max_pool\", kernel = 2 }] }";
    assert!(refused(body).contains("body gives 2×4×4 but its shortcut gives 2×8×8"));
    assert!(refused("{ type = \"relu\" }").contains("must be flat"));
    assert!(refused("{ type = \"flatten\" }").contains("no parameters"));
    let twice = "{ type = \"linear\", name = \"a\", outputs = 3 }";
    assert!(refused(&format!("{{ type = \"flatten\" }}, {twice}, {twice}")).contains("a.weight"));
    assert!(refused(&format!("{end}, {{ type = \"linear\", outputs = 1 }}")).contains("softmax"));
    let mut spec = NetworkSpec::logistic(3, 2);
    spec.input = vec![];
    assert!(matches!(spec.build(), Err(Error::Network(_))));
    spec.input = vec![usize::MAX, 2, 2];
    assert!(spec.build().is_err());
}

/// Peers are measured on the description in benchmarks/, so it must be the preset.
#[test]
fn the_benchmarks_describe_the_presets() {
    let read = |name: &str| {
        let path = format!("{}/../../benchmarks/peers/models/{name}", env!("CARGO_MANIFEST_DIR"));
        toml::from_str::<NetworkSpec>(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let parameters = |spec: &NetworkSpec| format!("{:?}", spec.build().unwrap().parameters());
    let resnet = NetworkSpec::resnet(&ResnetSpec::default());
    assert_eq!(parameters(&read("resnet.toml")), parameters(&resnet));
    assert_eq!(
        read("resnet.toml").build().unwrap().flops_per_sample(),
        resnet.build().unwrap().flops_per_sample()
    );
    assert_eq!(parameters(&read("cnn.toml")), parameters(&NetworkSpec::cnn()));
}
