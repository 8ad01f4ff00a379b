#!/bin/sh
# A formula that a page shows under a tag of the header is the header's formula: typeset from it by
# docs/weave/tex.mjs, to the letter. `node docs/weave/formulas.mjs --write PAGE` brings a page up to
# date. Without Node nothing is compared, and that is said.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks.sh

if ! command -v node >/dev/null 2>&1; then
    echo "formulas: missing: Node ('make deps-dev' installs it), no formula is compared"
    echo "formulas: 0 passed, 0 failed"
    exit 0
fi

# A formula that has changed, and a tag that the header does not have, have to be found.
altered() { # sed-script
    sed "$1" docs/01_batch_norm.md >"$dir/02_altered.md"
    ! cmp -s docs/01_batch_norm.md "$dir/02_altered.md" &&
        ! node docs/weave/formulas.mjs --check "$dir/02_altered.md"
}

check "all chapters" node docs/weave/formulas.mjs --check docs/[0-9]*.md
check "an altered formula is found" altered '/tag{BN.4}/s/x_i - /x_i + /'
verdict formulas
