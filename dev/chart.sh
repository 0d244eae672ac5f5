#!/usr/bin/env bash
# Checks the Helm chart: lint and rendering, both strict, and every manifest against the schema of Kubernetes.
# Needs the tools of tools.sh on PATH.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

CHART=helm/kurier
KUBERNETES_VERSIONS=(1.29 1.33)

# Renders to a file of its own, so that the first wrong manifest can be looked at.
check_values() {
  local values="$1" rendered version
  rendered=".local/chart/$(basename "$values")"
  python dev/helm.py lint "$CHART" "$values"
  python dev/helm.py template "$CHART" "$values" >"$rendered"
  for version in "${KUBERNETES_VERSIONS[@]}"; do
    kubernetes-validate --strict -k "$version" "$rendered"
  done
}

# The chart must not be installable without its Secret, and must say so.
check_missing_secret() {
  local said
  if said="$(python dev/helm.py template "$CHART" "$CHART/values.yaml" 2>&1)"; then
    printf 'error: the chart renders without existingSecret\n' >&2
    return 1
  fi
  grep --quiet 'existingSecret is required' <<<"$said"
}

main() {
  local values
  mkdir -p .local/chart
  check-jsonschema --check-metaschema "$CHART/values.schema.json"
  for values in "$CHART"/ci/*.yaml; do
    check_values "$values"
  done
  check_missing_secret
}

main
