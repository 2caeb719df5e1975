from vault.models.action_item import ActionItem
from vault.models.conversation import Conversation, Turn
from vault.models.cube import Cube, CubeGrant, CubeLink, CubeOrigin, CubeSource, CubeUse, CubeVersion, PastDeletion
from vault.models.daily_count import DailyCount
from vault.models.embedding_model import EmbeddingModel
from vault.models.hold import Hold, HoldCube, HoldReleaseApproval
from vault.models.index import (
    ArchivedPosting,
    Embedding,
    NamespaceSize,
    Posting,
)
from vault.models.layers import LayerEntry, LayerSettings, Page, Segment, Stream, Trait, TraitEvidence
from vault.models.memory_form import FormProposal, MemoryForm
from vault.models.model_endpoint import ModelEndpoint
from vault.models.mount import Mount
from vault.models.namespace import Namespace, NamespaceGrant
from vault.models.pack import Listing, Pack, PackVersion, Publication
from vault.models.pipeline import Pipeline
from vault.models.review import PiiFinding, Review
from vault.models.saved_view import SavedView
from vault.models.state_transition import StateTransition
from vault.models.subscription import (
    Contract,
    PackMemory,
    PackProposal,
    PackRating,
    PackRead,
    PackReport,
    PackTrial,
    Subscription,
)
from vault.models.summary import Summary
from vault.models.sync import SyncLink, SyncPeer
from vault.models.upload import Upload
from vault.models.working_set import PredictorCount, WorkingSet

__all__ = [
    "ActionItem",
    "ArchivedPosting",
    "Contract",
    "Conversation",
    "Cube",
    "CubeGrant",
    "CubeLink",
    "CubeOrigin",
    "CubeSource",
    "CubeUse",
    "CubeVersion",
    "DailyCount",
    "Embedding",
    "EmbeddingModel",
    "FormProposal",
    "Hold",
    "HoldCube",
    "HoldReleaseApproval",
    "LayerEntry",
    "LayerSettings",
    "Listing",
    "MemoryForm",
    "ModelEndpoint",
    "Mount",
    "Namespace",
    "NamespaceGrant",
    "NamespaceSize",
    "Pack",
    "PackMemory",
    "PackProposal",
    "PackRating",
    "PackRead",
    "PackReport",
    "PackTrial",
    "PackVersion",
    "Page",
    "PastDeletion",
    "PiiFinding",
    "Pipeline",
    "Posting",
    "PredictorCount",
    "Publication",
    "Review",
    "SavedView",
    "Segment",
    "StateTransition",
    "Stream",
    "Subscription",
    "Summary",
    "SyncLink",
    "SyncPeer",
    "Trait",
    "TraitEvidence",
    "Turn",
    "Upload",
    "WorkingSet",
]
