# SPDX-License-Identifier: Apache-2.0
"""A report of nextpnr, cut short."""

__all__ = ["QUEUE", "REPORT", "SCANNER"]

CLOCK = "posedge $glbnet$clk$TRELLIS_IO_IN"
SCANNER = "accelerator.core_0.left.engine.scanner"
QUEUE = "accelerator.core_0.left.engine.queue"


def endpoint(cell, port, delay, event=CLOCK):
    return {"cell": cell, "event": event, "port": port, "delay": [0.5, delay]}


def step(kind, delay, source, sink, **more):
    return {"type": kind, "delay": delay, "from": {"cell": source}, "to": {"cell": sink}, **more}


#: Cut from a report of nextpnr 0.11.1 on the tiny preset; names shortened.
REPORT = {
    "fmax": {"$glbnet$clk$TRELLIS_IO_IN": {"achieved": 123.456, "constraint": 200}},
    "utilization": {
        "TRELLIS_COMB": {"used": 4182, "available": 83640},
        "TRELLIS_FF": {"used": 2000, "available": 83640},
        "DP16KD": {"used": 104, "available": 208},
    },
    "critical_paths": [
        {"from": "<async>", "to": CLOCK, "path": [step("routing", 99.0, "pad", "x", net="x")]},
        {
            "from": CLOCK,
            "to": CLOCK,
            "path": [
                step("clk-to-q", 0.5, f"{SCANNER}.row_TRELLIS_FF_Q", f"{SCANNER}.row_TRELLIS_FF_Q"),
                step("routing", 1.0, f"{SCANNER}.row_TRELLIS_FF_Q", f"{SCANNER}.a_LUT4_Z", net="n"),
                step("logic", 0.25, f"{SCANNER}.a_LUT4_Z", f"{SCANNER}.a_LUT4_Z"),
                step("routing", 0.0, f"{SCANNER}.a_LUT4_Z", "$nextpnr_CCU2C_1", net="carry"),
                step("logic", 0.5, "$nextpnr_CCU2C_1", "$nextpnr_CCU2C_1"),
                step("routing", 2.0, "$nextpnr_CCU2C_1", f"{QUEUE}.w_TRELLIS_FF_Q", net="w"),
                step("setup", 0.0, f"{QUEUE}.w_TRELLIS_FF_Q", f"{QUEUE}.w_TRELLIS_FF_Q"),
            ],
        },
    ],
    "detailed_net_timings": [
        {
            "event": CLOCK,
            "net": "w",
            "endpoints": [
                endpoint(f"{QUEUE}.w_TRELLIS_FF_Q", "DI", 4.25),
                endpoint(f"{QUEUE}.w_TRELLIS_FF_Q_1", "M", 2),
                endpoint(f"{QUEUE}.w_TRELLIS_FF_Q", "CE", 3),
                endpoint("pad", "I", 9, event="<async>"),
            ],
        }
    ],
}  # fmt: skip
