{{- define "runhook.labels" -}}
app.kubernetes.io/name: runhook
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "runhook.selector" -}}
app.kubernetes.io/name: runhook
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Formats a value for a variable: numbers have no exponent. */}}
{{- define "runhook.text" -}}
{{- if kindIs "float64" . }}{{ int64 . | toString | quote }}{{ else }}{{ toString . | quote }}{{ end }}
{{- end }}

{{- define "runhook.settings" -}}
{{- range $name, $value := omit .Values.settings "MIGRATE_WAIT_SECONDS" "DATABASE_OWNER_ROLE" }}
{{- if not (kindIs "invalid" $value) }}
{{ $name }}: {{ include "runhook.text" $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "runhook.image" -}}
{{- $image := .root.Values.image -}}
image: {{ with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}/{{ .component }}:{{ $image.tag | default .root.Chart.AppVersion }}{{ if not $image.tag }}{{ with index $image.digests .component }}@{{ . }}{{ end }}{{ end }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}

{{/* Has the fields of every pod, of services and of the migration. */}}
{{- define "runhook.podStart" -}}
serviceAccountName: {{ .component }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pods }}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "runhook.containerEnd" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
      - ALL
volumeMounts:
  - name: secrets
    mountPath: /run/secrets/runhook
    readOnly: true
  {{- with .Values.pods.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Sets a variable with the path of the secret for each key. */}}
{{- define "runhook.secretEnv" -}}
{{- range .keys }}
- name: {{ . }}_FILE
  value: /run/secrets/runhook/{{ . }}
{{- end }}
{{- with .root.Values.pods.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The files of a service's secrets; with a role, DATABASE_URL is that of the role. */}}
{{- define "runhook.volumes" -}}
- name: secrets
  secret:
    secretName: {{ .root.Values.secret.name }}
    defaultMode: 0440
    items:
      {{- range .keys }}
      - key: {{ if and $.role (eq . "DATABASE_URL") }}{{ upper $.role }}_{{ end }}{{ . }}
        path: {{ . }}
      {{- end }}
{{- with .root.Values.pods.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "runhook.spread" -}}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{ include "runhook.selector" $ | nindent 6 }}
  matchLabelKeys:
    - pod-template-hash
{{- end }}
{{- end }}

{{- define "runhook.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ . }}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ . }}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{/* Adds preStop and the time for closing to the longest request or attempt. */}}
{{- define "runhook.graceSeconds" -}}
{{- add (div (add (int64 .Values.settings.DELIVERY_TIMEOUT_MS) 999) 1000) 35 -}}
{{- end }}
