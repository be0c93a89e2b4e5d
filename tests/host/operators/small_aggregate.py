# SPDX-License-Identifier: Apache-2.0
"""A small accelerator of windowed aggregates, and a device that answers by their definition."""

from hdl.aggregate.accelerator import describe_aggregate
from hdl.aggregate.words import AggregateControl
from host.devices import Exchange
from host.operators.windowed import Field, Reduction
from host.protocol.bit_fields import pack_field, unpack_field
from host.protocol.manifest import AggregateManifest
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.aggregate.window_model import Windows, expected_windows

__all__ = ["OPERATOR", "PARAMETERS", "ModelDevice", "manifest_of"]

#: Sum, least and greatest of a field each, and the number of values and of rows.
OPERATOR = operator(
    size=12,
    advance=3,
    fields=[
        Field("item", 4, signed=False),
        Field("v", 8),
        Field("low", 8),
        Field("high", 8),
        Field("known", 1, signed=False),
    ],
    reductions=[
        Reduction("total", "sum", "v", bits=14),
        Reduction("least", "min", "low"),
        Reduction("greatest", "max", "high"),
        Reduction("values", "sum", "known"),
        Reduction("tuples", "count", bits=12),
    ],
)
PARAMETERS = aggregate_parameters(OPERATOR, cores=3, keys=13, panes=6)


def manifest_of(parameters):
    """Return the manifest that a bundle of these parameters has."""
    return AggregateManifest.from_dict(describe_aggregate(parameters, "", verilog_file="top.v"))


class ModelDevice:
    """An aggregate device without a clock, which sends results at a FLUSH.

    Parameters
    ----------
    described : WindowedOperator
    parameters : AggregateParameters
        Of the same operator.
    most : int
        Words that an exchange takes.
    """

    uri = "model:"

    def __init__(self, described=OPERATOR, parameters=PARAMETERS, *, most=100):
        self.operator, self.manifest, self.most = described, manifest_of(parameters), most
        self.key = described.keys[0].parts[0].text if described.keys else None
        self.fields = {"PANE": 1, "SIZE": 1, "ADVANCE": 1}
        self.queue = []
        self.clear()
        self.queue = []  # nothing has asked for a mark

    def clear(self):
        fields = self.fields
        self.windows = Windows(pane=fields["PANE"], size=fields["SIZE"], advance=fields["ADVANCE"])
        self.time = self.answered = 0
        self.queue.append({"kind": "MARK"})

    def counters(self):
        return {"words": 7}

    def close(self):
        pass

    def exchange(self, words, results, *, cycles, stamps=None):
        taken = words[: self.most]
        layout = self.manifest.input_word
        columns = {name: unpack_field(taken, place) for name, place in layout.fields.items()}
        for at in range(len(taken)):
            word = {name: int(column[at]) for name, column in columns.items()}
            if word["kind"] == self.manifest.input_kinds["TUPLE"]:
                self.add({name[6:]: word[name] for name in word if name.startswith("tuple.")})
            else:
                self.execute(AggregateControl(word["control.op"]).name, word["control.value"])
        count = min(len(results), len(self.queue))
        for at, result in enumerate(self.queue[:count]):
            self.write(results[at : at + 1], result)
        self.queue = self.queue[count:]
        return Exchange(len(taken), count, 1)

    def add(self, fields):
        time = fields["timestamp"]
        assert time >= self.time, "rows come in the order of panes"
        self.time = time
        self.windows.tuples.append((time, fields.get(self.key, 0), fields))

    def execute(self, op, value):
        if op in self.fields:
            self.fields[op] = value
        elif op == "CLEAR":
            self.clear()
        elif op == "WATERMARK":
            self.time = max(self.time, value)
        else:
            cores = self.manifest.cores
            found = expected_windows(
                self.windows, cores=cores, operator=self.operator, until=self.time
            )
            for boundary, key, values in found:
                if boundary > self.answered:
                    self.queue.append(
                        {
                            "kind": "STAR" if key is None else "VALUE",
                            "boundary": boundary,
                            "key": key or 0,
                            **{
                                f"window.{rule.name}": value
                                for rule, value in zip(
                                    self.operator.reductions, values, strict=False
                                )
                            },
                        }
                    )
            self.answered = self.time
            self.queue.append({"kind": "MARK"})

    def write(self, words, result):
        words[:] = 0
        for name, value in {**result, "kind": self.manifest.result_kinds[result["kind"]]}.items():
            if result["kind"] != "STAR" or name in ("kind", "boundary"):
                pack_field(words, self.manifest.result_word[name], [value])
