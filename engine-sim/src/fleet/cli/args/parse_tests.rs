use super::*;

#[test]
fn faults_say_when_what_and_which() {
    let line = |text| fault(text).map(|l| (l.at_s, l.change));
    assert_eq!(line("30:stop:2"), Ok((30.0, Change::Lose(2))));
    assert_eq!(line("0.5:drain:0"), Ok((0.5, Change::Drain(0))));
    assert_eq!(line("1:start:3"), Ok((1.0, Change::Start(3))));
    assert_eq!(line("1:scale:0"), Ok((1.0, Change::Scale(0))));
    for bad in [
        "",
        "30",
        "30:stop",
        "x:stop:1",
        "-1:stop:1",
        "1:kill:1",
        "1:stop:-1",
        "1:start:9999",
        "nan:stop:1",
    ] {
        assert!(fault(bad).is_err(), "{bad}");
    }
}

#[test]
fn arrivals_and_lengths_have_their_numbers() {
    assert_eq!(process("poisson"), Ok(Process::Poisson));
    assert_eq!(process("gamma:0.5"), Ok(Process::Gamma { shape: 0.5 }));
    assert_eq!(
        process("day-night:60:0.8"),
        Ok(Process::DayNight {
            period_s: 60.0,
            swing: 0.8
        })
    );
    for bad in ["", "poisson:1", "gamma", "bursts:1:2", "day-night:a:b", "weekly"] {
        assert!(process(bad).is_err(), "{bad}");
    }
    assert_eq!(output("0"), Ok(OutputLengths::Recorded));
    assert_eq!(output("64"), Ok(OutputLengths::Fixed { tokens: 64 }));
    assert!(matches!(
        output("lognormal:100:1:4096"),
        Ok(OutputLengths::LogNormal { max: 4096, .. })
    ));
    for bad in ["", "-1", "100001", "lognormal:1", "lognormal:0:1:5", "lognormal:a:1:5"] {
        assert!(output(bad).is_err(), "{bad}");
    }
}

#[test]
fn mixes_name_domains_once() {
    let point = mix("20:math=2,zh=1,blended=0.25").unwrap();
    assert_eq!((point.time_s, point.blended, point.weights["math"]), (20.0, 0.25, 2.0));
    for bad in ["", "math", "math=x", "math=0", "math=1,math=2", "x:math=1", "blended=1"] {
        assert!(mix(bad).is_err(), "{bad}");
    }
    assert_eq!(range("64-512"), Ok((64, 512)));
    assert_eq!(range("7"), Ok((7, 7)));
    for bad in ["", "0-5", "9-8", "1-70000"] {
        assert!(range(bad).is_err(), "{bad}");
    }
    assert_eq!(distinct("16=64.5"), Ok((16, 64.5)));
    assert!(distinct("16").is_err() && distinct("a=1").is_err() && distinct("16=0").is_err());
}
