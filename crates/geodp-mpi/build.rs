//! With the feature `mpi`: compiles `src/shim.c` by the system's MPI compiler, and links its library.

fn main() {
    println!("cargo:rerun-if-changed=src/shim.c");
    #[cfg(feature = "mpi")]
    with_mpi();
}

#[cfg(feature = "mpi")]
fn with_mpi() {
    let library = build_probe_mpi::probe().unwrap_or_else(|tried| {
        let tried: Vec<String> = tried.iter().map(ToString::to_string).collect();
        panic!(
            "no MPI library found: install one (Debian, Ubuntu: openmpi-bin libopenmpi-dev) or name \
             its compiler in $MPICC. Tried:\n{}",
            tried.join("\n")
        )
    });
    let mut build = cc::Build::new();
    match &library.mpicc {
        Some(mpicc) => build.compiler(mpicc),
        None => build.includes(&library.include_paths),
    };
    build.file("src/shim.c").compile("geodp_mpi_shim");
    for folder in &library.lib_paths {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
}
