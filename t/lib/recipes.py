# SPDX-License-Identifier: BSD-3-Clause
"""doc/recipes.md: its sections, and what is said and answered in them."""

import os
import re

RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../doc/recipes.md")
SAID = "> "


def sections():
    """{title: its blocks, each (language, text)}."""
    with open(RECIPES, encoding="utf-8") as file:
        text = file.read()
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title: re.findall(r"^```(\w*)\n(.*?)^```", body,
                              re.MULTILINE | re.DOTALL)
            for title, body in zip(parts[1::2], parts[2::2])}


def steps(block):
    """Lines as a person has them in telnet: (lines that are sent, lines of the
    answer) one after the other."""
    said, answer = [], []
    for line in block.splitlines():
        if line.startswith(SAID):
            if answer:
                yield said, answer
                said, answer = [], []
            said.append(line[len(SAID):])
        else:
            answer.append(line)
    yield said, answer
