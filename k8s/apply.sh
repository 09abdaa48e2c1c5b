#!/bin/sh
# Applies an overlay in the order that a release needs, with kubectl only: the database schema first, then the services.
#
#   k8s/apply.sh production            # the name of an overlay of k8s/overlays, or a folder
#
# KUBECTL sets another kubectl, or one with arguments ("kubectl --context production"). Exits with 1 if the migration
# fails, before anything of the release is rolled out.
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

if ! role_url=$($on get secret runhook -o 'jsonpath={.data.MANAGEMENT_DATABASE_URL}') || [ -z "$role_url" ]; then
  echo "the secret \"runhook\" is missing in $namespace, or has no MANAGEMENT_DATABASE_URL: see docs/deployment.md" >&2
  exit 1
fi

# The servers of an overlay (development) must exist before the migration. kubectl fails if nothing is selected.
if grep -q '^kind: StatefulSet$' "$manifests"; then $on apply -f "$manifests" -l runhook/part=data; fi
# A job cannot be changed, so the one of the previous release is deleted.
$on delete job migrate --ignore-not-found
$on apply -f "$manifests" -l app.kubernetes.io/component=migrate

waited=0
until [ "${ended:-}" = Complete ]; do
  ended=$($on get job migrate -o 'jsonpath={.status.conditions[?(@.status=="True")].type}' |
    tr ' ' '\n' | grep -x -e Complete -e Failed || true)
  if [ "$ended" = Failed ] || [ "$waited" -ge "$patience_seconds" ]; then
    echo "the migration failed; nothing was rolled out" >&2
    $on logs job/migrate --tail=20 >&2 || true
    exit 1
  fi
  [ "$ended" = Complete ] || sleep 2
  waited=$((waited + 2))
done

$on apply -f "$manifests"
$on rollout status deployment/management
$on rollout status deployment/dispatcher
