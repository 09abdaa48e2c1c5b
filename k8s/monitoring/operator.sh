#!/bin/sh
# What the Prometheus Operator takes, from the files that a plain Prometheus takes, so that there is one of each:
#
#   k8s/monitoring/operator.sh | kubectl -n runhook apply -f -
#
# RUNBOOK_URL replaces the address of the page that the alerts lead to, for a copy that your people can reach.
set -eu
cd "$(dirname "$0")"
page=$(sed -n 's/^ *runbook_url: \(.*\)#.*/\1/p' alerts.yaml | head -n 1)

cat service-monitor.yaml
cat <<HEAD
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: runhook
  labels:
    app.kubernetes.io/name: runhook
spec:
HEAD
sed -e '/^#/d' -e "s|$page#|${RUNBOOK_URL:-$page}#|" -e 's/^/  /' alerts.yaml
