//! PNG and JPEG to bytes, by the decoders that the `image` crate uses itself: without the rest of it,
//! above all its colour management, they build in a tenth of the time.

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// An image whose header was read.
pub(super) enum Decoder<'a> {
    Png(Box<png::Reader<Cursor<&'a [u8]>>>),
    Jpeg(Box<JpegDecoder<Cursor<&'a [u8]>>>, [usize; 2]),
}

/// Pixel after pixel, `channels` bytes each: grey, grey and alpha, RGB, or RGB and alpha.
pub(super) struct Decoded {
    pub(super) channels: usize,
    pub(super) bytes: Vec<u8>,
}

impl<'a> Decoder<'a> {
    /// Reads the header; the first bytes decide the format, whatever the file is called.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.starts_with(b"\x89PNG") {
            let mut decoder = png::Decoder::new(Cursor::new(bytes));
            decoder.set_transformations(png::Transformations::normalize_to_color8());
            let reader = decoder.read_info().map_err(|error| error.to_string())?;
            return Ok(Decoder::Png(Box::new(reader)));
        }
        if bytes.starts_with(&[0xff, 0xd8]) {
            let mut decoder = JpegDecoder::new(Cursor::new(bytes));
            decoder.decode_headers().map_err(|error| error.to_string())?;
            let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
            let wanted = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
            let size = decoder.dimensions().ok_or("no size")?;
            // Without its vector code: whether that gives the same bits is not promised.
            let options = DecoderOptions::default().set_use_unsafe(false);
            let options = options.jpeg_set_out_colorspace(wanted);
            let decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
            return Ok(Decoder::Jpeg(Box::new(decoder), [size.1, size.0]));
        }
        Err("it starts as neither PNG nor JPEG does".to_owned())
    }

    /// Height and width.
    pub(super) fn size(&self) -> (usize, usize) {
        match self {
            Decoder::Png(reader) => {
                let (width, height) = reader.info().size();
                (height as usize, width as usize)
            }
            Decoder::Jpeg(_, [height, width]) => (*height, *width),
        }
    }

    /// The pixels.
    pub(super) fn decode(self) -> Result<Decoded, String> {
        let (height, width) = self.size();
        let bytes = match self {
            Decoder::Png(mut reader) => {
                let length = reader.output_buffer_size().ok_or("too large")?;
                let mut bytes = vec![0; length];
                reader.next_frame(&mut bytes).map_err(|error| error.to_string())?;
                bytes
            }
            Decoder::Jpeg(mut decoder, _) => decoder.decode().map_err(|error| error.to_string())?,
        };
        let channels = bytes.len() / (height * width).max(1);
        if !(1..=4).contains(&channels) || bytes.len() != channels * height * width {
            return Err(format!("{} bytes for {height} × {width} pixels", bytes.len()));
        }
        Ok(Decoded { channels, bytes })
    }
}
