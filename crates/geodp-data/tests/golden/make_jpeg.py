"""The two images of tests/images.rs: 8 × 8 pixels of one grey, and of one colour.

Usage: pip install pillow; python3 make_jpeg.py
"""
import pathlib

from PIL import Image

here = pathlib.Path(__file__).parent
Image.new("L", (8, 8), 100).save(here / "grey.jpg", quality=95)
Image.new("RGB", (8, 8), (200, 60, 30)).save(here / "colour.jpg", quality=95)
