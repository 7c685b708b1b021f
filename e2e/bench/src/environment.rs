//! The machine, as far as it explains the numbers.

use std::fs::read_to_string;

use serde_json::{Value, json};

/// Processor, cores and memory.
pub(crate) fn machine() -> Value {
    let cpu = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(':'))
            .map_or("?", |(_, value)| value.trim())
            .to_owned()
    };
    let flags = field("flags");
    let vector: Vec<&str> = ["sse2", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "amx_int8"]
        .into_iter()
        .filter(|name| flags.split(' ').any(|flag| flag == *name))
        .collect();
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    json!({
        "cpu": field("model name"),
        "family": field("cpu family"),
        "model": field("model"),
        "vector": vector.join(" "),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memoryGiB": kib(&memory, "MemTotal").map_or(0, |kib| kib.div_ceil(1 << 20)),
    })
}

/// Runnable processes of the machine, averaged over the last minute.
pub(crate) fn load() -> f64 {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(f64::NAN)
}

/// Memory of this process in bytes: now, and at its highest.
pub(crate) fn memory() -> Option<(u64, u64)> {
    let status = read_to_string("/proc/self/status").ok()?;
    Some((kib(&status, "VmRSS")? * 1024, kib(&status, "VmHWM")? * 1024))
}

/// Processor time that all threads of this process have used, in seconds; the system counts hundredths.
pub(crate) fn processor_seconds() -> Option<f64> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // After the name, which may hold spaces, come the state and ten more fields before user and system time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

fn kib(text: &str, name: &str) -> Option<u64> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_uses_memory() {
        let (now, peak) = super::memory().unwrap();
        assert!(now > 1 << 16 && peak >= now / 2);
        assert!(super::processor_seconds().unwrap() >= 0.0);
    }
}
