use proptest::prelude::*;

use super::counts::{ActivationCounts, CountsError, MoeLayers};
use super::geometry::Geometry;
use super::npy::{Array, Dtype, NpyError, counts_from_npy, counts_of_layers_from_npy};

/// An `.npy` file as numpy writes it: header padded to a multiple of 64.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(data);
    out
}

fn small() -> Geometry {
    Geometry::new(2, 4, 2).unwrap()
}

#[test]
fn counts_prompt_rows_of_every_element_type() {
    let ids: [u8; 12] = [0, 1, 2, 3, 1, 2, 0, 3, 3, 0, 1, 1];
    let expected = ActivationCounts::from_rows(&small(), &ids[..8], 2).unwrap();
    let wide: Vec<u8> = ids.iter().flat_map(|i| u16::from(*i).to_le_bytes()).collect();
    let signed: Vec<u8> = ids.iter().flat_map(|i| i32::from(*i).to_le_bytes()).collect();
    for file in [
        npy("|u1", "(3, 2, 2)", &ids),
        npy("<u2", "(3, 2, 2)", &wide),
        npy("<i4", "(3,2,2,)", &signed),
    ] {
        assert_eq!(counts_from_npy(&file, &small(), ..2).unwrap(), expected);
        assert_eq!(counts_from_npy(&file, &small(), ..).unwrap().tokens(), 3);
        assert_eq!(counts_from_npy(&file, &small(), 3..).unwrap().tokens(), 0);
        assert_eq!(counts_from_npy(&file, &small(), 2..=2).unwrap().layer(0), [1, 0, 0, 1]);
    }
}

#[test]
fn reads_versions_two_and_any_key_order() {
    let header = b"{\"shape\": (4,), 'fortran_order': False, 'descr': '|u1'}";
    let mut file = b"\x93NUMPY\x02\x00".to_vec();
    file.extend_from_slice(&(header.len() as u32).to_le_bytes());
    file.extend_from_slice(header);
    file.extend_from_slice(&[1, 2, 3, 4]);
    let array = Array::parse(&file).unwrap();
    assert_eq!(
        (array.dtype, array.shape.as_slice(), array.data),
        (Dtype::U8, &[4][..], &[1, 2, 3, 4][..])
    );
}

#[test]
fn says_what_is_wrong() {
    let good = npy("|u1", "(1, 2, 2)", &[0, 1, 2, 3]);
    let refuse = |file: &[u8]| counts_from_npy(file, &small(), ..).unwrap_err();
    assert!(matches!(refuse(b""), NpyError::Malformed(_)));
    assert!(matches!(refuse(&good[..40]), NpyError::Malformed(_)));
    assert!(matches!(
        refuse(&good[..good.len() - 1]),
        NpyError::Length { got: 3, expected: 4 }
    ));
    assert!(matches!(refuse(&npy("<f4", "(1, 2, 2)", &[0; 16])), NpyError::Dtype(d) if d == "<f4"));
    assert!(matches!(refuse(&npy(">u2", "(1, 2, 2)", &[0; 8])), NpyError::Dtype(_)));
    assert!(matches!(
        refuse(&npy("|u1", "(1, 2, 3)", &[0; 6])),
        NpyError::Shape { .. }
    ));
    assert!(matches!(refuse(&npy("|u1", "(4,)", &[0; 4])), NpyError::Shape { .. }));
    assert!(matches!(
        refuse(&npy("|u1", "(99999999999999999999,)", &[])),
        NpyError::Malformed(_)
    ));
    assert!(matches!(
        refuse(&npy("|u1", "(4294967296, 4294967296, 9)", &[])),
        NpyError::Malformed(_)
    ));
    assert!(matches!(
        refuse(&npy("|u1", "(1,1,1,1,1,1,1,1,1)", &[1])),
        NpyError::Malformed(_)
    ));
    assert!(matches!(
        refuse(&npy("|u1", "(1, 2, 2)", &[0, 1, 4, 3])),
        NpyError::Counts(CountsError::ExpertOutOfRange {
            token: 0,
            layer: 1,
            experts: 4
        })
    ));
    assert!(matches!(
        counts_from_npy(&good, &small(), ..2),
        Err(NpyError::Rows {
            start: 0,
            end: 2,
            rows: 1
        })
    ));
    let fortran = String::from_utf8_lossy(&good[10..]).replace("False", "True ");
    let mut file = good[..10].to_vec();
    file.extend_from_slice(fortran.as_bytes());
    assert!(matches!(refuse(&file), NpyError::Malformed("array is not in C order")));
}

/// Two dense layers before the MoE layers, as engines return them for models that begin dense.
#[test]
fn dense_layers_are_named_and_left_out() {
    let ids: [u8; 16] = [9, 9, 9, 9, 0, 1, 2, 3, 255, 7, 0, 0, 1, 2, 0, 3];
    let expected = ActivationCounts::from_rows(&small(), &[0u8, 1, 2, 3, 1, 2, 0, 3], 2).unwrap();
    let layers = MoeLayers::after_dense(&small(), 2);
    let wide: Vec<u8> = ids.iter().flat_map(|i| u16::from(*i).to_le_bytes()).collect();
    let signed: Vec<u8> = ids.iter().flat_map(|i| (i32::from(*i) - 1).to_le_bytes()).collect();
    for file in [npy("|u1", "(2, 4, 2)", &ids), npy("<u2", "(2, 4, 2)", &wide)] {
        assert_eq!(
            counts_of_layers_from_npy(&file, &small(), &layers, ..).unwrap(),
            expected
        );
        let error = counts_from_npy(&file, &small(), ..).unwrap_err().to_string();
        assert!(
            error.contains("[rows, 2, 2] expected") && error.contains("list of MoE layers"),
            "{error}"
        );
    }
    let error = counts_of_layers_from_npy(&npy("<i4", "(2, 4, 2)", &signed), &small(), &layers, 1..).unwrap_err();
    assert!(matches!(
        error,
        NpyError::Counts(CountsError::ExpertOutOfRange { token: 0, layer: 1, .. })
    ));
    let error = counts_of_layers_from_npy(&npy("|u1", "(2, 2, 2)", &ids[..8]), &small(), &layers, ..).unwrap_err();
    assert!(error.to_string().contains("[rows, 4, 2] expected"), "{error}");
}

proptest! {
    #![proptest_config(crate::property::config())]

    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), flips in proptest::collection::vec((0usize..200, any::<u8>()), 0..6)) {
        let _ = counts_from_npy(&bytes, &small(), ..);
        let mut file = npy("|u1", "(1, 2, 2)", &[0, 1, 2, 3]);
        for (at, value) in flips {
            if let Some(byte) = file.get_mut(at) {
                *byte = value;
            }
        }
        let _ = counts_from_npy(&file, &small(), ..1);
    }
}
