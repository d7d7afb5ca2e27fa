"""What schemathesis does not know by itself."""

import schemathesis


@schemathesis.serializer("application/jsonl")
def json_lines(context, value):
    """Lines of JSON are text to the document."""
    return value if isinstance(value, bytes) else str(value).encode()
