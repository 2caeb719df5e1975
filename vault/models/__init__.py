from vault.models.conversation import Conversation, Turn
from vault.models.cube import Cube, CubeGrant, CubeLink, CubeUse, CubeVersion
from vault.models.embedding_model import EmbeddingModel
from vault.models.hold import Hold, HoldCube, HoldReleaseApproval
from vault.models.index import CommonWord, CommonWordsCount, Embedding, NamespaceSize, Posting
from vault.models.job import Job
from vault.models.namespace import Namespace, NamespaceGrant
from vault.models.review import PiiFinding, Review

__all__ = [
    "CommonWord",
    "CommonWordsCount",
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
    "PiiFinding",
    "Posting",
    "Review",
    "Turn",
]
