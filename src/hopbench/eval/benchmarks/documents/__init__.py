from hopbench.eval.benchmarks.documents.corpus import ENDINGS, DocumentCorpus, holds_documents, read_documents

__all__ = ["ENDINGS", "DocumentCorpus", "holds_documents", "read_documents"]
