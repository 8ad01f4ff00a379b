#!/bin/sh
# A dozen of the mutants, one from each large family: are they still found, and by the same checks?
# (make mutants has them all.)
JOBS=1 exec sh "$(dirname "$0")/../mutants/run.sh" --quick
