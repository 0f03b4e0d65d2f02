"""Links of the tutorials: a notebook names Markdown files, its page the pages made of them.

A hook of mkdocs, which mends the links of Markdown files only.
"""

import re
from typing import Any

LINK = re.compile(r'(href="(?!\w+:)[^"#]+)\.md(?=["#])')


def on_post_page(output: str, page: Any, config: Any) -> str:
    """mkdocs: the page of a notebook with links that lead somewhere."""
    return LINK.sub(r"\1.html", output) if page.file.src_uri.endswith(".ipynb") else output
