"""Compresses a transcript with Hermes' own compressor and a helper that answers at once; prints the median time."""

import copy
import json
import statistics
import sys
import time
from types import SimpleNamespace

from agent import context_compressor as module

SUMMARY = "## Goal\nPort the parser of the project to the new grammar and keep every old test.\n" * 4


def answer(*_args, **_kwargs):
    message = SimpleNamespace(content=SUMMARY, reasoning=None, reasoning_content=None, tool_calls=None)
    choice = SimpleNamespace(message=message, finish_reason="stop")
    usage = SimpleNamespace(prompt_tokens=1, completion_tokens=1, total_tokens=2)
    return SimpleNamespace(choices=[choice], usage=usage, model="stub")


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        messages = [json.loads(line) for line in lines]
    module.call_llm = answer
    times = []
    for _ in range(3):
        engine = module.ContextCompressor(model="stub/model", quiet_mode=True, config_context_length=200_000)
        given = copy.deepcopy(messages)
        start = time.perf_counter()
        out = engine.compress(given, current_tokens=1_700_000)
        times.append((time.perf_counter() - start) * 1000)
        if len(out) >= len(messages):
            print(f"the peer did not compress: {len(out)} messages", file=sys.stderr)
            return 1
    print(f"theirs_ms={statistics.median(times):.1f}")
    return 0


sys.exit(main())
