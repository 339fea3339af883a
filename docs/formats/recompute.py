#!/usr/bin/env python3
"""Recomputes the published test vectors of Contextmeter's formats from their inputs, with nothing but Python's standard library.

Usage: recompute.py [VECTORS]. Exits 1 and names the first vector that differs. Ed25519 itself is not in the standard library:
signatures are left out, the bytes that are signed are not. What each format is says docs/formats.md.
"""
import base64, hashlib, hmac, json, pathlib, re, sys
from datetime import datetime, timedelta, timezone

def sha(data): return hashlib.sha256(data).digest()
def u(value, size): return value.to_bytes(size, "big")
def i64(value): return value.to_bytes(8, "big", signed=True)
def text(value): return u(len(value.encode()), 4) + value.encode()
def option(value, write): return b"\0" if value is None else b"\1" + write(value)
def listed(items, write): return u(len(items), 4) + b"".join(map(write, items))
def raw(digits): return bytes.fromhex(digits)
def texts(value, *names): return b"".join(text(value[name]) for name in names)

# Usage: see "Identities" to "Reports" in the document.
FIELDS = {"text": text, "u32": lambda v: u(v, 4), "u64": lambda v: u(v, 8), "i64": i64,
          "optional_text": lambda v: option(v, text), "list_of_texts": lambda v: listed(v, text)}
def encoding(v):
    data = text(v["tag"]) + b"".join(FIELDS[kind](value) for field in v["fields"] for kind, value in field.items())
    return {"bytes": data.hex(), "sha256": sha(data).hex()}

def micros(rfc3339):
    front, fraction, offset = re.fullmatch(r"([^.Z+]{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", rfc3339.upper()).groups()
    at = datetime.fromisoformat(front + ("+00:00" if offset == "Z" else offset))
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1) + int(((fraction or "") + "000000")[:6])

def event_id(v):
    fields = ("request_id", "turn_id", "provider_id") if v["kind"] == "context" else ("source", "stream", "attempt")
    return sha(text("cm.id.1") + texts(v, "kind", "platform", *fields))[:16]
def report_key(v): return sha(text("cm.reportkey.1") + texts(v, "platform", "request_id", "turn_id"))[:16]
def keyed(key, message): return hmac.digest(key, message, "sha256")
def commitment(salt, v):
    return sha(text("cm.frame.1") + salt + texts(v, "provider_id", "frame_id") + option(v.get("content_digest"), text))
def content_hash(event, v, frames):
    return sha(text("cm.event.1") + event + text(v["customer_id"]) + i64(v["as_of"]) + u(v["tokens"], 8)
               + u(v["frames_served"], 4) + u(v["frames_rejected"], 4) + listed(frames, lambda f: u(f[0], 8) + f[1]))
def definition(v):
    providers = lambda ids: listed(sorted(set(ids), key=str.encode), text)
    return sha(text("cm.meter.1") + texts(v, "meter", "kind") + option(v.get("providers"), providers) + text(v["quantity"]))

def report(v):
    body = json.loads(v["body"]); inner = body["report"]; as_of = micros(inner["as_of"]); events = []
    for p in inner.get("providers", []):
        event = event_id({**body, **p, "kind": "context", "platform": v["platform"]})
        salt = keyed(raw(v["erasure_key"]), event); served = p.get("served_frames", [])
        shut = [commitment(keyed(salt, u(at, 4)), f["frame"]) for at, f in enumerate(served)]
        content = content_hash(event, {**body, **p, "as_of": as_of, "tokens": p["token_cost"]},
                               [(f["token_cost"], c) for f, c in zip(served, shut)])
        events.append({"provider_id": p["provider_id"], "event_id": event.hex(), "salt": salt.hex(),
                       "commitments": [c.hex() for c in shut], "content_hash": content.hex()})
    whole = sha(text("cm.report.1") + text(body["customer_id"]) + i64(as_of) + u(inner["budget_requested"], 8)
                + u(inner["budget_consumed"], 8) + listed(events, lambda e: raw(e["content_hash"])))
    return {"as_of": as_of, "report_key": report_key({**body, "platform": v["platform"]}).hex(), "events": events,
            "report_hash": whole.hex()}

def acknowledgement(v):
    return text("cm.ack.1") + texts(v, "platform", "request_id", "turn_id") + raw(v["report_hash"]) + u(v["epoch"], 8) + u(v["seq"], 8) + i64(v["at"])

# The sum tree and the statement. A node is (hash, count, sum).
def leaf(v): return (sha(b"\0" + text("cm.leaf.1") + raw(v["event_id"]) + raw(v["content_hash"]) + u(v["quantity"], 8)), 1, v["quantity"])
def whole(n): return n[0] + u(n[1], 8) + u(n[2], 16)
def join(l, r): return (sha(b"\1" + text("cm.node.1") + whole(l) + whole(r)), l[1] + r[1], l[2] + r[2])
def half(count): return 1 << (count - 1).bit_length() - 1
def tree(nodes, empty, join):
    if len(nodes) < 2: return nodes[0] if nodes else empty
    at = half(len(nodes)); return join(tree(nodes[:at], empty, join), tree(nodes[at:], empty, join))
def way(nodes, index, join):
    if len(nodes) < 2: return []
    at = half(len(nodes)); left, right = nodes[:at], nodes[at:]
    if index < at: return way(left, index, join) + [("right", tree(right, None, join))]
    return way(right, index - at, join) + [("left", tree(left, None, join))]
def fold(node, steps, join):
    for side, sibling in steps: node = join(sibling, node) if side == "left" else join(node, sibling)
    return node
def sums(leaves): return tree([leaf(v) for v in leaves], (sha(text("cm.empty.1")), 0, 0), join)
def shown(n): return {"hash": n[0].hex(), "count": n[1], "sum": str(n[2])}
def read(n): return (raw(n["hash"]), n["count"], int(n["sum"]))
def sum_inclusion(v):
    index = [l["event_id"] for l in v["leaves"]].index(v["event_id"])
    return {"steps": [{"side": s, "sibling": shown(n)} for s, n in way([leaf(l) for l in v["leaves"]], index, join)]}
def statement(v):
    root = read(v["root"])
    return sha(b"\2" + text("cm.statement.1") + texts(v, "platform", "customer", "meter") + raw(v["definition_hash"])
               + i64(v["piece_start"]) + i64(v["piece_end"]) + u(v["revision"], 4) + u(root[1], 8) + u(root[2], 16) + root[0])

# The log: RFC 6962.
def entry(digits): return sha(b"\0" + raw(digits))
def pair(l, r): return sha(b"\1" + l + r)
def log_root(nodes): return tree(nodes, sha(b""), pair)
def log_inclusion(v):
    path = way([entry(e) for e in v["entries"]], v["index"], pair)
    return {"index": v["index"], "size": len(v["entries"]), "path": [n.hex() for _, n in path]}
def subproof(nodes, first, known):
    if first == len(nodes): return [] if known else [log_root(nodes)]
    at = half(len(nodes)); left, right = nodes[:at], nodes[at:]
    if first <= at: return subproof(left, first, known) + [log_root(right)]
    return subproof(right, first - at, False) + [log_root(left)]
def log_consistency(v):
    nodes, first = [entry(e) for e in v["entries"]], v["first_size"]
    path = subproof(nodes, first, True) if 0 < first < len(nodes) else []
    return {"first_size": first, "second_size": len(nodes), "path": [n.hex() for n in path]}

# Keys, heads, periods, placements, proof files.
def kid(public_key): return sha(base64.b64decode(public_key))[:8].hex()
def head(v): return text("cm.head.1") + text(v["platform"]) + u(v["size"], 8) + raw(v["root"]) + i64(v["at"])
def period(v): return sha(text("cm.period.1") + listed(v["items"], lambda i: text(i["placement"]) + raw(i["statement"])))
def placement(v):
    key = sha(text("cm.placement.1") + texts(v, "account", "platform", "customer", "meter") + i64(v["piece_start"])
              + i64(v["piece_end"]) + u(v["revision"], 4) + u(v["part"], 4) + u(v["n"], 4))
    return {"identifier": "cm1_" + key[:20].hex(), "placement_id": "plc_" + key[:16].hex()}
def check(holds, what):
    if not holds: raise ValueError(what)
def proof_file(v):
    said, event, meter = v["statement"], v.get("event"), v.get("meter")
    if event:
        named = {"customer_id": said["customer"], "provider_id": event["provider"], **event}
        frames = [(f["cost"], raw(f["commitment"])) for f in event["frames"]]
        check(content_hash(raw(v["leaf"]["event_id"]), named, frames).hex() == v["leaf"]["content_hash"], "content hash")
        if event.get("turn"):
            check(event_id({**named, **event["turn"], "platform": said["platform"]}).hex() == v["leaf"]["event_id"], "event id")
        opened = [f for f in event["frames"] if f.get("opened")]
        for f in opened:
            check(commitment(raw(f["opened"]["salt"]), {**named, **f["opened"]}).hex() == f["commitment"], "commitment")
    if meter: check(definition({**meter, "meter": said["meter"]}).hex() == said["definition_hash"], "definition hash")
    steps = [(s["side"], read(s["sibling"])) for s in v["inclusion"]["steps"]]
    check(fold(leaf(v["leaf"]), steps, join) == read(said["root"]), "root of the statement")
    sides = [side for side, _ in way(range(v["log"]["size"]), v["log"]["index"], lambda *_: None)]
    path = list(zip(sides, map(raw, v["log"]["path"]), strict=True))
    check(fold(entry(statement(said).hex()), path, pair).hex() == v["head"]["root"], "root of the log")
    return {"statement_hash": statement(said).hex(), "quantity": v["leaf"]["quantity"], "log_index": v["log"]["index"],
            "position": sum(n[1] for side, n in steps if side == "left"), "kid": kid(v["keys"][0]["public_key"]),
            "event_opened": bool(event), "frames_opened": len(opened) if event else 0, "meter_opened": bool(meter)}

GROUPS = {
    "acknowledgement": lambda v: {"to_sign": acknowledgement(v).hex()},
    "content_hash": lambda v: {"content_hash": content_hash(raw(v["event_id"]), v, [(f["cost"], raw(f["commitment"])) for f in v["frames"]]).hex()},
    "encoding": encoding,
    "event_id": lambda v: {"event_id": event_id(v).hex()},
    "frame_commitment": lambda v: {"commitment": commitment(keyed(raw(v["event_salt"]), u(v["place"], 4)), v).hex()},
    "head": lambda v: {"to_sign": head(v).hex()},
    "key": lambda v: {"kid": kid(v["public_key"])},
    "log": lambda v: {"root": log_root([entry(e) for e in v["entries"]]).hex()},
    "log_consistency": log_consistency,
    "log_inclusion": log_inclusion,
    "meter": lambda v: {"definition_hash": definition(v).hex()},
    "period_root": lambda v: {"period_root": period(v).hex()},
    "placement": placement,
    "proof_file": proof_file,
    "report": report,
    "report_key": lambda v: {"report_key": report_key(v).hex()},
    "salt": lambda v: {"event_salt": (salt := keyed(raw(v["erasure_key"]), raw(v["event_id"]))).hex(),
                       "frame_salt": keyed(salt, u(v["place"], 4)).hex()},
    "signature": lambda v: {"kid": kid(v["public_key"])},
    "statement": lambda v: {"statement_hash": statement(v).hex()},
    "sum_tree": lambda v: {"root": shown(sums(v["leaves"]))},
    "sum_tree_inclusion": sum_inclusion,
    "time": lambda v: {"micros": micros(v["text"])},
}

def main():
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "vectors.json"
    vectors = json.loads(file.read_text(encoding="utf-8"))
    if set(vectors) != set(GROUPS):
        sys.exit(f"groups without code, or code without groups: {sorted(set(vectors) ^ set(GROUPS))}")
    for group, compute in GROUPS.items():
        for v in vectors[group]:
            published = {name: value for name, value in v["output"].items() if name != "signature"}
            try: computed = compute(v["input"])
            except Exception as error: sys.exit(f"{group}: {v['name']}: {error!r}")
            if computed != published:
                sys.exit(f"{group}: {v['name']}: differs\n  published {json.dumps(published)}\n  computed  {json.dumps(computed)}")
    print(f"{sum(map(len, vectors.values()))} vectors in {len(vectors)} groups hold")

main()
