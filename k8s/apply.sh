#!/bin/sh
# Applies an overlay in the order that a release needs, with kubectl alone: the database's schema first, then the services.
#
#   k8s/apply.sh production            # the name of an overlay of k8s/overlays, or a folder of your own
#
# KUBECTL names another kubectl, or one with arguments ("kubectl --context production"). It ends with 1 when the migration
# fails, and nothing of the release has been rolled out then.
set -eu
kubectl=${KUBECTL:-kubectl}
overlay=${1:?usage: k8s/apply.sh <overlay or folder>}
[ -d "$overlay" ] || overlay=$(dirname "$0")/overlays/$overlay
patience_seconds=${MIGRATE_PATIENCE_SECONDS:-1800}

manifests=$(mktemp)
trap 'rm -f "$manifests"' EXIT
$kubectl kustomize "$overlay" >"$manifests"
namespace=$(sed -n 's/^  namespace: //p' "$manifests" | head -n 1)
on="$kubectl --namespace $namespace"

if ! $on get secret runhook >/dev/null; then
  echo "there is no secret \"runhook\" in $namespace: docs/deployment.md says how to make it" >&2
  exit 1
fi

# Data that comes along (development) has to be there before the migration. kubectl takes it amiss when nothing is selected.
if grep -q '^kind: StatefulSet$' "$manifests"; then $on apply -f "$manifests" -l runhook/part=data; fi
# A job cannot be changed: the one of the release before has to go.
$on delete job migrate --ignore-not-found
$on apply -f "$manifests" -l app.kubernetes.io/component=migrate

waited=0
until [ "${ended:-}" = Complete ]; do
  ended=$($on get job migrate -o 'jsonpath={.status.conditions[?(@.status=="True")].type}' |
    tr ' ' '\n' | grep -x -e Complete -e Failed || true)
  if [ "$ended" = Failed ] || [ "$waited" -ge "$patience_seconds" ]; then
    echo "the migration has not ended well; nothing was rolled out" >&2
    $on logs job/migrate --tail=20 >&2 || true
    exit 1
  fi
  [ "$ended" = Complete ] || sleep 2
  waited=$((waited + 2))
done

$on apply -f "$manifests"
$on rollout status deployment/management
$on rollout status deployment/dispatcher
