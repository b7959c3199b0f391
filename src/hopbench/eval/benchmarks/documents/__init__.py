from hopbench.eval.benchmarks.documents.corpus import DocumentCorpus, read_documents
from hopbench.eval.benchmarks.documents.files import ENDINGS, holds_documents

__all__ = ["ENDINGS", "DocumentCorpus", "holds_documents", "read_documents"]
