//! The numbers behind the estimate.

/// One token in the tables below.
pub(super) const UNIT: u32 = 256;

const LOWER: usize = 0;
const UPPER: usize = 1;
const DIGIT: usize = 2;
/// Blanks and tabs; from here on, a byte equal to the one before it is looked up under [`SAME`].
pub(super) const SPACE: usize = 3;
const LINE: usize = 4;
const PUNCT: usize = 5;
const BACKSLASH: usize = 6;
/// What stands before is no ASCII.
pub(super) const WIDE: usize = 7;
/// What stands before is the very same mark, blank or line break: `----`, indents, empty lines.
pub(super) const SAME: usize = 8;

/// The class of each ASCII byte.
pub(super) static CLASS: [usize; 128] = classes();

const fn classes() -> [usize; 128] {
    let mut table = [PUNCT; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b' ' | b'\t' => SPACE,
            b'\n' | b'\r' => LINE,
            b'\\' => BACKSLASH,
            _ => PUNCT,
        };
        byte += 1;
    }
    table
}

/// `PAIR[what stands before][what stands here]`.
#[rustfmt::skip]
pub(super) static PAIR: [[u16; 7]; 9] = [
    // lower upper digit space line punct backslash
    [    27,  180,  200,   30,  180, 180, 200], // lower
    [    27,   60,  200,   30,  180, 180, 200], // upper
    [   200,  200,   85,   50,  180, 180, 200], // digit
    [   180,  200,  200,   20,  100, 180, 200], // space
    [   180,  200,  200,   60,  100, 180, 200], // line
    [   120,  150,  200,   60,  120, 120, 200], // punct
    [   200,  200,  200,  100,  180, 180, 100], // backslash
    [   200,  200,  200,   60,  180, 180, 200], // wide
    [     0,    0,    0,    5,   60,  30, 100], // same
];

/// The weight of a character beyond ASCII.
pub(super) fn of_wide(c: char) -> u16 {
    match u32::from(c) {
        0x00C0..=0x024F => 180,
        0x0400..=0x052F => 75,
        0x0590..=0x08FF => 100,
        0x0900..=0x0DFF => 110,
        0x0E00..=0x0FFF => 110,
        0x1100..=0x11FF | 0xAC00..=0xD7AF => 170,
        0x3040..=0x30FF => 170,
        0x3000..=0x303F | 0xFF00..=0xFFEF => 220,
        0x3400..=0x4DBF | 0x4E00..=0x9FFF => 200,
        0x200B..=0x200F | 0xFE00..=0xFE0F => 256,
        0x1F3FB..=0x1F3FF => 300,
        0x1F000..=0x1FAFF => 400,
        0x2000..=0x2BFF => 250,
        0x20000..=0x3FFFF => 700,
        _ => 256,
    }
}
