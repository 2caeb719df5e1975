"""Examples of requests by operation. Each works as given, except for ids, which are the reader's own.

tests/vault/api/test_manual.py sends all of them.
"""

from typing import Any

from django.conf import settings

from vault.pipelines.examples import EXAMPLES as PIPELINES

MEMORY = "0198f3a0-0000-7000-8000-000000000001"
MEMBER = "0198f3a0-0000-7000-8000-000000000002"
OTHER_MEMORY = "0198f3a0-0000-7000-8000-000000000005"
PACK_VERSION = "0198f3a0-0000-7000-8000-000000000006"
PUBLICATION = "0198f3a0-0000-7000-8000-000000000007"
WEEKLY_DIGEST = PIPELINES["digest"]
EXAMPLES: dict[str, Any] = {
    "memories_add": {"content": "Ana prefers the train to flying.", "tags": ["travel"]},
    "memories_add_bulk": {"items": [{"content": "Ana prefers the train to flying."}, {"content": "Bo likes tea."}]},
    "memories_search": {"query": "How does Ana travel?", "top_k": 5},
    "memories_context": {"query": "How does Ana travel?", "token_budget": 500},
    "memories_calls_read": {"text": "Remember that Ana prefers the train.", "execute": True},
    "memories_tool_calls_add": {
        "name": "book_flight",
        "arguments": {"from": "Berlin", "to": "Lisbon"},
        "outcome": "failed",
        "error": "No seats left.",
        "duration_ms": 1200,
    },
    "memories_tool_calls_search": {"name": "book_flight", "arguments": {"from": "Berlin", "to": "Lisbon"}},
    "memories_update": {"title": "How Ana travels"},
    "memories_freeze": {"reason": "We are looking into what happened."},
    "memories_redact": {"version": 1},
    "memories_rollback": {"version": 1, "reason": "The correction was wrong."},
    "memories_move": {"namespace": "/team/notes"},
    "memories_transition": {"to": "archived", "reason": "Nobody asks for it any more."},
    "memories_restore": {},
    "memories_relations_create": {"memory_id": OTHER_MEMORY, "kind": "causes"},
    "memories_promote": {"layer": "mid_term"},
    "memories_feedback": {"kind": "outdated", "note": "Ana moved in May."},
    "memories_copy": {"namespace": "/team/notes"},
    "memories_fuse": {"ids": [MEMORY, OTHER_MEMORY], "reason": "They state the same."},
    "memories_split": {"parts": ["Ana prefers the train.", "Bo likes tea."]},
    "memories_actions": {"action": "tag", "filters": {"tags": "travel"}, "args": {"tags": ["journeys"]}},
    "namespaces_create": {"path": "/clinic/guidelines", "kind": "expert", "quota": 5000},
    "namespaces_update": {"read_only": True},
    "namespaces_move": {"path": "/archive/clinic"},
    "namespaces_restore": {"as_of": "2026-01-31T12:00:00Z"},
    "mounts_create": {"namespace": "/team/notes", "task_id": "ticket-17"},
    "forms_create": {"memory_ids": [MEMORY, OTHER_MEMORY], "title": "House rules"},
    "forms_update": {"pinned": True},
    "forms_proposals_update": {"state": "accepted"},
    "pipelines_create": {"name": "Weekly digest", "steps": WEEKLY_DIGEST},
    "pipelines_update": {"name": "Digest of the week"},
    "pipelines_run_steps": {"steps": WEEKLY_DIGEST},
    "views_create": {"name": "School", "query": "q=school&layer=long_term"},
    "sync_peers_add": {
        "name": "Desktop",
        "address": "https://memos.example",
        "key": "mk_of_the_other_installation",
        "namespace": "/team/notes",
        "remote_namespace": "/team/notes",
        "direction": "both",
    },
    "sync_peers_update": {"direction": "pull"},
    "sync_peers_schedule": {"cron": "0 * * * *", "timezone": "Europe/Berlin"},
    "sync_memories_read": {"namespace": "/team/notes", "memories": {MEMORY: 0}},
    "sync_memories_write": {
        "namespace": "/team/notes",
        "changes": [
            {
                "sent": {
                    "id": MEMORY,
                    "version": 1,
                    "item": {"id": MEMORY, "versions": [{"content": "Ana prefers the train to flying."}]},
                    "origin": "",
                    "stays": "",
                },
                "target": None,
                "base": None,
            }
        ],
    },
    "schedules_add": {"kind": "retention.apply", "cron": "0 3 * * *", "timezone": "Europe/Berlin"},
    "schedules_change": {"enabled": False},
    "conversations_create": {"title": "Journeys"},
    "conversations_update": {"title": "Travels"},
    "turns_create": {"content": "How does Ana travel?"},
    "reviews_accept": {"redact_history": True},
    "reviews_quarantine": {"writer": MEMBER},
    "jobs_cancel_kind": {"kind": "memories.export"},
    "holds_create": {"reason": "Case 17", "subject": "customer-4711"},
    "organisation_deletion": {"slug": "acme"},
    "subjects_create": {"reference": "customer-4711"},
    "subjects_assign": {"ids": [MEMORY]},
    "provenance_verify": {
        "manifest": {
            "format": "memos-manifest/1",
            "id": "0198f3a0-0000-7000-8000-000000000003",
            "tenant": "0198f3a0-0000-7000-8000-000000000004",
            "recipient": {"kind": "member", "id": MEMBER},
            "at": "2026-01-31T12:00:00Z",
            "items": [],
            "key_id": "of another installation",
            "signature": "c2lnbmVk",
        }
    },
    "policies_create": {
        "kind": "retention",
        "name": "Notes of the team",
        "document": {"where": {"namespace": "/team"}, "ttl_seconds": 2592000},
        "reason": "Agreed with the team.",
    },
    "policies_update": {"enabled": False, "reason": "The project has ended."},
    "policies_simulate": {
        "kind": "sharing",
        "document": {"where": {"sensitivities": ["restricted"]}, "share_with": ["member"], "roles": ["admin"]},
    },
    "quotas_set": {"holder": {"kind": "member"}, "limits": {"memories": 10000, "requests_per_minute": 600}},
    "apikeys_create": {
        "name": "Help desk",
        "scopes": ["memories:read", "memories:write"],
        "persona": "Helper",
        "namespaces": ["/team"],
        "purpose": "support",
    },
    "apikeys_update": {"namespaces": ["/team/notes"], "persona": None},
    "apikeys_rotate": {"overlap_seconds": 3600},
    "invitations_create": {"email": "bo@example.com", "role": "editor"},
    "members_update": {"role": "viewer"},
    "grants_create": {
        "principal": {"kind": "role", "id": "viewer"},
        "object": {"type": "memory", "id": MEMORY},
        "action": "read",
        "conditions": {"purpose": ["support"]},
    },
    "grants_check": {
        "principal": {"kind": "role", "id": "viewer"},
        "object": {"type": "memory", "id": MEMORY},
        "action": "read",
        "context": {"purpose": "support"},
    },
    "exports_create": {"filters": {"namespace": "/team"}},
    "packs_create": {
        "name": "travel-phrases",
        "title": "Travel phrases",
        "description": "What to say at the station and at dinner.",
        "topic": "travel",
        "licence": "CC-BY-4.0",
        "keywords": ["phrases"],
    },
    "packs_update": {"readme": "Each phrase in English and Chinese."},
    "packs_preview": {"ids": [MEMORY]},
    "packs_versions_create": {"version": "1.1.0", "ids": [MEMORY], "findings": "redact", "changelog": "Adds dinner."},
    "packs_versions_deprecate": {"reason": "Prices have changed."},
    "packs_versions_yank": {"reason": "One phrase is wrong."},
    "publications_create": {
        "pack_version": PACK_VERSION,
        "visibility": "installation",
        "terms": {"reads": 10000, "period": "month", "days": 365, "price": "free"},
    },
    "publications_try": {"queries": ["Where do I buy a ticket?"]},
    "publications_rate": {"stars": 5, "text": "Every phrase was understood."},
    "publications_report": {"reason": "wrong", "text": "Two phrases are translated wrongly."},
    "publications_reject": {"reason": "Two phrases name a customer."},
    "subscriptions_create": {"publication": PUBLICATION, "range": "^1.0.0", "delivery": "push"},
    "packs_trace": {"text": "A return ticket to Porto, please."},
    "subscriptions_propose": {
        "memory": MEMORY,
        "content": "Return to Porto, please.",
        "reason": "The short form is what people say.",
    },
    "proposals_decline": {"reason": "The long form is easier to understand."},
    "subscriptions_update": {"range": "~1.0.0", "delivery": "pull"},
    "subscriptions_upgrade": {"version": "1.0.0"},
    "subscriptions_override": {"content": "The station is called Central Station here."},
    "contracts_revoke": {"reason": "The price was not paid."},
    "personas_create": {"name": "Concierge", "kind": "agent", "attributes": {"tone": "friendly"}},
    "personas_replay": {"settings": {"theta": 0.5, "stm_pages": 10}},
    "personas_profile_update": {"name": "Ana Silva", "home": "Lisbon", "gender": None},
    "layers_settings_update": {"theta": 0.5, "segments": None},
    "personas_working_set_update": {"replacement": "lru"},
    "personas_settings_update": {"tau": 4, "stm_pages": 10, "mu": None},
    "personas_update": {"attributes": {"tone": "brief"}},
    "role_templates_create": {
        "name": "nurse",
        "role": "viewer",
        "namespaces": ["/clinic"],
        "purpose": "treatment",
        "scopes": ["memories:read"],
        "persona_attributes": {"title": "nurse"},
    },
    "role_templates_update": {"purpose": "care"},
    "role_templates_apply": {"kind": "member", "id": MEMBER},
    "models_add": {
        "model": "gpt-4o-mini",
        "address": "https://api.openai.com/v1",
        "key": "sk-example",
        "timeout_seconds": 30,
        "prompt_price": "0.15",
        "completion_price": "0.60",
        "cached_price": "0.075",
        "currency": "USD",
    },
    "models_update": {"position": 1},
    "audit_exports_add": {"format": "csv", "verb": "memory.deleted", "from": "2026-01-01"},
    "webhooks_add": {
        "url": "https://agent.example.org/memos",
        "events": ["memory.*"],
        "filters": {"namespace": "/team"},
    },
    "webhooks_change": {"enabled": False},
    "audit_sinks_add": {"name": "Log server", "kind": "syslog", "address": "syslog+tls://log.example.org"},
}


def examples_add(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add each example to its operation of the OpenAPI document, as a hook of drf-spectacular."""
    for path in result["paths"].values():
        for operation in path.values():
            name = operation.get("operationId")
            if name in EXAMPLES:
                operation["requestBody"]["content"]["application/json"]["examples"] = {name: {"value": EXAMPLES[name]}}
    return result


def list_bounds_add(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the bounds of lists of objects, which drf-spectacular leaves out, as a hook of it."""
    schemas = result["components"]["schemas"]
    for name, field in (("MemoryInput", "messages"), ("BulkInput", "items")):
        schemas[name]["properties"][field] |= {"minItems": 1, "maxItems": settings.MAX_ITEMS_PER_CALL}
    return result
