from vault.models.conversation import Conversation, Turn
from vault.models.cube import Cube, CubeGrant, CubeLink, CubeUse, CubeVersion
from vault.models.embedding_model import EmbeddingModel
from vault.models.hold import Hold, HoldCube, HoldReleaseApproval
from vault.models.index import Embedding, NamespaceSize, PackedPostings, PackedWord, Packing, Posting
from vault.models.job import Job
from vault.models.namespace import Namespace, NamespaceGrant
from vault.models.review import PiiFinding, Review

__all__ = [
    "Conversation",
    "Cube",
    "CubeGrant",
    "CubeLink",
    "CubeUse",
    "CubeVersion",
    "Embedding",
    "EmbeddingModel",
    "Hold",
    "HoldCube",
    "HoldReleaseApproval",
    "Job",
    "Namespace",
    "NamespaceGrant",
    "NamespaceSize",
    "PackedPostings",
    "PackedWord",
    "Packing",
    "PiiFinding",
    "Posting",
    "Review",
    "Turn",
]
