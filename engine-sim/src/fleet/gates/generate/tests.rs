use super::{Generator, Match, Parameters, Plan, Shape, fit, preset};
use crate::fleet::gates::{Recording, Statistics};

fn plan(requests: usize) -> Plan {
    Plan {
        requests,
        domains: 8,
        first_domain: 0,
        blended: 0.0,
        prompt_tokens: (64, 512),
        output_tokens: 64,
        first_request: 0,
    }
}

fn tiny() -> Recording {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/tiny-moe.npz");
    Recording::load(&path, None, 0).unwrap()
}

#[test]
fn requests_are_whole_and_a_function_of_their_number() {
    for shape in Shape::ALL {
        let geometry = shape.geometry().unwrap();
        let generator = Generator::new(geometry, preset(shape), 5);
        let request = generator.request(9, &[3], 200, 40);
        request.prefill.check_conservation().unwrap();
        assert!(request.prefill.cells().iter().all(|c| *c <= 200));
        let counts = request.decode.counts(40);
        counts.check_conservation().unwrap();
        assert!(counts.cells().iter().all(|c| *c <= 40), "no token has an expert twice");
        assert_eq!(request, generator.request(9, &[3], 200, 40));
        let other = generator.request(10, &[3], 200, 40);
        assert_ne!(request.decode, other.decode);
        assert_ne!(request.text, other.text);
        // The prompt does not depend on the answer's length.
        assert_eq!(request.prefill, generator.request(9, &[3], 200, 10).prefill);
    }
}

#[test]
fn statistics_of_the_recording_are_those_measured_elsewhere() {
    let (pure, _) = tiny().pure_and_blended();
    let found = Statistics::of(&pure, 20_000, 1);
    assert!((found.expert_correlation.unwrap() - 0.99).abs() < 0.01, "{found:?}");
    assert!((0.5..0.75).contains(&found.rho.unwrap()), "{found:?}");
    assert!((0.12..0.22).contains(&found.domain_saving.unwrap()), "{found:?}");
    assert!((found.distinct[&1] - 4.0).abs() < 1e-9);
    assert!(found.overlap_within > found.overlap_between);
}

#[test]
fn each_parameter_moves_its_statistic() {
    let geometry = Shape::TinyMoe.geometry().unwrap();
    let of = |p: Parameters| Statistics::of(&Generator::new(geometry, p, 1).recording(&plan(240)), 4000, 1);
    let plain = Parameters {
        base: 0.5,
        domain: 0.5,
        request: 0.4,
        phase: 0.2,
        own: 0.2,
        persistence: 0.0,
        follow: 0.5,
    };
    let before = of(plain);
    assert!(of(Parameters { base: 1.5, ..plain }).distinct[&64] < before.distinct[&64]);
    assert!(of(Parameters { domain: 1.0, ..plain }).domain_saving > before.domain_saving);
    assert!(of(Parameters { phase: 0.8, ..plain }).expert_correlation < before.expert_correlation);
    assert!(of(Parameters { own: 1.0, ..plain }).rho < before.rho);
    let kept = of(Parameters {
        persistence: 0.5,
        ..plain
    })
    .kept
    .unwrap();
    assert!(kept > before.kept.unwrap() + 0.3);
}

#[test]
fn the_preset_has_the_statistics_that_it_names() {
    let shape = Shape::Qwen3A3b;
    let generator = Generator::new(shape.geometry().unwrap(), preset(shape), 77);
    let matched = Match {
        target: shape.target().unwrap(),
        reached: Statistics::of(&generator.recording(&plan(160)), 4000, 3),
    };
    assert!(matched.error() < 3.0, "{matched}");
}

#[test]
fn a_fit_to_the_recording_comes_near_it_and_prints_how_near() {
    let (pure, _) = tiny().pure_and_blended();
    let target = Statistics::of(&pure, 20_000, 1);
    let geometry = pure.geometry;
    let plan = Plan {
        domains: pure.domain_names.len(),
        prompt_tokens: (32, 128),
        output_tokens: 128,
        ..plan(150)
    };
    let start = Parameters {
        base: 0.6,
        domain: 0.7,
        request: 0.6,
        phase: 0.2,
        own: 0.3,
        persistence: 0.1,
        follow: 0.75,
    };
    let fitted = fit(&target, geometry, &plan, start, 60, 4);
    assert!(fitted.matched.error() < 5.0, "{}", fitted.matched);
    let text = fitted.matched.to_string();
    assert!(text.contains("rho") && text.contains("batch 64"), "{text}");
    let near_preset = Generator::new(geometry, preset(Shape::TinyMoe), 9).recording(&plan);
    let matched = Match {
        target,
        reached: Statistics::of(&near_preset, 4000, 9),
    };
    assert!(matched.error() < 5.0, "{matched}");
}

#[test]
fn blended_prompts_count_half_of_each_and_unseen_domains_differ() {
    let generator = Generator::new(Shape::TinyMoe.geometry().unwrap(), preset(Shape::TinyMoe), 2);
    let recording = generator.recording(&Plan {
        blended: 0.5,
        ..plan(200)
    });
    let (pure, blended) = recording.pure_and_blended();
    assert!((70..130).contains(&blended.len()));
    assert!(blended.requests.iter().all(|r| r.domains[0] != r.domains[1]));
    blended.requests[0].prefill.check_conservation().unwrap();
    let words = String::from_utf8(blended.requests[0].text.clone().unwrap()).unwrap();
    assert!(words.split(' ').count() > 20);
    let unseen = generator.recording(&Plan {
        first_domain: 100,
        first_request: 10_000,
        ..plan(50)
    });
    assert!(unseen.domain_names.iter().all(|d| !pure.domain_names.contains(d)));
}

#[test]
fn the_quick_exponential_is_one() {
    for i in -800..=800 {
        let x = i as f32 / 10.0 + 0.037;
        let relative = super::quick::exp(x) / x.clamp(-80.0, 80.0).exp() - 1.0;
        assert!(relative.abs() < 1e-5, "{x}: {relative}");
    }
}
