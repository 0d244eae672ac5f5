# shellcheck shell=bash
# The tools of `./run test`, pinned, under the git-ignored .local/. Sourced; needs processes.sh and packages.sh.

TOOLS=.local/tools
NODE=.local/node

# once STAMP FILES... -- COMMAND...: runs COMMAND unless it has succeeded before with the same contents of FILES.
once() {
  local stamp="$1" files=() sum
  shift
  while [[ "$1" != -- ]]; do
    files+=("$1")
    shift
  done
  shift
  sum="$(sha256sum "${files[@]}")"
  [[ -f "$stamp" && "$(cat "$stamp")" == "$sum" ]] && return
  "$@"
  printf '%s\n' "$sum" >"$stamp"
}

install_python_tools() {
  rm -rf "$TOOLS"
  python3 -m venv "$TOOLS"
  "$TOOLS/bin/pip" install --quiet --disable-pip-version-check --requirement dev/requirements.txt
}

install_node_libraries() {
  rm -rf "$NODE"
  mkdir -p "$NODE"
  cp dev/node/package.json dev/node/package-lock.json "$NODE/"
  npm ci --prefix "$NODE" --ignore-scripts --no-audit --no-fund --loglevel=error
}

# Puts the tools first on PATH and names the official signature verifiers for the tests.
provide_tools() {
  mkdir -p .local
  ensure_installed compiler python node
  once "$TOOLS/stamp" dev/requirements.txt -- install_python_tools
  once "$NODE/stamp" dev/node/package.json dev/node/package-lock.json -- install_node_libraries
  export PATH="$PWD/$TOOLS/bin:$PATH"
  export KURIER_TEST_PYTHON="$PWD/$TOOLS/bin/python"
  export KURIER_TEST_NODE_MODULES="$PWD/$NODE/node_modules"
}
