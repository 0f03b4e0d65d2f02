"""A hub in a folder: what `huggingface_hub` would fetch, without a network."""

from fnmatch import fnmatch
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class PretendHub:
    """Repositories by name and revision; it counts what it is asked.

    Args:
        root: a folder for its cache.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repositories: dict[tuple[str, str | None], tuple[Path, str]] = {}
        self.asked: list[tuple[str, str, str | None, tuple[str, ...]]] = []

    def add(
        self, name: str, folder: Path, revision: str | None = None, commit: str = COMMIT
    ) -> None:
        """Publish a folder; its commit can be asked for too."""
        self.repositories[name, revision] = self.repositories[name, commit] = folder, commit

    def snapshot_download(
        self, repo_id, *, repo_type, revision, allow_patterns, local_files_only
    ) -> str:
        """As of `huggingface_hub`."""
        self.asked.append((repo_id, repo_type, revision, tuple(allow_patterns)))
        if (repo_id, revision) not in self.repositories:
            raise OSError("404: no such repository")
        folder, commit = self.repositories[repo_id, revision]
        target = self.root / repo_id.replace("/", "--") / "snapshots" / commit
        if local_files_only:
            if not target.exists():
                raise OSError("not in the cache")
            return str(target)
        for file in folder.rglob("*"):
            name = str(file.relative_to(folder))
            wanted = file.is_file() and not (target / name).exists()
            if wanted and any(fnmatch(name, pattern) for pattern in allow_patterns):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(file.read_bytes())
        return str(target)
