//! The `.npy` format, as far as recordings and answers need it: C order, little-endian, unsigned bytes, 16-bit words and strings.

const MAGIC: &[u8] = b"\x93NUMPY";
const MAX_HEADER: usize = 16 * 1024;

/// An array read from `.npy` bytes.
#[derive(Debug, PartialEq)]
pub struct Array<'a> {
    /// Element type as NumPy spells it: `|u1`, `<u2` or `<U{n}`.
    pub dtype: String,
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Elements in C order.
    pub data: &'a [u8],
}

/// Parses `.npy` bytes; the data must fill them exactly.
pub fn parse(bytes: &[u8]) -> Result<Array<'_>, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("not a .npy file")?;
    let (version, rest) = rest.split_at_checked(2).ok_or("the header is cut off")?;
    let (length, rest) = match version {
        [1, 0] => {
            let (n, rest) = rest.split_first_chunk::<2>().ok_or("the header is cut off")?;
            (u16::from_le_bytes(*n) as usize, rest)
        }
        [2 | 3, 0] => {
            let (n, rest) = rest.split_first_chunk::<4>().ok_or("the header is cut off")?;
            (u32::from_le_bytes(*n) as usize, rest)
        }
        _ => return Err(format!("version {version:?} of .npy is not supported")),
    };
    if length > MAX_HEADER {
        return Err(format!("the header has {length} bytes, at most {MAX_HEADER} are read"));
    }
    let (header, data) = rest.split_at_checked(length).ok_or("the header is cut off")?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is no UTF-8")?;
    if field(header, "fortran_order")?.trim() != "False" {
        return Err("only C order is supported".to_owned());
    }
    let dtype = field(header, "descr")?.trim().trim_matches(['\'', '"']).to_owned();
    let shape = shape(field(header, "shape")?)?;
    let width = element_width(&dtype)?;
    let size = shape
        .iter()
        .try_fold(width, |n, axis| n.checked_mul(*axis))
        .ok_or("the shape is too large")?;
    if size != data.len() {
        return Err(format!(
            "{dtype} {shape:?} needs {size} bytes of data, there are {}",
            data.len()
        ));
    }
    Ok(Array { dtype, shape, data })
}

/// Writes bytes as a `|u1` array.
pub fn write_u8(shape: &[usize], data: &[u8]) -> Vec<u8> {
    write("|u1", shape, data)
}

/// Writes strings as a one-dimensional `<U{n}` array, n being the longest one's characters.
pub fn write_strings(strings: &[String]) -> Vec<u8> {
    let width = strings.iter().map(|s| s.chars().count()).max().unwrap_or(0).max(1);
    let mut data = Vec::with_capacity(strings.len() * width * 4);
    for text in strings {
        let padded = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(width);
        data.extend(padded.flat_map(u32::to_le_bytes));
    }
    write(&format!("<U{width}"), &[strings.len()], &data)
}

/// Writes little-endian elements in C order as an array of this type.
pub fn write(dtype: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    // A tuple of one keeps its comma.
    let axes = if axes.len() == 1 {
        format!("{},", axes[0])
    } else {
        axes.join(", ")
    };
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({axes}), }}");
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut out = Vec::with_capacity(MAGIC.len() + 4 + header.len() + data.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    out
}

impl Array<'_> {
    /// The elements of a `<u2` array.
    pub fn words(&self) -> Result<Vec<u16>, String> {
        self.expect_type("<u2")?;
        Ok(self
            .data
            .as_chunks::<2>()
            .0
            .iter()
            .map(|b| u16::from_le_bytes(*b))
            .collect())
    }

    /// The elements of a `|u1` array.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        self.expect_type("|u1")?;
        Ok(self.data.to_vec())
    }

    /// The elements of a one-dimensional string array, without their padding.
    pub fn strings(&self) -> Result<Vec<String>, String> {
        let width = element_width(&self.dtype)?;
        if !self.dtype.starts_with("<U") || width == 0 {
            return Err(format!("has type {}, expected strings", self.dtype));
        }
        let text = |cell: &[u8]| -> Result<String, String> {
            let codes = cell
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| u32::from_le_bytes(*b))
                .take_while(|c| *c != 0);
            codes
                .map(|c| char::from_u32(c).ok_or_else(|| format!("{c:#x} is no character")))
                .collect()
        };
        self.data.chunks_exact(width).map(text).collect()
    }

    fn expect_type(&self, dtype: &str) -> Result<(), String> {
        if self.dtype == dtype {
            Ok(())
        } else {
            Err(format!("has type {}, expected {dtype}", self.dtype))
        }
    }
}

fn element_width(dtype: &str) -> Result<usize, String> {
    match dtype {
        "|u1" => Ok(1),
        "<u2" => Ok(2),
        _ => match dtype.strip_prefix("<U").and_then(|n| n.parse::<usize>().ok()) {
            Some(n) if n <= 1024 => Ok(4 * n),
            _ => Err(format!("type {dtype:?} is not supported")),
        },
    }
}

/// The text of one value of the header's dict, up to the comma that ends it.
fn field<'h>(header: &'h str, name: &str) -> Result<&'h str, String> {
    let missing = || format!("the header has no {name:?}");
    let (_, after) = header.split_once(&format!("'{name}':")).ok_or_else(missing)?;
    let end = match after.find('(') {
        Some(open) if after[..open].trim().is_empty() => after.find(')').map(|i| i + 1),
        _ => after.find([',', '}']),
    };
    end.map(|end| &after[..end]).ok_or_else(missing)
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let inner = text
        .trim()
        .strip_prefix('(')
        .and_then(|t| t.strip_suffix(')'))
        .ok_or("the shape is no tuple")?;
    let axes = inner.split(',').map(str::trim).filter(|t| !t.is_empty());
    axes.map(|t| t.parse().map_err(|_| format!("{t:?} is no axis size")))
        .collect()
}
