//! The documented tables of metrics and spans are the catalogue.

use signals::names::{METRICS, Metric, SPANS, Span};

const DOCUMENTATION: &str = include_str!("../../../docs/metrics.md");

fn metric_row(metric: &Metric) -> String {
    let labels: Vec<String> = metric
        .labels
        .iter()
        .map(|label| format!("`{}`: {}", label.key, label.values.join(", ")))
        .collect();
    format!(
        "| `{}` | {} | `{}` | {} | {} |",
        metric.name,
        metric.kind.as_str(),
        metric.unit,
        labels.join("; "),
        metric.description
    )
}

fn span_row(span: &Span) -> String {
    let attributes: Vec<String> = span
        .attributes
        .iter()
        .map(|key| format!("`{key}`"))
        .collect();
    format!(
        "| `{}` | {} | {} | {} |",
        span.name,
        span.kind,
        attributes.join(", "),
        span.description
    )
}

#[test]
fn every_metric_and_span_is_documented_as_it_is_exported_and_no_other() {
    let documented: Vec<&str> = DOCUMENTATION
        .lines()
        .filter(|line| line.starts_with("| `kurier."))
        .collect();
    let catalogued: Vec<String> = METRICS
        .iter()
        .map(metric_row)
        .chain(SPANS.iter().map(span_row))
        .collect();
    assert_eq!(documented.join("\n"), catalogued.join("\n"));
}
