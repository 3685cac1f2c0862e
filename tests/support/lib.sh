# Shared by tests/support/run_*: building, and turning what test programs print into result lines.
set -uo pipefail
: "${PERFRIG_ROOT:?run tests through tests/run}"
: "${PERFRIG_TEST_RESULTS:?run tests through tests/run}"
cd "$PERFRIG_ROOT" || exit 3

result() { echo "$*" >>"$PERFRIG_TEST_RESULTS"; } # result passed|failed|skipped NAME [reason]

# build PRESET TARGET...: no target means all. Quiet unless it fails.
build() {
    local preset=$1 log
    shift
    log=$(mktemp)
    # Hits across checkouts: paths are taken relative to the root.
    export CCACHE_BASEDIR=$PERFRIG_ROOT CCACHE_NOHASHDIR=1
    { { [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"; } &&
        cmake --build "build/$preset" ${1:+--target "$@"} -- -k 0; } >"$log" 2>&1
    local status=$?
    [ $status = 0 ] || { grep -E 'error|FAILED|Error|warning' "$log" | head -n 40; tail -n 15 "$log"; result failed "build $preset"; }
    rm -f "$log"
    return $status
}

# doctest_program NAME PROGRAM [ARG...]: one result line a test case, from doctest's XML report.
doctest_program() {
    local name=$1 out
    shift
    out=$(mktemp -d)
    timeout --kill-after=10 "${DOCTEST_TIMEOUT:-600}" "$@" -r=xml -o="$out/report.xml" >"$out/stdout" 2>"$out/stderr"
    local status=$?
    /usr/bin/python3 tests/support/doctest_results.py "$name" "$status" "$out" >>"$PERFRIG_TEST_RESULTS"
    if [ $status != 0 ]; then
        echo "-- $name ended with status $status"
        /usr/bin/python3 tests/support/doctest_results.py --failures "$out"
        tail -n 60 "$out/stderr"
    fi
    grep -h '^SKIPPED' "$out/stdout" "$out/stderr" 2>/dev/null
    rm -rf "$out"
    return 0
}

# pytest_folder KIND ARG...: one result line a test.
pytest_folder() {
    local kind=$1 report
    shift
    report=$(mktemp)
    /usr/bin/python3 -m pytest -q -p no:cacheprovider --durations=8 --junitxml="$report" "$@"
    local status=$?
    /usr/bin/python3 tests/support/junit_results.py "$kind" "$status" "$report" >>"$PERFRIG_TEST_RESULTS"
    rm -f "$report"
    return 0
}

# start_postgres: a private, throw-away cluster on a Unix socket; sets PERFRIG_TEST_DATABASE. Ends with the script.
start_postgres() {
    postgres_dir=$(mktemp -d /tmp/perfrig-pg.XXXXXX)
    postgres_bin=$(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/bin 2>/dev/null | while read -r d; do [ -x "$d/initdb" ] && echo "$d"; done | tail -n 1)
    postgres_as=""
    if [ "$(id -u)" = 0 ]; then
        postgres_as="setpriv --reuid=nobody --regid=nogroup --clear-groups --"
        chown nobody:nogroup "$postgres_dir"
    fi
    # PostgreSQL refuses to run as root; durability is off because the data lives as long as the tests.
    $postgres_as "$postgres_bin/initdb" -D "$postgres_dir/data" -U perfrig -A trust --no-sync >"$postgres_dir/initdb.log" 2>&1 &&
        $postgres_as "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -w -t 60 -l "$postgres_dir/log" \
            -o "-c listen_addresses= -c unix_socket_directories=$postgres_dir -c fsync=off" start >/dev/null || return 1
    trap stop_postgres EXIT
    export PERFRIG_TEST_DATABASE="host=$postgres_dir user=perfrig dbname=postgres"
}
stop_postgres() {
    $postgres_as "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -m immediate -w stop >/dev/null 2>&1
    rm -rf "$postgres_dir"
}
