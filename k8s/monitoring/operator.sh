#!/bin/sh
# Prints objects for the Prometheus Operator, made from the files of a plain Prometheus, so that each exists once:
#
#   k8s/monitoring/operator.sh | kubectl -n runhook apply -f -
#
# RUNBOOK_URL replaces the URL of the runbook that the alerts link to.
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
