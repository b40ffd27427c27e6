{{- define "gatehouse.name" -}}
{{- if contains "gatehouse" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-gatehouse{{ end }}
{{- end }}

{{/* What a pod of the gateway's own is known by. */}}
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

{{/* The labels of the application's pods. Without any, all pods of the namespace would be meant. */}}
{{- define "gatehouse.applicationLabels" -}}
{{- if not .Values.application.podLabels }}
{{- fail "application.podLabels is missing: the labels of the application's pods, which nobody may reach around the gateway" }}
{{- end }}
{{- toYaml .Values.application.podLabels }}
{{- end }}

{{/* The labels of the pods in which the gateway is. */}}
{{- define "gatehouse.podLabels" -}}
{{- if eq .Values.mode "sidecar" }}{{ include "gatehouse.applicationLabels" . }}{{ else }}{{ include "gatehouse.selectorLabels" . }}{{ end }}
{{- end }}

{{/* gateway.yaml. The probes come from outside of the pod, so the administration address is not loopback. */}}
{{- define "gatehouse.config" -}}
{{- if not .Values.config }}
{{- fail "config is missing: it is gateway.yaml, as in docs/configuration.md" }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.config) (dict "admin" (dict "listen" "0.0.0.0:9090")) | toYaml }}
{{- end }}

{{/* For an annotation of pods that are to be replaced when the configuration changes. */}}
{{- define "gatehouse.checksum" -}}
{{- include "gatehouse.config" . | sha256sum }}
{{- end }}

{{/* One of the containers of a pod: of the gateway's own, or of the application's. */}}
{{- define "gatehouse.container" -}}
- name: gatehouse
  image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  ports:
    - { name: http, containerPort: 8080 }
    - { name: admin, containerPort: 9090 }
  startupProbe: { httpGet: { port: admin, path: /live }, periodSeconds: 1, failureThreshold: 30 }
  livenessProbe: { httpGet: { port: admin, path: /live }, periodSeconds: 10, timeoutSeconds: 3 }
  readinessProbe: { httpGet: { port: admin, path: /ready }, periodSeconds: 5, timeoutSeconds: 3 }
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
    - { name: gatehouse-secrets, mountPath: /run/secrets/gatehouse, readOnly: true }
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* What that container mounts: some of the volumes of the pod. */}}
{{- define "gatehouse.volumes" -}}
- { name: gatehouse-config, configMap: { name: {{ include "gatehouse.name" . }} } }
- { name: gatehouse-secrets, secret: { secretName: {{ .Values.secret }} } }
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
