"""Writes the NPY files of tests/npy.rs with NumPy itself. Usage: python3 make_npy.py (needs numpy)"""
import pathlib

import numpy as np

out = pathlib.Path(__file__).parent / "npy"
out.mkdir(exist_ok=True)

numbers = np.array([[0, 1, 2], [3, 100, 127]])
for dtype in ["u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8", "?", "<f2", ">f4", "<c8"]:
    name = dtype.strip("<").replace(">", "big_endian_").replace("?", "b1")
    np.save(out / f"{name}.npy", numbers.astype(dtype))
np.save(out / "fortran.npy", np.asfortranarray(numbers.astype("<f4")))
np.save(out / "fortran_1d.npy", np.asfortranarray(np.array([1, 0], "<i8")))
np.save(out / "structured.npy", np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f4")]))
np.save(out / "scalar.npy", np.array(3.5, "<f4"))
np.save(out / "images.npy", np.arange(2 * 3 * 2 * 2, dtype="u1").reshape(2, 3, 2, 2))
np.save(out / "overflow.npy", np.array([[1.0, 2.0], [3.0, 1e300]], "<f8"))
for version in [(2, 0), (3, 0)]:
    with open(out / f"version{version[0]}.npy", "wb") as file:
        np.lib.format.write_array(file, numbers.astype("<f4"), version=version)
