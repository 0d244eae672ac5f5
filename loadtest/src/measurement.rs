//! One measured figure and how a table of them looks.

use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::cpu::{CpuMeter, CpuSeconds, Party};

/// What one measurement did, in how long, with whose CPU.
#[derive(Debug, Serialize)]
pub(crate) struct Measurement {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    pub(crate) cpu: Vec<CpuSeconds>,
}

impl Measurement {
    pub(crate) fn new(
        name: &'static str,
        count: u64,
        elapsed: Duration,
        cpu: Vec<CpuSeconds>,
    ) -> Self {
        let seconds = elapsed.as_secs_f64();
        Self {
            name,
            count,
            seconds,
            per_second: as_f64(count) / seconds,
            cpu,
        }
    }

    /// CPU milliseconds for every 1,000 of what was counted, by party.
    pub(crate) fn cpu_ms_per_1000(&self) -> impl Iterator<Item = Option<f64>> {
        let thousands = as_f64(self.count) / 1_000.0;
        self.cpu
            .iter()
            .map(move |cpu| Some(cpu.seconds? * 1_000.0 / thousands))
    }
}

/// Measures one piece of work that handles `count` of something.
pub(crate) async fn measured(
    name: &'static str,
    count: u32,
    parties: &[Party],
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Measurement> {
    let (meter, begin) = (CpuMeter::start(parties.to_vec()), Instant::now());
    work.await?;
    Ok(Measurement::new(
        name,
        count.into(),
        begin.elapsed(),
        meter.used(),
    ))
}

/// A table of measurements that share their parties.
pub(crate) fn table(measurements: &[Measurement]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let parties = measurements.first().map_or(&[][..], |first| &first.cpu);
    let mut header = vec![
        "measured".to_owned(),
        "count".to_owned(),
        "per second".to_owned(),
    ];
    header.extend(
        parties
            .iter()
            .map(|cpu| format!("{} CPU-ms/1,000", cpu.party)),
    );
    table.set_header(header);
    for measurement in measurements {
        table.add_row(row(measurement));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn row(measurement: &Measurement) -> Vec<String> {
    let mut row = vec![measurement.name.to_owned(), measurement.count.to_string()];
    row.push(format!("{:.0}", measurement.per_second));
    row.extend(measurement.cpu_ms_per_1000().map(cpu_text));
    row
}

/// CPU milliseconds as text; a party that is not on this machine is unknown.
pub(crate) fn cpu_text(milliseconds: Option<f64>) -> String {
    milliseconds.map_or_else(|| "unknown".to_owned(), |ms| format!("{ms:.1}"))
}

/// A count as a float; counts here are far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_is_unknown() {
        let cpu = vec![
            CpuSeconds {
                party: "loadtest",
                seconds: Some(2.0),
            },
            CpuSeconds {
                party: "PostgreSQL",
                seconds: None,
            },
        ];
        let measurement = Measurement::new("rows", 4_000, Duration::from_secs(2), cpu);
        let table = table(&[measurement]);
        for cell in ["2000", "500.0", "unknown"] {
            assert!(table.contains(cell), "{cell} in\n{table}");
        }
    }
}
