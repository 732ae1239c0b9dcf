#!/usr/bin/env bash
# All committed releases into a file, and the latest of each metric and group as a table.
#
#     examples/recipes/kcat.sh localhost:9092 shoal.releases releases.jsonl
#
# Run it again whenever you like: releases are kept for ever, so the file is made anew, with each release once.
set -euo pipefail
brokers=$1 topic=$2 file=$3

kcat -C -b "$brokers" -t "$topic" -o beginning -e -q -X isolation.level=read_committed > "$file.part"
mv "$file.part" "$file"

jq -rs '
  def shown: if type == "number" then . elif . == null then "no release" else "several numbers" end;
  group_by([.metric, .version, .group])[] | max_by(.seq)
  | [.metric, .group // "", .at, (.value, .low, .high | shown)] | @tsv
' "$file"
