"""The real program's session store, driven by the tests: one verb an invocation, JSON on stdout.

    peer.py create FILE            write sessions of every kind
    peer.py read FILE              print every session's messages as the peer sees them
    peer.py append FILE SESSION    append a turn
    peer.py bench FILE ROWS        append turns of four rows, print rows per second
    peer.py search FILE TEXT       print the sessions that the peer finds
"""

import json
import sys
import time
from pathlib import Path

from hermes_state import SessionDB


def create(db):
    db.create_session("talk", "cli", model="test-model", system_prompt="You are a test.")
    db.append_message("talk", "user", content="What is the weather in 東京?")
    db.append_message(
        "talk",
        "assistant",
        content="",
        tool_calls=[
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "東京"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "大阪"}'}},
        ],
        reasoning="Two cities.",
        reasoning_details=[{"type": "text", "text": "két"}],
        finish_reason="tool_calls",
    )
    db.append_message("talk", "tool", content="晴れ", tool_call_id="call_1", tool_name="weather")
    db.append_message("talk", "tool", content=[{"type": "text", "text": "雨"}], tool_call_id="call_2", tool_name="weather")
    db.append_message("talk", "assistant", content="Sunny and rainy.", finish_reason="stop", token_count=7)
    db.create_session("parts", "telegram", user_id="u1")
    db.append_message(
        "parts",
        "user",
        content=[{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}],
        platform_message_id="77",
        observed=True,
    )
    db.append_message("parts", "assistant", content=None, reasoning_content="", codex_reasoning_items=[{"id": "r"}])
    db.append_message("parts", "user", content="half \ud83d and whole \U0001f389 \u2028 \x00", api_content="sent otherwise")
    db.create_session("packed", "cli")
    for n in range(6):
        db.append_message("packed", "user", content=f"question {n}")
        db.append_message("packed", "assistant", content=f"answer {n}")
    db.archive_and_compact("packed", [{"role": "user", "content": "summary"}, {"role": "assistant", "content": "answer 5"}])
    db.set_session_title("talk", "Weather")


def read(db):
    out = {}
    for session in db.search_sessions(limit=1000):
        sid = session["id"]
        out[sid] = {
            "title": session["title"],
            "count": session["message_count"],
            "live": db.get_messages_as_conversation(sid),
            "all": [
                {k: v for k, v in row.items() if k not in ("fts_pending", "stored_json", "original_bytes")}
                for row in db.get_messages(sid, include_inactive=True)
            ],
        }
    return out


def append(db, session):
    db.append_message(session, "user", content="from the peer 北京")
    db.append_message(
        session, "assistant", content="", tool_calls=[{"id": "p", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    )
    db.append_message(session, "tool", content="peer result", tool_call_id="p", tool_name="f")
    db.append_message(session, "assistant", content="peer answer")


def bench(db, rows):
    db.create_session("bench", "cli")
    text = "lorem ipsum dolor sit amet " * 20
    start = time.perf_counter()
    for n in range(rows // 4):
        db.append_message("bench", "user", content=f"question {n} {text}")
        db.append_message(
            "bench",
            "assistant",
            content="",
            tool_calls=[{"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.rs"}'}}],
        )
        db.append_message("bench", "tool", content=text, tool_call_id=f"c{n}", tool_name="read")
        db.append_message("bench", "assistant", content=f"answer {n} {text}")
    return {"rows_per_second": rows / (time.perf_counter() - start)}


def main():
    verb, path, *rest = sys.argv[1:]
    db = SessionDB(Path(path))
    if verb == "create":
        create(db)
        result = read(db)
    elif verb == "read":
        result = read(db)
    elif verb == "append":
        append(db, rest[0])
        result = read(db)
    elif verb == "bench":
        result = bench(db, int(rest[0]))
    elif verb == "search":
        result = [hit["session_id"] for hit in db.search_messages(rest[0], limit=1000)]
    else:
        sys.exit(f"unknown verb {verb}")
    db.close()
    json.dump(result, sys.stdout)


main()
