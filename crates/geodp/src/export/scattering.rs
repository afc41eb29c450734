//! What stands between stored images and the network: views and scattering features, as ONNX operators.
//!
//! The transform is the one of [`geodp_scattering::Matrices`]: padding by `Gather`, Fourier transforms by
//! `MatMul`, filters by `Mul`, moduli by `Sqrt`. Planes of a record stand on an axis of their own,
//! N × channels × planes × height × width: first the image and its 8 fine moduli, then what the 8 coarse
//! filters make of each of these 9. Filter by filter, so that what is kept in between does not grow with
//! their number.

use super::graph::{Graph, Type};
use super::layers;
use super::onnx::Attribute;
use crate::Error;
use geodp_data::{FeatureSpec, Shape, Storage, View};
use geodp_scattering::{Axis, Matrices, Matrix, Scattering};

/// All views of a batch, one view of all records after the other.
pub(super) fn views(graph: &mut Graph, image: &str, views: &[View], shape: Shape) -> String {
    let mut made = Vec::new();
    for view in views {
        let rows = gather(graph, image, &view.rows(shape.height), 2);
        made.push(gather(graph, &rows, &view.columns(shape.width), 3));
    }
    graph.concat_on(&made, 0)
}

/// The mean over views of what the network says of each.
pub(super) fn mean_over_views(
    graph: &mut Graph,
    value: &str,
    count: usize,
    width: usize,
) -> String {
    let dims = graph.integers(&[3], &[count as i64, -1, width as i64]);
    let apart = graph.node("Reshape", &[value, &dims], &[]);
    let flags = [("axes", Attribute::Ints(vec![0])), ("keepdims", Attribute::Int(0))];
    graph.node("ReduceMean", &[&apart], &flags)
}

/// The features of images of this shape.
///
/// # Errors
/// Images that have no features.
pub(super) fn features(
    graph: &mut Graph,
    spec: &FeatureSpec,
    image: &str,
    shape: Shape,
) -> Result<String, Error> {
    let out = spec.shape(shape)?;
    let FeatureSpec::Scattering { groups, .. } = spec;
    let refuse = |e: geodp_scattering::ScatteringError| Error::Export(e.to_string());
    let matrices = Scattering::new(shape.height, shape.width).map_err(refuse)?.matrices();
    let planes = transform(graph, &matrices, image, shape);
    let flat = [out.channels, out.height, out.width];
    let whole = graph.reshape(&planes, &flat);
    let value = layers::normalised_groups(graph, &whole, "scattering", &flat, *groups);
    Ok(kept(graph, spec, value))
}

/// Features as they are kept in memory: halves are rounded, and to round them twice changes nothing.
pub(super) fn kept(graph: &mut Graph, spec: &FeatureSpec, value: String) -> String {
    let FeatureSpec::Scattering { storage, .. } = spec;
    match storage {
        Storage::Single => value,
        Storage::Half => {
            let half = graph.cast(&value, Type::Half);
            graph.cast(&half, Type::Float)
        }
    }
}

/// N × channels × 81 × height/4 × width/4.
fn transform(graph: &mut Graph, matrices: &Matrices, image: &str, shape: Shape) -> String {
    let Matrices { rows, columns, first, second } = matrices;
    let rows_padded = gather(graph, image, &rows.reflected, 2);
    let padded = gather(graph, &rows_padded, &columns.reflected, 3);
    let dims = [shape.channels, 1, rows.reflected.len(), columns.reflected.len()];
    let padded = graph.reshape(&padded, &dims);

    let low_full = Sandwich::real(graph, "low_full", [rows, columns], |axis| &axis.low_full);
    let low_half = Sandwich::real(graph, "low_half", [rows, columns], |axis| &axis.low_half);
    let forward = Sandwich::new(graph, "forward", [rows, columns], |axis| &axis.forward);
    let inverse = Sandwich::new(graph, "inverse", [rows, columns], |axis| &axis.inverse);
    let half = Sandwich::new(graph, "inverse_half", [rows, columns], |axis| &axis.inverse_half);

    let spectrum = forward.of_real(graph, &padded);
    let fine: Vec<&Matrix> = first.iter().collect();
    let fine = moduli(graph, &spectrum, ("fine", &fine), &inverse);
    let planes = graph.concat_on(&[padded, fine.clone()], 2);
    let mut smooth = vec![low_full.real_of_real(graph, &planes)];

    let fine_spectrum = forward.of_real(graph, &fine);
    let spectra = [0, 1]
        .map(|part| graph.concat_on(&[spectrum[part].clone(), fine_spectrum[part].clone()], 2));
    let mut coarse = Vec::new();
    for (theta, filter) in second.iter().enumerate() {
        let modulus = moduli(graph, &spectra, (&format!("coarse{theta}"), &[filter]), &half);
        let low = low_half.real_of_real(graph, &modulus);
        let axis = graph.integers(&[1], &[3]);
        coarse.push(graph.node("Unsqueeze", &[&low, &axis], &[]));
    }
    // Planes × angles become planes: the angle of the coarse filter runs fastest.
    let coarse = graph.concat_on(&coarse, 3);
    let outputs = [rows, columns].map(|axis| axis.low_half.dims[0]);
    let count = (1 + first.len()) * second.len();
    smooth.push(graph.reshape(&coarse, &[shape.channels, count, outputs[0], outputs[1]]));
    graph.concat_on(&smooth, 2)
}

/// |inverse of spectrum∘filter|, for several filters of one spectrum or one filter of several spectra.
fn moduli(
    graph: &mut Graph,
    spectrum: &[String; 2],
    (name, filters): (&str, &[&Matrix]),
    inverse: &Sandwich,
) -> String {
    let [height, width] = filters[0].dims;
    let values: Vec<f32> =
        filters.iter().flat_map(|filter| filter.values.iter().copied()).collect();
    let name = format!("scattering.{name}");
    let filters = graph.floats(&name, &[filters.len(), height, width], &values);
    let product = [0, 1].map(|part| graph.node("Mul", &[&spectrum[part], &filters], &[]));
    let squares = inverse.of_complex(graph, &product);
    let squares = squares.map(|part| graph.node("Mul", &[&part, &part], &[]));
    let sum = graph.node("Add", &[&squares[0], &squares[1]], &[]);
    graph.node("Sqrt", &[&sum], &[])
}

/// L·U·R of planes U, with complex L and R: names of their real and imaginary parts.
struct Sandwich {
    left: [String; 2],
    right: [String; 2],
}

impl Sandwich {
    fn new(graph: &mut Graph, name: &str, axes: [&Axis; 2], of: fn(&Axis) -> &[Matrix; 2]) -> Self {
        let mut constant = |side: &str, part: usize, matrix: &Matrix| {
            let part = ["re", "im"][part];
            let name = format!("scattering.{name}.{side}.{part}");
            graph.floats(&name, &matrix.dims, &matrix.values)
        };
        Sandwich {
            left: [0, 1].map(|part| constant("left", part, &of(axes[0])[part])),
            right: [0, 1].map(|part| constant("right", part, &of(axes[1])[part].transposed())),
        }
    }

    /// Of matrices without an imaginary part.
    fn real(graph: &mut Graph, name: &str, axes: [&Axis; 2], of: fn(&Axis) -> &Matrix) -> Self {
        let [left, right] = [of(axes[0]).clone(), of(axes[1]).transposed()];
        let left = graph.floats(&format!("scattering.{name}.left"), &left.dims, &left.values);
        let right = graph.floats(&format!("scattering.{name}.right"), &right.dims, &right.values);
        Sandwich { left: [left, String::new()], right: [right, String::new()] }
    }

    fn real_of_real(&self, graph: &mut Graph, planes: &str) -> String {
        let half = graph.node("MatMul", &[planes, &self.right[0]], &[]);
        graph.node("MatMul", &[&self.left[0], &half], &[])
    }

    fn of_real(&self, graph: &mut Graph, planes: &str) -> [String; 2] {
        let half = [0, 1].map(|part| graph.node("MatMul", &[planes, &self.right[part]], &[]));
        product(graph, &self.left, &half)
    }

    fn of_complex(&self, graph: &mut Graph, planes: &[String; 2]) -> [String; 2] {
        let half = product(graph, planes, &self.right);
        product(graph, &self.left, &half)
    }
}

/// The product of complex matrices: (a + ib)(c + id) = ac − bd + i(ad + bc).
fn product(graph: &mut Graph, [a, b]: &[String; 2], [c, d]: &[String; 2]) -> [String; 2] {
    let mut times = |left: &String, right: &String| graph.node("MatMul", &[left, right], &[]);
    let (ac, bd, ad, bc) = (times(a, c), times(b, d), times(a, d), times(b, c));
    [graph.node("Sub", &[&ac, &bd], &[]), graph.node("Add", &[&ad, &bc], &[])]
}

fn gather(graph: &mut Graph, value: &str, places: &[usize], axis: i64) -> String {
    let places: Vec<i64> = places.iter().map(|&place| place as i64).collect();
    let places = graph.integers(&[places.len()], &places);
    graph.node("Gather", &[value, &places], &[("axis", Attribute::Int(axis))])
}
