"""Example pipelines to start from: paths and ids are to be replaced by one's own."""

from typing import Any

PACK = "00000000-0000-0000-0000-000000000000"
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "digest": [
        {"op": "list", "filters": {"namespace": {"under": "/team/notes"}}, "since_days": 7},
        {"op": "summarise", "ids": "$1.ids"},
        {"op": "add", "content": "$2.text", "title": "Weekly digest", "namespace": "/team/digests"},
    ],
    "import": [
        {"op": "list", "filters": {"source": "import"}, "since_days": 1},
        {"op": "screen", "ids": "$1.ids"},
        {"op": "tag", "ids": "$2.ids", "tags": ["to-review"]},
    ],
    "merge": [
        {"op": "list", "filters": {"namespace": "/team/ann"}, "limit": 10},
        {"op": "list", "filters": {"namespace": "/team/bo"}, "limit": 10},
        {"op": "copy", "ids": ["$1.ids", "$2.ids"], "namespace": "/team/shared"},
        {"op": "fuse", "ids": "$3.ids"},
    ],
    "archive": [
        {"op": "list", "filters": {"namespace": {"under": "/projects/heron"}}},
        {"op": "tag", "ids": "$1.ids", "tags": ["finished"]},
        {"op": "archive", "ids": "$1.ids"},
    ],
    "pack": [
        {"op": "list", "filters": {"namespace": {"under": "/team/handbook"}}},
        {"op": "build", "ids": "$1.ids", "pack": PACK, "changelog": "The handbook as it is now."},
    ],
}
