"""Pictures and documents: their types, their size, and the first bytes of a picture.

Not here: what only its whole data tells (dimensions, pages, whether a file is damaged).
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, Past
from cassettes.stand_in.rules._sources import docs, issue
from cassettes.stand_in.rules.shape import hits, shape
from cassettes.stand_in.schema_blocks import LARGER_SINCE, MEDIA
from cassettes.stand_in.view import View


@shape(
    id="D11",
    slug="image-and-document",
    wire=(
        "{path}: image exceeds 10 MB maximum: {n} bytes > 10485760 bytes",
        f"{{path}}: Input should be {MEDIA['image']}",
        f"{{path}}: Input should be {MEDIA['document']}",
        "{path}: The image was specified using the {said} media type, but the image appears to be a {found} "
        "image",
    ),
    past=(Past(LARGER_SINCE, "{path}: image exceeds 5 MB maximum: {n} bytes > 5242880 bytes"),),
    older=(
        "{path}: At least one of the image dimensions exceed max allowed size: {n} pixels",
        "{path}: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 "
        "pixels",
        "Could not process image",
        "{path}: Could not process image",
        "{path}: The file format is invalid or unsupported",
        "{path}: A maximum of {n} PDF pages may be provided.",
        "{path}: The PDF specified was not valid.",
    ),
    statement="A picture in the list is JPEG, PNG, GIF or WebP, as its media type says, and at most 10 MB "
    "as base64; a document in base64 is a PDF. Pixels and pages are not looked at.",
    confidence="medium",
    sources=(
        docs("build-with-claude/vision", "2026-08", "10 MB"),
        issue("lobehub/lobehub", 14711, "2026-05-12", "5 MB, counted over the base64"),
        issue("anthropics/claude-code", 19631, "2026-01-21", "5 MB"),
        issue("kolega-ai/kolega-code", 354, "2026-07-28", "10 MB, counted over the base64"),
        issue("expectedparrot/edsl", 2057, "2025-06-28", "a PDF as a picture"),
        issue("langchain-ai/langchainjs", 11156, "2026-07-06", "a text file as a document"),
        issue("vybestack/llxprt-code", 2130, "2026-06-23", "a PNG said to be a JPEG"),
        issue("anthropics/claude-code", 6231, "2025-08-21", "pages"),
    ),
    applies="all models; the sentence about size was only seen with 5 MB. Which comes first, size or first "
    "bytes, is not on record",
)
def image(view: View) -> Iterator[Hit]:
    """A picture or document of another type than it may be or says, or too large a picture."""
    return hits(view, {"image size": 0, "image": 1, "document": 2, "media": 3}, {"image size": 0})
