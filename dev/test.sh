#!/usr/bin/env bash
# Every check and every test, in the order in which they are cheapest to fail. Stops at the first failure; nothing is
# retried.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=dev/processes.sh
source dev/processes.sh
# shellcheck source=dev/packages.sh
source dev/packages.sh
# shellcheck source=dev/tools.sh
source dev/tools.sh

STEP=

# step NAME COMMAND...: announces the step, and the time it took.
step() {
  local started="$SECONDS"
  STEP="$1"
  shift
  printf '\n=== %s\n' "$STEP"
  "$@"
  printf '=== %s: ok in %d s\n' "$STEP" "$((SECONDS - started))"
  STEP=
}

report_failure() {
  local status="$?"
  [[ -z "$STEP" ]] || printf '\n=== %s: FAILED with status %d\n' "$STEP" "$status" >&2
}

# tracked PATTERN...: the files of the work tree that git does not ignore, each ended by NUL.
tracked() {
  git ls-files -z --cached --others --exclude-standard -- "$@"
}

check_rust_components() {
  if ! { cargo fmt --version && cargo clippy --version; }; then
    fail "rustfmt and clippy are needed: rustup component add rustfmt clippy"
  fi
}

check_toml() { tracked '*.toml' | xargs -0 taplo fmt --check --diff; }
check_shell() { tracked run .ci/run '*.sh' | xargs -0 shellcheck --external-sources; }
check_yaml() { tracked '*.yml' '*.yaml' ':!helm/*/templates/*' | xargs -0 yamllint --strict; }
check_migrations() { tracked 'migrations/*.sql' | xargs -0 --no-run-if-empty squawk; }
check_documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet; }

check_compose() { docker-compose --file docker-compose.yml config --quiet; }

run_tests() {
  dev/with-services.sh cargo nextest run --workspace
}

main() {
  trap report_failure EXIT
  step "tools" provide_tools
  step "rust components" check_rust_components
  step "cargo fmt" cargo fmt --all --check
  step "taplo" check_toml
  step "typos" typos
  step "shellcheck" check_shell
  step "yamllint" check_yaml
  step "hadolint" hadolint Dockerfile
  step "squawk" check_migrations
  step "cargo deny" cargo-deny --all-features check licenses bans sources
  step "compose" check_compose
  step "chart" dev/chart.sh
  step "clippy" cargo clippy --workspace --all-targets -- -D warnings
  step "rustdoc" check_documentation
  step "build" cargo build --workspace --bins
  step "doc tests" cargo test --workspace --doc --quiet
  step "tests" run_tests
}

main "$@"
