"""A content-addressed cache on disk: (model with version, text) → vector, so that nothing is embedded twice."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_random

from hopbench.retrieval.embedding.base import Embedder, Vectors, refuse_text
from hopbench.retrieval.support.arithmetic import on_grid
from hopbench.retrieval.support.errors import InputError, exhausted
from hopbench.retrieval.support.notice import notice
from hopbench.retrieval.support.sqlite_files import SEAL, heal, is_damage, seal, seal_of_bytes

READ_BATCH = 512
LOCK_SECONDS = 60.0
STORED = np.dtype("<f4")
# The first answer stays, unless it is no longer the one that was given.
_STORE = f"""INSERT INTO vectors VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET vector = excluded.vector,
{SEAL} = excluded.{SEAL} WHERE {SEAL} IS NOT crc(key, vector) OR length(vector) != length(excluded.vector)"""


def text_key(text: str) -> bytes:
    """The 16-byte digest of a text, by which its vector is stored (lone surrogates are allowed)."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class DamagedCache(InputError):  # noqa: N818 - a state of the file, which its user heals
    """Reports a file that SQLite cannot read; `EmbeddingCache.heal` saves its readable rows."""


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Turn an error of the disk or of SQLite into one that names the file and the remedy."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if (lacking := exhausted(error, file)) is not None:
            raise lacking from error
        if is_damage(error):
            raise DamagedCache(f"embedding cache {file}: {error}: hopbench doctor --repair keeps what reads") from error
        raise InputError(
            f"embedding cache {file}: {error}. Make sure that the folder can be written and the disk has room; "
            "all it holds can be computed again"
        ) from error


@dataclass(frozen=True)
class EmbeddingCache:
    """A folder of caches, one file per model. It is created on first use and may be deleted at any time.

    Safe for threads and for several processes: SQLite's locks and write-ahead log show a reader each batch whole, and a
    killed process loses at most the batch in flight. Raises `InputError` when the folder cannot be written,
    DamagedCache when SQLite cannot read a file.
    """

    folder: Path

    def file(self, model: str) -> Path:
        """Where the vectors of `model` lie: a readable name, made unique by a digest."""
        digest = hashlib.blake2b(model.encode(), digest_size=4).hexdigest()
        return self.folder / f"{re.sub(r'[^A-Za-z0-9.]+', '-', model)[:80]}-{digest}.sqlite"

    def heal(self, model: str) -> None:
        """Save the readable rows of a damaged file of `model`, with a warning."""
        with _explained(self.file(model)):
            heal(self.file(model), "other vectors are computed again")

    @contextmanager
    def open(self, model: str) -> Iterator[VectorTable]:
        """The vectors of `model`, open for reading and writing; one connection, for one thread."""
        file = self.file(model)
        with _explained(file):
            self.folder.mkdir(parents=True, exist_ok=True)
            connection = _connect(file)
        with closing(connection):
            yield VectorTable(connection, file)


@dataclass(frozen=True)
class VectorTable:
    """One model's vectors by `text_key`, each with a checksum."""

    connection: sqlite3.Connection
    file: Path

    def dimension(self) -> int | None:
        """Length of the stored vectors; None before the first is stored."""
        with _explained(self.file):
            row = self.connection.execute("SELECT dimension FROM model").fetchone()
        return None if row is None else int(row[0])

    def read(self, keys: Sequence[bytes]) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Vectors of unique `keys`, shape (len(keys), dimension), and a mask of those stored (rows of others are 0)."""
        with _explained(self.file), self.connection:
            self.connection.execute("BEGIN")  # one snapshot: another writer may store the first vectors meanwhile
            damaged, dimension = 0, self.dimension() or 0
            vectors = np.zeros((len(keys), dimension), dtype=np.float32)
            stored = np.zeros(len(keys), dtype=np.bool_)
            for start in range(0, len(keys), READ_BATCH):
                row_of = {key: start + offset for offset, key in enumerate(keys[start : start + READ_BATCH])}
                query = f"SELECT key, vector, {SEAL} FROM vectors WHERE key IN ({','.join('?' * len(row_of))})"
                selected = self.connection.execute(query, list(row_of)).fetchall()
                size = dimension * STORED.itemsize
                rows = [row[:2] for row in selected if row[2] == seal_of_bytes(*row[:2]) and len(row[1]) == size]
                damaged += len(selected) - len(rows)
                at = [row_of[key] for key, _ in rows]
                content = b"".join(vector for _, vector in rows)
                vectors[at] = np.frombuffer(content, STORED).reshape(len(rows), dimension)
                stored[at] = True
        if damaged:
            notice(f"embedding cache {self.file}: {damaged:,} damaged vectors are computed again")
        return vectors, stored

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store `vectors`, shape (len(keys), d), all or none; where a key is already there the first answer stays.

        Raises `InputError` when d is not the length of the vectors stored before.
        """
        contents = (row.tobytes() for row in vectors.astype(STORED))
        rows = [(key, row, seal((key, row))) for key, row in zip(keys, contents, strict=True)]
        with _explained(self.file), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute("INSERT OR IGNORE INTO model VALUES (0, ?)", (vectors.shape[1],))
            stored = self.dimension()
            if stored != vectors.shape[1]:
                raise InputError(
                    f"embedding cache {self.file} holds vectors of {stored} dimensions, the model now gives "
                    f"{vectors.shape[1]}: another model answers to the same name. Delete the file, or give the model "
                    "a name of its own"
                )
            self.connection.executemany(_STORE, rows)


# Two processes that both turn a new file to write-ahead logging may be refused without SQLite's own waiting.
@retry(
    retry=retry_if_exception_message(match=".*locked"),
    stop=stop_after_delay(LOCK_SECONDS),
    wait=wait_random(0.01, 0.1),
    reraise=True,
)
def _connect(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=LOCK_SECONDS, isolation_level=None)
    try:
        connection.create_function("crc", 2, lambda *values: seal(values), deterministic=True)
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS model (one INTEGER PRIMARY KEY, dimension INTEGER NOT NULL)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, seal INTEGER)"
        )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


# Texts embedded between two commits, which is what a killed process can lose. Keys are scattered over a large file, so
# that each one costs a page per commit, written twice: fast models get larger batches, up to about a second's work.
MIN_BATCH, MAX_BATCH = 256, 1 << 14
SHORT_SECONDS = 0.5  # a batch that takes less is followed by one of twice its size
# WordLlama embeds that many texts of at most this average length (characters) in 10 µs each. The cache finds one in
# 5 µs, in 45 where its file has 4 GB and is not in memory; storing one takes 130.
MIN_QUICK_TEXTS, MAX_QUICK_LENGTH = 1024, 64


@dataclass(frozen=True)
class _Wrapper:
    """An embedder with the name and the threshold of the `inner` one."""

    inner: Embedder

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def synonym_threshold(self) -> float:
        return self.inner.synonym_threshold

    @property
    def dimension(self) -> int:
        return self.inner.dimension


@dataclass(frozen=True)
class CachedEmbedder(_Wrapper):
    """`inner` behind the cache: it embeds only texts that the cache lacks, each once.

    (Two processes that need the same new text in the same moment both compute it; both return the one stored first.)
    Many short texts in one call are neither looked up nor stored where `quick` says that `inner` computes them as fast,
    the same bytes each time.
    """

    cache: EmbeddingCache
    quick: bool = False

    @property
    def dimension(self) -> int:
        """As stored, so that an endpoint need not be asked; else the inner embedder's."""
        try:
            return self._dimension()
        except DamagedCache:
            self.cache.heal(self.name)
            return self._dimension()

    def _dimension(self) -> int:
        with self.cache.open(self.name) as table:
            return table.dimension() or self.inner.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`; new vectors are stored every 256 texts or every second: an interrupted run loses few."""
        refuse_text(texts)
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        if self.quick and len(texts) >= MIN_QUICK_TEXTS and sum(map(len, texts)) <= MAX_QUICK_LENGTH * len(texts):
            vectors = np.empty((len(texts), self.inner.dimension), dtype=np.float32)
            for start in range(0, len(texts), MAX_BATCH):  # embedding takes as much memory as the vectors themselves
                vectors[start : start + MAX_BATCH] = on_grid(self.inner.embed(texts[start : start + MAX_BATCH]))
            return vectors
        try:
            return self._embedded(texts)
        except DamagedCache:
            self.cache.heal(self.name)
            return self._embedded(texts)

    def _embedded(self, texts: Sequence[str]) -> Vectors:
        keys = [text_key(text) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))
        unique = list(text_of)
        with self.cache.open(self.name) as table:
            vectors, stored = table.read(unique)
            missing = [key for key, is_stored in zip(unique, stored, strict=True) if not is_stored]
            start, size = 0, MIN_BATCH
            while start < len(missing):
                begun, batch = time.monotonic(), missing[start : start + size]
                table.write(batch, on_grid(self.inner.embed([text_of[key] for key in batch])))
                start += size
                if time.monotonic() - begun < SHORT_SECONDS:
                    size = min(2 * size, MAX_BATCH)
            if missing:  # read back, so that this answer and every later one have the same bytes
                vectors, stored = table.read(unique)
        if not stored.all():
            raise InputError(f"embedding cache {self.cache.file(self.name)} lost vectors while in use: run it again")
        if len(unique) == len(keys):
            return vectors
        row_of = {key: row for row, key in enumerate(unique)}
        return vectors[[row_of[key] for key in keys]]


@dataclass(frozen=True)
class StoredEmbedder(_Wrapper):
    """`inner`, which embeds only texts without a row in `vectors` (n, d); `rows` maps text keys to rows.

    Nothing is written: a folder that holds the vectors may be read-only, and many processes may share it.
    """

    rows: Mapping[bytes, int]
    vectors: Vectors = field(repr=False)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`."""
        refuse_text(texts)
        rows = np.array([self.rows.get(text_key(text), -1) for text in texts], dtype=np.intp)
        result = np.zeros((len(texts), self.dimension), dtype=np.float32)
        known = rows >= 0
        result[known] = self.vectors[rows[known]]
        if not known.all():
            result[~known] = self.inner.embed([text for text, there in zip(texts, known, strict=True) if not there])
        return result


@dataclass(frozen=True)
class RecordingEmbedder(_Wrapper):
    """`inner`, with a record of its texts in the order of their first use."""

    texts: dict[str, None] = field(default_factory=dict)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As `Embedder.embed`."""
        self.texts.update(dict.fromkeys(texts))
        return self.inner.embed(texts)


def save_vectors(folder: Path, embedder: Embedder, texts: Sequence[str]) -> None:
    """Write the vectors of texts into `folder`: `keys.txt`, a key per line, and `vectors.npy` (n, d) in its order."""
    (folder / "keys.txt").write_text("".join(f"{text_key(text).hex()}\n" for text in texts), encoding="ascii")
    np.save(folder / "vectors.npy", embedder.embed(texts), allow_pickle=False)


def load_vectors(folder: Path, inner: Embedder) -> StoredEmbedder:
    """Open what `save_vectors` wrote (vectors are mapped into memory, not copied).

    Raises OSError or ValueError where the files are missing or damaged.
    """
    keys = [bytes.fromhex(key) for key in (folder / "keys.txt").read_text(encoding="ascii").split()]
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="r")  # refuses objects, which a pickle could hold
    if vectors.ndim != 2 or len(keys) != len(vectors):
        raise ValueError(f"vectors of shape {vectors.shape} for {len(keys)} keys")
    return StoredEmbedder(inner, {key: row for row, key in enumerate(keys)}, vectors)
