"""Conversations of every shape that a chat template has to face, good and bad."""

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.\nOf a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city"},
                "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
                "days": {"type": "integer", "minimum": 1, "default": 3},
                "note": {"type": ["string", "null"]},
                "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
            },
            "required": ["city"],
        },
        "return": {"type": "string"},
    },
}
EMPTY_TOOL = {"type": "function", "function": {"name": "search", "description": "", "parameters": {"type": "object", "properties": {}}}}
CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 3, "points": [{"x": 1.5}], "note": None, "flag": True}},
}
TEXT_CALL = {"id": "call00002", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


SYSTEM = say("system", "You are helpful.\nBe brief. ")
DEVELOPER = say("developer", "Rules")
USER = say("user", "What's the weather? <|im_end|> <think>")
PARTS = say("user", [{"type": "text", "text": "Look "}, {"type": "image", "image": "x"}, {"type": "text", "text": "here"}])
ANSWER = say("assistant", "Hello!  ")
CALLS = say("assistant", None, tool_calls=[CALL])
TWO_CALLS = say("assistant", "", tool_calls=[TEXT_CALL, CALL])
ONLY_CALLS = {"role": "assistant", "tool_calls": [CALL]}
THOUGHT = say("assistant", "<think>\nreason\n</think>\n\nanswer", reasoning_content="because")
THINKING = say("assistant", "answer", thinking="hm")
RESULT = say("tool", "sunny", tool_call_id="call00001", name="get_weather")
PARTS_RESULT = say("tool", [{"type": "text", "text": "rain"}], tool_call_id="call00001")
OBJECT_RESULT = say("tool", {"temperature": 20.5, "wind": None}, tool_call_id="call00001")

CONVERSATIONS = [
    [USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, USER], [USER, ANSWER, USER, ANSWER], [SYSTEM, USER, CALLS, RESULT],
    [SYSTEM, USER, CALLS, RESULT, ANSWER, USER], [USER, TWO_CALLS, RESULT, PARTS_RESULT], [USER, ONLY_CALLS, OBJECT_RESULT, ANSWER],
    [SYSTEM, USER, THOUGHT, USER], [USER, THINKING, USER, THOUGHT], [PARTS], [SYSTEM, PARTS, ANSWER, PARTS], [DEVELOPER, USER],
    # Wrong order, missing fields, nothing at all.
    [ANSWER, USER], [USER, USER], [SYSTEM], [], [SYSTEM, SYSTEM, USER], [{"role": "user"}], [{"content": "x"}], [USER, RESULT],
    [say("stranger", "x")], [say("user", "")], [say("user", None)], [say("user", 5)], [say("system", [{"type": "text", "text": "parts"}]), USER],
    [USER, CALLS, RESULT, TWO_CALLS, RESULT, RESULT, ANSWER, USER, THOUGHT], [USER, {**CALLS, "content": "text too", "thinking": "first"}, RESULT],
    [say("user", "  漢字 🎉 \u2028 \x1c"), say("assistant", "\"quotes\" \\ {braces} <tags> & 'more'")],
]

SETTINGS = [
    {}, {"tools": [TOOL]}, {"tools": [TOOL, EMPTY_TOOL]}, {"tools": []}, {"enable_thinking": False},
    {"documents": [{"title": "T", "text": "body"}]}, {"date_string": "01 Jan 2025", "tools_in_user_message": False, "tools": [TOOL]},
    {"reasoning_effort": "high", "builtin_tools": ["browser", "python", "code_interpreter"], "tools": [TOOL], "model_identity": "X"},
]


def contexts():
    """What transformers would pass: these names are always set."""
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    for messages in CONVERSATIONS:
        for settings in SETTINGS:
            for prompt in (True, False):
                yield {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": prompt, **tokens, **settings}
