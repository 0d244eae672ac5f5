{{- define "kurier.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "kurier.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The connection URLs. They come from the Secret only. */}}
{{- define "kurier.connections" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "kurier.secretName" . }}
      key: {{ .Values.secretKeys.databaseUrl }}
- name: AMQP_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "kurier.secretName" . }}
      key: {{ .Values.secretKeys.amqpUrl }}
{{- end -}}

{{/* Where pods may run. */}}
{{- define "kurier.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kurier.settings" -}}
{{- with .Values.settings -}}
KURIER_ATTEMPT_TIMEOUT_MS: {{ .attemptTimeoutMs | int64 | quote }}
KURIER_SHUTDOWN_GRACE_MS: {{ add .attemptTimeoutMs 10000 | quote }}
{{- range $variable, $value := dict
  "KURIER_MAX_ATTEMPTS" .maxAttempts
  "KURIER_RETRY_BASE_MS" .retryBaseMs
  "KURIER_RETRY_CAP_MS" .retryCapMs
  "KURIER_BREAKER_THRESHOLD" .breakerThreshold
  "KURIER_BREAKER_COOLDOWN_MS" .breakerCooldownMs
  "KURIER_BREAKER_COOLDOWN_CAP_MS" .breakerCooldownCapMs
}}
{{ $variable }}: {{ $value | int64 | quote }}
{{- end }}
KURIER_ALLOWED_NETWORKS: {{ join "," .allowedNetworks | quote }}
KURIER_ALLOW_HTTP: {{ .allowHttp | quote }}
{{- end }}
KURIER_HEALTH_ADDR: {{ printf "0.0.0.0:%d" (.Values.healthPort | int) | quote }}
{{- range $variable, $value := .Values.extraEnv }}
{{ $variable }}: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* A program that runs for ever. Argument: dict "root" $ "program" NAME "command" BINARY "values" ITS_VALUES */}}
{{- define "kurier.deployment" -}}
{{- $values := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "kurier.name" .root }}-{{ .program }}
  labels:
    {{- include "kurier.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels:
      {{- include "kurier.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "kurier.labels" . | nindent 8 }}
      annotations:
        checksum/settings: {{ include "kurier.settings" .root | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "kurier.serviceAccountName" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      # An attempt in flight ends within its limit; 15 s more are for recording it and for giving back the rest.
      terminationGracePeriodSeconds: {{ add (div (add $values.settings.attemptTimeoutMs 999) 1000) 15 }}
      securityContext:
        {{- include "kurier.podSecurity" .root | nindent 8 }}
      {{- include "kurier.placement" .root | nindent 6 }}
      topologySpreadConstraints:
        {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "kurier.selector" $ | nindent 14 }}
        {{- end }}
      containers:
        - name: {{ .program }}
          image: {{ include "kurier.image" .root }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          command: [{{ .command }}]
          envFrom:
            - configMapRef:
                name: {{ include "kurier.name" .root }}
          env:
            - name: OTEL_SERVICE_NAME
              value: {{ .command }}
            {{- include "kurier.connections" .root | nindent 12 }}
          ports:
            - name: health
              containerPort: {{ $values.healthPort }}
          startupProbe:
            httpGet: {path: /livez, port: health}
            periodSeconds: 2
            failureThreshold: 30
          livenessProbe:
            httpGet: {path: /livez, port: health}
            periodSeconds: 10
            timeoutSeconds: 3
            failureThreshold: 3
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 5
            timeoutSeconds: 3
          securityContext:
            {{- include "kurier.containerSecurity" .root | nindent 12 }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "kurier.name" .root }}-{{ .program }}
  labels:
    {{- include "kurier.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ $values.disruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "kurier.selector" . | nindent 6 }}
{{- end -}}
