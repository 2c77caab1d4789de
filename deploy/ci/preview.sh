#!/bin/sh
# What a change does to the nodes of clusters, posted where people review it, for CI systems that have no recipe of their own.
#
#   BASE=origin/main HEAD=$COMMIT CLUSTERS="blue=snapshots/blue.json green=git:origin/cutlist-snapshots-green" \
#   FORGE=gitea FORGE_URL=https://git.example.com REPOSITORY=shop/clusters PULL_REQUEST=12 TOKEN_FILE=/run/secrets/forge deploy/ci/preview.sh
#
# Writes cutlist-preview.json and cutlist-preview.md to OUTPUT (default: here), and prints the text. Without FORGE nothing is posted.
# FORGE_URL may be left out for github.com and gitlab.com. Ends with 0, or with 1 where some cluster has no plan, or nothing is known of it. Needs cutlist, and the history of both revisions in the clone.
set -eu
: "${BASE:?what the change goes into, such as origin/main}" "${CLUSTERS:?NAME=SNAPSHOT, several with spaces between}"
output="${OUTPUT:-.}"
set -- "${DEFINITIONS:-.}" --base "$BASE" --head "${HEAD:-HEAD}" --environment "${ENVIRONMENT:-}"
for cluster in $CLUSTERS; do set -- "$@" --cluster "$cluster"; done
code=0
rm -f "$output/cutlist-preview.json" "$output/cutlist-preview.md"
cutlist preview "$@" -o text -o json="$output/cutlist-preview.json" -o markdown="$output/cutlist-preview.md" || code=$?
[ -s "$output/cutlist-preview.json" ] || exit "$code"
if [ -n "${FORGE:-}" ]; then
  set -- "$output/cutlist-preview.json" --forge "$FORGE" --repository "${REPOSITORY:?}"
  [ -z "${FORGE_URL:-}" ] || set -- "$@" --url "$FORGE_URL"
  cutlist post "$@" --pull-request "${PULL_REQUEST:?}" --token-file "${TOKEN_FILE:?}"
fi
exit "$code"
