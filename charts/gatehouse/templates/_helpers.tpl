{{- define "gatehouse.name" -}}
{{- if contains "gatehouse" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-gatehouse{{ end }}
{{- end }}

{{/* The labels that select the gateway's own pods. */}}
{{- define "gatehouse.selectorLabels" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The labels of the application's pods. Without labels, a network policy would select all pods of the namespace. */}}
{{- define "gatehouse.applicationLabels" -}}
{{- if not .Values.application.podLabels }}
{{- fail "application.podLabels is missing: set it to the labels of the application's pods, so that only the gateway reaches them" }}
{{- end }}
{{- toYaml .Values.application.podLabels }}
{{- end }}

{{/* The labels of the pods that contain the gateway. */}}
{{- define "gatehouse.podLabels" -}}
{{- if eq .Values.mode "sidecar" }}{{ include "gatehouse.applicationLabels" . }}{{ else }}{{ include "gatehouse.selectorLabels" . }}{{ end }}
{{- end }}

{{/* gateway.yaml. The kubelet sends its probes from outside of the pod, so the administration address is not loopback. */}}
{{- define "gatehouse.config" -}}
{{- if not .Values.config }}
{{- fail "config is missing: it is gateway.yaml, as in docs/configuration.md" }}
{{- end }}
{{- $added := dict "admin" (dict "listen" "0.0.0.0:9090") }}
{{- if .Values.extAuthz.enabled }}{{ $_ := set $added "ext_authz" (dict "listen" "0.0.0.0:9191") }}{{ end }}
{{- mergeOverwrite (deepCopy .Values.config) $added | toYaml }}
{{- end }}

{{/* The host of external_url. */}}
{{- define "gatehouse.host" -}}
{{- (urlParse (required "config.external_url is missing" .Values.config.external_url)).hostname }}
{{- end }}

{{/* The path of the gateway's own pages, without the slash at its end. */}}
{{- define "gatehouse.prefix" -}}
{{- .Values.config.reserved_prefix | default "/.gatehouse/" | trimSuffix "/" }}
{{- end }}

{{/* The file with the sessions, or nothing. */}}
{{- define "gatehouse.sessionFile" -}}
{{- $store := ((.Values.config).session).store }}
{{- if kindIs "map" $store }}{{ with $store.file }}
{{- if not (regexMatch "^/.+/.+" .) }}
{{- fail (printf "config.session.store.file: %s is not an absolute path in a folder of its own, such as /var/lib/gatehouse/sessions.db" .) }}
{{- end }}
{{- . }}
{{- end }}{{ end }}
{{- end }}

{{/* Whether several pods can share the sessions: true, or nothing. */}}
{{- define "gatehouse.sharesSessions" -}}
{{- $store := ((.Values.config).session).store }}
{{- if kindIs "map" $store }}{{ if $store.redis }}true{{ end }}{{ end }}
{{- end }}

{{/* How long the gateway serves requests after the stop request, in whole seconds: preStop, and then drain_timeout. */}}
{{- define "gatehouse.drainedSeconds" -}}
{{- $drain := ((.Values.config).shutdown).drain_timeout | default "15s" }}
{{- $unit := regexFind "[a-z]+$" $drain }}
{{- $amount := regexFind "^[0-9]+" $drain | atoi }}
{{- if eq $unit "ms" }}{{ $amount = div (add $amount 999) 1000 }}
{{- else }}{{ $amount = mul $amount (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit | default 1) }}
{{- end }}
{{- add .Values.preStopSeconds $amount }}
{{- end }}

{{- define "gatehouse.terminationGracePeriodSeconds" -}}
{{- $drained := include "gatehouse.drainedSeconds" . | atoi }}
{{- $grace := .Values.terminationGracePeriodSeconds | default (add $drained 10) | int }}
{{- if le $grace $drained }}
{{- fail (printf "terminationGracePeriodSeconds: %d is too short. preStopSeconds and config.shutdown.drain_timeout take %d s together" $grace $drained) }}
{{- end }}
{{- $grace }}
{{- end }}

{{/* The peers that may reach the gateway. */}}
{{- define "gatehouse.peers" -}}
{{- if not .Values.networkPolicy.from }}
{{- fail "networkPolicy.from is missing: set it to the pods of the proxy before the gateway, as peers of a NetworkPolicy" }}
{{- end }}
{{- toYaml .Values.networkPolicy.from }}
{{- end }}

{{/* A checksum for an annotation of pods: a change of the configuration then replaces them. */}}
{{- define "gatehouse.checksum" -}}
{{- include "gatehouse.config" . | sha256sum }}
{{- end }}

{{/* The container of the gateway, in pods of its own or in those of the application. */}}
{{- define "gatehouse.container" -}}
- name: gatehouse
  image: {{ .Values.image.repository }}:{{ .Values.image.tag | default (.Chart).AppVersion }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  ports:
    # The names differ from those of the application, which may be in the same pod.
    - { name: gatehouse, containerPort: 8080 }
    - { name: gatehouse-admin, containerPort: 9090 }
    {{- if (.Values.extAuthz).enabled }}
    - { name: gatehouse-authz, containerPort: 9191 }
    {{- end }}
  startupProbe: { httpGet: { port: gatehouse-admin, path: /live }, periodSeconds: 1, failureThreshold: 30 }
  livenessProbe: { httpGet: { port: gatehouse-admin, path: /live }, periodSeconds: 10, timeoutSeconds: 3 }
  readinessProbe: { httpGet: { port: gatehouse-admin, path: /ready }, periodSeconds: 5, timeoutSeconds: 3 }
  lifecycle: { preStop: { sleep: { seconds: {{ .Values.preStopSeconds }} } } }
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: { drop: [ALL] }
    seccompProfile: { type: RuntimeDefault }
  volumeMounts:
    - { name: gatehouse-config, mountPath: /etc/gatehouse, readOnly: true }
    {{- if .Values.secret }}
    - { name: gatehouse-secrets, mountPath: /run/secrets/gatehouse, readOnly: true }
    {{- end }}
    {{- if (.Values.clientAssertion).audience }}
    - { name: gatehouse-assertion, mountPath: /run/secrets/gatehouse-assertion, readOnly: true }
    {{- end }}
    {{- with include "gatehouse.sessionFile" . }}
    - { name: gatehouse-sessions, mountPath: {{ dir . }} }
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* The volumes that this container mounts. */}}
{{- define "gatehouse.volumes" -}}
- { name: gatehouse-config, configMap: { name: {{ include "gatehouse.name" . }} } }
{{- if .Values.secret }}
- { name: gatehouse-secrets, secret: { secretName: {{ .Values.secret }} } }
{{- end }}
{{- with .Values.clientAssertion }}
{{- if .audience }}
- name: gatehouse-assertion
  projected:
    sources:
      - serviceAccountToken: { path: token, audience: {{ .audience | quote }}, expirationSeconds: {{ .expirationSeconds | default 3600 }} }
{{- end }}
{{- end }}
{{- if include "gatehouse.sessionFile" . }}
- name: gatehouse-sessions
  persistentVolumeClaim: { claimName: {{ .Values.sessionVolume.existingClaim | default (printf "%s-sessions" (include "gatehouse.name" .)) }} }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The container and the volumes of a sidecar, for values of another chart that are templates, such as extraContainers. The other
chart has only the values in global.gatehouse. Those that are missing there have these defaults.
*/}}
{{- define "gatehouse.sidecar" -}}
{{- $defaults := fromYaml `
image: { repository: ghcr.io/gatehouse-proxy/gatehouse, tag: 0.1.0, pullPolicy: IfNotPresent }
secret: gatehouse
preStopSeconds: 5
resources: { requests: { cpu: 100m, memory: 192Mi }, limits: { memory: 512Mi } }
` }}
{{- $values := mergeOverwrite $defaults (deepCopy ((.Values.global).gatehouse | default dict)) }}
{{- toYaml (dict "Values" $values "Release" (dict "Name" .Release.Name)) }}
{{- end }}

{{- define "gatehouse.sidecar.container" -}}
{{- include "gatehouse.container" (include "gatehouse.sidecar" . | fromYaml) }}
{{- end }}

{{- define "gatehouse.sidecar.volumes" -}}
{{- include "gatehouse.volumes" (include "gatehouse.sidecar" . | fromYaml) }}
{{- end }}
