#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes ./configure from configure.ac. Needs autoconf, automake, pkg-config.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake pkg-config; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "autogen.sh: $tool is missing;" \
            "contrib/apt-install build installs it" >&2
        exit 1
    }
done
exec autoreconf --install --force --warnings=all
