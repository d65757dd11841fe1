"""Order and hazards of contracted regions, on real captures."""

from __future__ import annotations

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx

from agentforge.stitch.graph.dataflow import Replacement, Step, bases, schedule

aten = torch.ops.aten


class Made:
    """A graph written node by node."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.nodes: dict[str, Node] = {}

    def input(self, name: str) -> Node:
        self.nodes[name] = self.graph.placeholder(name)
        return self.nodes[name]

    def call(self, name: str, target: object, *args: object) -> Node:
        node = self.graph.create_node("call_function", target, args, name=name)  # type: ignore[arg-type]
        self.nodes[name] = node
        return node

    def region(self, site: str, *names: str) -> Replacement:
        nodes = tuple(self.nodes[n] for n in names)
        entering = dict.fromkeys(s for n in nodes for s in n.all_input_nodes if s not in nodes)
        leaving = tuple(n for n in nodes if any(u not in nodes for u in n.users))
        return Replacement(site, "k", nodes, tuple(entering), leaving)

    def schedule(self, *regions: Replacement) -> tuple[list[str], dict[str, str]]:
        steps, refused = schedule(list(self.graph.nodes), regions)
        return [label(step) for step in steps], {r.site: why for r, why in refused}


def label(step: Step) -> str:
    return step.region.site if step.region else str(step.node)


def test_a_region_waits_for_its_inputs_and_precedes_its_users() -> None:
    made = Made()
    x = made.input("x")
    a = made.call("a", aten.neg.default, x)
    b = made.call("b", aten.abs.default, x)
    c = made.call("c", aten.exp.default, a)
    d = made.call("d", aten.mul.Tensor, b, b)
    e = made.call("e", aten.add.Tensor, c, d)
    made.graph.output((made.call("f", aten.sub.Tensor, a, e),))
    order, refused = made.schedule(made.region("R", "a", "c", "e"))
    assert not refused
    assert order == ["b", "d", "R", "f"]


def test_a_region_with_a_detour_through_another_operator_is_left_out() -> None:
    made = Made()
    x = made.input("x")
    a = made.call("a", aten.neg.default, x)
    between = made.call("between", aten.exp.default, a)
    made.graph.output((made.call("b", aten.add.Tensor, a, between),))
    order, refused = made.schedule(made.region("R", "a", "b"))
    assert order == ["a", "between", "b"]
    assert "between its nodes" in refused["R"]


def test_dead_operators_and_guards_go_writes_stay() -> None:
    made = Made()
    x = made.input("x")
    made.call("guard", aten._assert_tensor_metadata.default, x)
    made.call("dead", aten.neg.default, x)
    made.call("write", aten.add_.Scalar, x, 1)
    made.graph.output((made.call("y", aten.abs.default, x),))
    assert made.schedule()[0] == ["write", "y"]


def test_reads_stay_on_their_side_of_a_write() -> None:
    made = Made()
    x, y = made.input("x"), made.input("y")
    view = made.call("view", aten.view.default, x, [4])
    before = made.call("before", aten.neg.default, view)
    made.call("write", aten.mul_.Tensor, x, y)
    after = made.call("after", aten.abs.default, view)
    last = made.call("last", aten.add.Tensor, before, after)
    made.graph.output((last,))
    order, refused = made.schedule(made.region("R", "before", "after", "last"))
    assert order == ["view", "before", "write", "after", "last"]
    assert "R" in refused
    order, refused = made.schedule(made.region("R", "after", "last"))
    assert order == ["view", "before", "write", "R"]
    assert not refused


def test_a_region_may_write_to_what_it_made() -> None:
    made = Made()
    x = made.input("x")
    a = made.call("a", aten.neg.default, x)
    b = made.call("b", aten.relu_.default, a)
    made.graph.output((made.call("c", aten.exp.default, b),))
    order, refused = made.schedule(made.region("R", "a", "b"))
    assert (order, refused) == (["R", "c"], {})


def test_a_region_may_not_write_to_what_others_read() -> None:
    made = Made()
    x = made.input("x")
    a = made.call("a", aten.neg.default, x)
    b = made.call("b", aten.relu_.default, a)
    made.graph.output((b, made.call("c", aten.exp.default, a)))
    assert "read elsewhere" in made.schedule(made.region("R", "b"))[1]["R"]
    made = Made()
    x = made.input("x")
    made.graph.output((made.call("b", aten.relu_.default, x),))
    assert "writes to x" in made.schedule(made.region("R", "b"))[1]["R"]


def test_what_shares_its_sources_memory_is_known_even_if_the_schema_does_not_say_so() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        taken = aten.transpose.int(x, 0, 1)
        dropped = aten.dropout.default(taken, 0.1, False)
        typed = aten.type_as.default(dropped, y)
        turned = aten.einsum.default("ij->ji", [typed])
        spread = aten.meshgrid.indexing([aten.select.int(v, 0, 0) for v in (y, x)], indexing="ij")
        copied = aten.type_as.default(x, aten.gt.Scalar(x, 0))
        return [
            taken,
            dropped,
            typed,
            turned,
            spread[1],
            spread[0],
            copied,
            aten.dropout.default(x, 0.1, True),
        ]

    with FakeTensorMode():
        fakes = torch.ones(3, 3), torch.ones(3, 3)
    nodes = list(make_fx(forward, pre_dispatch=True)(*fakes).graph.nodes)
    base = bases(nodes)
    x, y = nodes[:2]
    results = nodes[-1].args[0]
    assert isinstance(results, (list, tuple))
    assert [base[node] for node in results] == [x, x, x, x, x, y, *results[-2:]]
