//! The rows, the machine they were measured on, and the page that keeps both.

use std::{fs, io::Write as _, path::Path, time::Duration};

use tokio::time::Instant;
use usage::{Clock as _, SystemClock};

/// Work done in a time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rate {
    pub(crate) done: u64,
    pub(crate) took: Duration,
}

impl Rate {
    pub(crate) fn add(&mut self, done: u64, took: Duration) {
        self.done += done;
        self.took += took;
    }

    fn per_second(self) -> u128 {
        u128::from(self.done) * 1_000_000 / self.took.as_micros().max(1)
    }
}

/// One measurement and what bounds it.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) ours: Rate,
    pub(crate) limit: Rate,
    pub(crate) named: &'static str,
}

impl Row {
    pub(crate) fn line(&self) -> String {
        let (ours, limit) = (self.ours.per_second(), self.limit.per_second());
        let thousandths = ours * 1_000 / limit.max(1);
        format!(
            "| {} | {} {} | {} ({}) | {}.{:03} |",
            self.what,
            grouped(ours),
            self.unit,
            grouped(limit),
            self.named,
            thousandths / 1_000,
            thousandths % 1_000
        )
    }
}

/// The page as `make bench` keeps it.
pub(crate) fn page(rows: &[Row], machine: &str) -> String {
    let lines: Vec<String> = rows.iter().map(Row::line).collect();
    format!(
        "# Benchmarks\n\n\
         Written by `make bench`. Each row is ours against a named limit, both measured in the same run on the same machine, so the ratio \
         says more than the figures. Nothing fails by it. The programs are in `tests/bench/`.\n\n\
         | what | ours | limit | ratio |\n| --- | --- | --- | --- |\n{}\n\n\
         ## The machine\n\n{machine}\n",
        lines.join("\n")
    )
}

/// Cores, memory, kernel, processor, date, load before the run, and what a flush costs in `folder`.
pub(crate) fn machine(folder: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = memory_mib().map_or_else(|| "unknown".to_owned(), |mib| format!("{} MiB", grouped(mib)));
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(2).collect();
    format!(
        "- date: {}\n- processor: {processor}, {cores} cores\n- memory: {memory}\n- kernel: {}\n\
         - load average of 1 and 5 minutes before the run: {}\n\
         - write and fsync of 4 KiB in the folder of the run: {} µs (median of 100)",
        SystemClock.now().to_string().get(..10).unwrap_or_default(),
        kernel.trim(),
        load.join(", "),
        fsync(folder).as_micros()
    )
}

fn fsync(folder: &Path) -> Duration {
    let path = folder.join("fsync");
    let mut file = fs::File::create(&path).expect("the folder of the run takes files");
    let mut times: Vec<Duration> = (0..100)
        .map(|_| {
            let start = Instant::now();
            file.write_all(&[7; 4_096]).expect("a page is written");
            file.sync_all().expect("a page is flushed");
            start.elapsed()
        })
        .collect();
    fs::remove_file(&path).expect("the file of the run is removed");
    times.sort_unstable();
    times[times.len() / 2]
}

fn memory_mib() -> Option<u128> {
    let kib: u128 = field("/proc/meminfo", "MemTotal")?.strip_suffix(" kB")?.parse().ok()?;
    Some(kib / 1_024)
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
