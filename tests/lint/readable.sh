#!/bin/sh
# readable.sh - can one read the header? The lines from an equation to the line that computes it,
# the lengths of functions, structs and chapters, the layers (Part I knows nothing of vectors, Part
# II nothing of modes), the public functions, and how many functions batch norm reaches.
#
#   tests/lint/readable.sh [HEADER]      with VERBOSE=1 also the functions that it reaches
set -u
cd "$(dirname "$0")/../.." || exit 1
LC_ALL=C
export LC_ALL
header=${1:-normlayers.h}
awk -f tests/lint/extract_tags.awk "$header" |
    awk -v verbose="${VERBOSE:-}" -f tests/lint/readable.awk - "$header"
