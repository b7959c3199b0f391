from hopbench.eval.benchmarks.documents.corpus import READERS, DocumentCorpus, holds_documents, read_documents

__all__ = ["READERS", "DocumentCorpus", "holds_documents", "read_documents"]
