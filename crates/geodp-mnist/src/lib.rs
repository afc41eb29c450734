//! The 60,000 training images of MNIST (Y. LeCun, C. Cortes, C. Burges), as gzip of the IDX file.
//!
//! Nothing else: registries take packages of up to 10 MB, and these are 9.6. Everything that reads them
//! stands in geodp-data. The file has several members (`assets/cut.py` makes them), because one can be
//! unpacked by one thread only, and that was two thirds of what a training takes to start.

/// `train-images-idx3-ubyte.gz`.
pub const TRAIN_IMAGES: &[u8] = include_bytes!("../assets/train-images-idx3-ubyte.gz");

/// Bytes of each member: of the header's, then of those of [`MEMBER_IMAGES`] images.
const MEMBERS: [usize; 13] = [
    33, 803_854, 803_782, 799_997, 798_404, 799_215, 793_149, 798_267, 806_880, 802_383, 806_063,
    803_725, 804_222,
];

/// Images of a member.
pub const MEMBER_IMAGES: usize = 5000;

/// The members with images, each a gzip file of its own, of their pixels alone.
pub fn image_members() -> impl Iterator<Item = &'static [u8]> {
    let mut rest = TRAIN_IMAGES;
    let members = MEMBERS.iter().map(move |&len| {
        let (member, after) = rest.split_at(len);
        rest = after;
        member
    });
    members.skip(1)
}
