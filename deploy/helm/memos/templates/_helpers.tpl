{{- define "memos.labels" -}}
app.kubernetes.io/name: memos
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* What every pod shares. Links of services are off: they would set variables such as MEMOS_WEB_PORT, which the product refuses. */}}
{{- define "memos.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: data
{{- if .Values.data.existingClaim }}
    persistentVolumeClaim: {claimName: {{ .Values.data.existingClaim }}}
{{- else }}
    emptyDir: {}
{{- end }}
{{- end }}

{{- define "memos.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: data, mountPath: /data}
{{- end }}

{{/* Variables of web, workers and beat: the plain ones from the ConfigMap, each secret one by its name. */}}
{{- define "memos.environment" -}}
envFrom:
  - configMapRef: {name: {{ .Release.Name }}-config}
env:
{{- $secret := .Values.secrets.app }}
{{- range list "DATABASE_URL" "REDIS_URL" "MEMOS_SECRET_KEY" "MEMOS_MASTER_KEY" "MEMOS_KEY_STORE_URL" }}
  - name: {{ . }}
    valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ . }}}}
{{- end }}
{{- range list "DATABASE_DIRECT_URL" "DATABASE_READ_URL" "MEMOS_BLOB_STORE_KEY" "MEMOS_EMBEDDER_KEY" "MEMOS_LLM_KEY" "MEMOS_MAIL_URL" "MEMOS_METRICS_TOKEN" "MEMOS_NEXT_MASTER_KEY" "MEMOS_RERANKER_KEY" "MEMOS_VECTOR_INDEX_TOKEN" "OTEL_EXPORTER_OTLP_HEADERS" }}
  - name: {{ . }}
    valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ . }}, optional: true}}
{{- end }}
{{- end }}

{{- define "memos.checksum" -}}
checksum/config: {{ toJson .Values.config | sha256sum }}
{{- end }}
