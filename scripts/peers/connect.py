"""The official Python client against the engine on 127.0.0.1:8123."""

import datetime

import clickhouse_connect
from clickhouse_connect.driver.exceptions import DatabaseError

checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        raise SystemExit(f"clickhouse-connect: {what}")


rows = [[n, f"näme {n}", [n, n + 1], datetime.datetime(2026, 1, 1, 0, 0, n % 60), None if n % 3 else n / 7] for n in range(20_000)]
for compress in (False, "lz4", "zstd", "gzip"):
    client = clickhouse_connect.get_client(host="127.0.0.1", port=8123, compress=compress)
    client.command("DROP DATABASE IF EXISTS peers")
    client.command("CREATE DATABASE peers ENGINE = Atomic")
    client.command(
        "CREATE TABLE peers.rows (n UInt64, s String, a Array(UInt64), t DateTime('UTC'), f Nullable(Float64)) "
        "ENGINE = MergeTree ORDER BY n"
    )
    summary = client.insert("rows", rows, column_names=["n", "s", "a", "t", "f"], database="peers")
    check(summary.written_rows == len(rows), f"{compress}: wrote {summary.written_rows} rows")
    read = client.query("SELECT n, s, a, f FROM peers.rows ORDER BY n").result_rows
    check([list(row) for row in read] == [[r[0], r[1], r[2], r[4]] for r in rows], f"{compress}: rows differ")
    total = client.query("SELECT sum(n) FROM peers.rows WHERE n < {limit:UInt64}", parameters={"limit": 100}).result_rows
    check(total == [(4950,)], f"{compress}: bound parameter")
    check(client.command("SELECT getSetting('max_threads')", settings={"max_threads": 3}) == 3, f"{compress}: setting")
    streamed = 0
    with client.query_row_block_stream("SELECT number FROM numbers(500000)") as stream:
        for block in stream:
            streamed += len(block)
    check(streamed == 500_000, f"{compress}: streamed {streamed} rows")
    raw = client.raw_query("SELECT 1 AS a, 'x' AS b", fmt="JSONEachRow")
    check(raw == b'{"a":1,"b":"x"}\n', f"{compress}: raw query {raw!r}")
    try:
        client.query("SELECT * FROM peers.absent")
        check(False, f"{compress}: no error for an absent table")
    except DatabaseError as error:
        check("UNKNOWN_TABLE" in str(error), f"{compress}: {error}")
    client.close()
print(f"clickhouse-connect {clickhouse_connect.__version__}: {checks} checks passed")
