from vault.models.conversation import Conversation, Turn
from vault.models.cube import Cube, CubeLink, CubeUse, CubeVersion
from vault.models.embedding_model import EmbeddingModel
from vault.models.hold import Hold, HoldCube, HoldReleaseApproval
from vault.models.index import Embedding, NamespaceSize, Posting
from vault.models.job import Job
from vault.models.namespace import Namespace
from vault.models.review import PiiFinding, Review

__all__ = [
    "Conversation",
    "Cube",
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
    "NamespaceSize",
    "PiiFinding",
    "Posting",
    "Review",
    "Turn",
]
