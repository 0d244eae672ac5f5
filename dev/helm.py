"""Lints or renders the chart with the real Helm engine, without a helm binary or a cluster.

    helm.py lint CHART VALUES.yaml
    helm.py template CHART VALUES.yaml

Both are strict: a value that a template misspells is an error. Rendered manifests go to stdout.
"""

import json
import sys
from pathlib import Path

import helm_python
from helm_python import _native

WARNING = 2
SEVERITY_NAMES = {0: "unknown", 1: "info", 2: "warning", 3: "error"}


def lint(chart, values):
    report = helm_python.lint(chart, values, strict=True)
    worst = 0
    for message in report["messages"]:
        severity = message["severity"]
        worst = max(worst, severity)
        print(f"{SEVERITY_NAMES[severity]}: {message['path']}: {message['error']}", file=sys.stderr)
    if report["errors"] or worst >= WARNING:
        sys.exit(1)


def template(chart, values):
    options = {"name": "release", "namespace": "default", "is_install": True, "strict": True}
    with helm_python.Chart.load(chart) as loaded:
        # The public render call has no strict mode; the engine underneath does.
        rendered = json.loads(
            _native.call_string("helm_render", loaded._raw(), json.dumps(values), json.dumps(options))
        )
    for name, text in sorted(rendered.items()):
        if text.strip() and not name.endswith("NOTES.txt"):
            print(f"---\n# Source: {name}\n{text.strip()}")


def main():
    command, chart, values_file = sys.argv[1:]
    values = helm_python.values_from_yaml(Path(values_file).read_text(encoding="utf-8"))
    try:
        {"lint": lint, "template": template}[command](chart, values)
    except helm_python.HelmError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
