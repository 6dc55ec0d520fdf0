"""5,000 ordinary error texts without a secret, as tools, libraries and models make them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

TEMPLATES = (Path(__file__).with_name("ordinary_errors.txt").read_text("utf-8")).splitlines()

WORDS_TEXT = """search orders payment reader city weather session author upload index config worker
login invoice report batch gateway profile schema render parser stream bucket cluster
metric planner"""
WORDS = WORDS_TEXT.split()
FIELDS_TEXT = """port user_id city page limit max_tokens follow_redirects start_date items.1.port
headers
keyword token_limit author password_hint unit latitude file_path query expression"""
FIELDS = FIELDS_TEXT.split()
NAMES_TEXT = """Ada Grace Linus Barbara Ken Frances Alan Radia"""
NAMES = NAMES_TEXT.split()


def ordinary_errors(count: int = 5_000, seed: int = 11) -> Iterator[str]:
    """*count* texts, every template in turn with other words and numbers."""
    rng = random.Random(seed)

    def digits(width: int) -> str:
        return "".join(rng.choice("0123456789") for _ in range(width))

    def hexadecimal(width: int) -> str:
        return "".join(rng.choice("0123456789abcdef") for _ in range(width))

    for number in range(count):
        camel = rng.choice(WORDS).title() + rng.choice(WORDS).title()
        yield (
            TEMPLATES[number % len(TEMPLATES)]
            .format(
                field=rng.choice(FIELDS),
                word=rng.choice(WORDS),
                name=rng.choice(NAMES),
                camel=camel,
                n=rng.randrange(1, 20_000),
                n8=rng.randrange(1, 9),
                n3=digits(3),
                n4=digits(4),
                n5=digits(5),
                n6=digits(6),
                n7=digits(7),
                n10=digits(10),
                n13="17" + digits(11),
                d2=f"{rng.randrange(1, 29):02d}",
                hex2=hexadecimal(2),
                hex16=hexadecimal(16),
                hex32=hexadecimal(32),
                sha=hexadecimal(40),
                sha64=hexadecimal(64),
                uuid="-".join(hexadecimal(w) for w in (8, 4, 4, 4, 12)),
                upper6="".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789") for _ in range(6)),
                alnum24="".join(
                    rng.choice("0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz")
                    for _ in range(24)
                ),
            )
            .replace("\\n", "\n")
        )
